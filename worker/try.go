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
	// failures so far. Its payload is that of the value. Every other field that is zero
	// and that no store leaves so is made up, so that a handler may use it as that of a
	// message: store, queue, ID and generation of the receipt are "try"; the attempt is
	// the first after Failures and Lapses; the fence is the attempt; it was enqueued now,
	// and the lease ends after [DefaultLease].
	Delivery queue.Delivery

	Timeout time.Duration // as in Options
	Retry   RetryPolicy   // as in Options
}

// A Result says what the worker would do with a message after its handler ended.
type Result struct {
	Action Action

	// DelayMin and DelayMax bound the delay, both included. Of an exact one they are
	// equal. ActionFail has none.
	DelayMin, DelayMax time.Duration

	Cause string // what would be kept as the last error; empty: nothing

	// Changes are made in one commit with ActionAck: those of an [AckWith]. What a store
	// would refuse of them is not known here.
	Changes []queue.Change

	// Err is what the handler returned, or a *PanicError; nil of an AckWith that is
	// carried out. A *queue.DecodeError: the handler was not called.
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
	d := madeUp(o.Delivery)
	q := queue.New[T](nil, d.Receipt.Queue)
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
	if v.action == ActionFail { // a retry at the cap has drawn one that nobody waits for
		v.least, v.most = 0, 0
	}
	return Result{
		Action: v.action, DelayMin: v.least, DelayMax: v.most,
		Cause: v.cause, Changes: v.with, Err: v.err, Panicked: v.panicked,
	}
}

// madeUp fills in what every delivery of a store has.
func madeUp(d queue.Delivery) queue.Delivery {
	r := &d.Receipt
	for _, name := range []*string{&r.Store, &r.Queue, &r.ID, &r.Generation} {
		if *name == "" {
			*name = "try"
		}
	}
	if r.Attempt == 0 {
		r.Attempt = d.Failures + d.Lapses + 1
	}
	if d.Fence == 0 {
		d.Fence = r.Attempt
	}
	now := time.Now()
	if d.EnqueuedAt.IsZero() {
		d.EnqueuedAt = now.Truncate(time.Millisecond)
	}
	if d.Deadline.IsZero() {
		d.Deadline = now.Add(DefaultLease)
	}
	return d
}
