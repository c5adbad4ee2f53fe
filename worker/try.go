package worker

import (
	"context"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// TryOptions shapes a [Try]. The zero value tries a first attempt under the default
// policy.
type TryOptions struct {
	// Delivery is what the handler sees beside the value: receipt, key, fence,
	// failures so far. Its payload is that of the value.
	Delivery queue.Delivery

	Timeout time.Duration // as in Options
	Retry   RetryPolicy   // as in Options
}

// A Result says what the worker would do with a message after its handler ended.
type Result struct {
	Action Action

	// DelayMin and DelayMax bound the delay, both included. Of an exact one they are
	// equal.
	DelayMin, DelayMax time.Duration

	Cause string // what would be kept as the last error; empty: nothing

	// Err is what the handler returned, or a *PanicError. A *queue.DecodeError: the
	// handler was not called.
	Err      error
	Panicked bool // the handler panicked or called runtime.Goexit
}

// Try runs a handler on a value without a store and says what the worker would do, by
// the code by which the worker decides. The value goes the way of a payload: it is
// encoded and decoded. ActionFail of an error that is no [Fail] says that the cap is
// reached.
//
// A ctx that is cancelled with the cause [ErrDraining] is to the handler as the end of
// a drain. Bad options and a value that does not encode are ActionFail with an error
// that wraps queue.ErrInvalid, and the handler is not called.
func Try[T any](ctx context.Context, h Handler[T], value T, o TryOptions) Result {
	q := queue.New[T](nil, "try")
	d := o.Delivery
	checked, err := QueueOptions{Timeout: o.Timeout, Retry: o.Retry}.checked()
	if err == nil && h == nil {
		err = fmt.Errorf("no handler: %w", queue.ErrInvalid)
	}
	if err == nil {
		var m queue.Message
		if m, err = q.Message(value, queue.EnqueueOptions{}); err == nil {
			d.Payload = m.Payload
		}
	}
	if err != nil {
		return Result{Action: ActionFail, Cause: queue.CutError(err.Error()), Err: err}
	}
	ctx, cancel := limited(ctx, checked.Timeout)
	defer cancel(nil)
	run := typed(q, h)
	verdicts := make(chan verdict, 1)
	attempt(ctx, func(ctx context.Context) error { return run(ctx, d) }, checked.Retry, d.Failures, func(v verdict) { verdicts <- v })
	v := <-verdicts
	return Result{
		Action: v.action, DelayMin: v.least, DelayMax: v.most,
		Cause: v.cause, Err: v.err, Panicked: v.panicked,
	}
}
