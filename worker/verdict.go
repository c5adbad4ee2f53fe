package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/holdfast/queue"
)

// An Action is what becomes of a message after its handler ended.
type Action string

const (
	ActionAck     Action = "ack"     // done for good
	ActionDiscard Action = "discard" // acked without having been done
	ActionRetry   Action = "retry"   // returned, one failure more
	ActionFail    Action = "fail"    // to the failed messages
	ActionSnooze  Action = "snooze"  // returned with a delay, excused
	ActionRelease Action = "release" // returned at once, excused: the worker ends
)

// A verdict is what the worker makes of a handler's answer.
type verdict struct {
	action      Action
	least, most time.Duration  // the delay is drawn from these, both included
	maxFailures uint64         // the cap of a retry
	cause       string         // what is kept as the last error
	err         error          // what the handler returned, or the *PanicError
	panicked    bool           // it did not return
	with        []queue.Change // made in one commit with an ack
}

// judge makes the verdict on what a handler returned under ctx. failures are those
// before this attempt. It calls methods of the error, which are foreign code and may
// panic.
func judge(ctx context.Context, err error, p RetryPolicy, failures uint64) verdict {
	if err == nil {
		return verdict{action: ActionAck}
	}
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(ctx), ErrTimeout) {
		text = ErrTimeout.Error() + ": " + text
	}
	v := failed(err, text, p, failures)
	// Also inside of a Fail or RetryAfter: the worker made this error, not the message.
	if endedByDrain(ctx, err) {
		v.action, v.most = ActionRelease, 0
		return v
	}
	var a answer
	if errors.As(err, &a) {
		v = a.verdict(v)
	}
	return v.capped(failures)
}

// judgePanic makes the verdict on a handler that did not return: one failure, even
// where the value of the panic is an error that means something else when returned.
func judgePanic(err *PanicError, p RetryPolicy, failures uint64) verdict {
	v := failed(err, err.Error(), p, failures).capped(failures)
	v.panicked = true
	return v
}

// failed is the verdict on a failure of no special kind.
func failed(err error, text string, p RetryPolicy, failures uint64) verdict {
	if text == "" { // which would leave the last error as it was
		text = fmt.Sprintf("an error of type %T without a text", err)
	}
	return verdict{
		action: ActionRetry, most: p.longest(failures), maxFailures: p.MaxFailures,
		cause: queue.CutError(text), err: err,
	}
}

// capped says what the store will make of a retry, which counts as this does.
func (v verdict) capped(failures uint64) verdict {
	if v.action == ActionRetry && failures+1 >= v.maxFailures {
		v.action = ActionFail
	}
	return v
}

func endedByDrain(ctx context.Context, err error) bool {
	return errors.Is(context.Cause(ctx), ErrDraining) && (errors.Is(err, ctx.Err()) || errors.Is(err, ErrDraining))
}

// change gives the settlement that carries the verdict out.
func (v verdict) change(r queue.Receipt, delay time.Duration) queue.Change {
	switch v.action {
	case ActionAck, ActionDiscard:
		return queue.AckChange{Receipt: r}
	case ActionSnooze, ActionRelease:
		return queue.ReleaseChange{Receipt: r, Options: queue.ReleaseOptions{Delay: delay}}
	}
	return queue.RetryChange{Receipt: r, Options: queue.RetryOptions{Delay: delay, MaxFailures: v.maxFailures, Cause: v.cause}}
}

// line gives the cause for the log, where EventPanicked has told the stack already.
func (v verdict) line() string {
	if !v.panicked {
		return v.cause
	}
	first, _, _ := strings.Cut(v.cause, "\n")
	return first
}

// delay draws the delay of the verdict.
func (v verdict) delay(s seams) time.Duration {
	if v.least == v.most {
		return v.least
	}
	return v.least + s.draw(v.most-v.least)
}
