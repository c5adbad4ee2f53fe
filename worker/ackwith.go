package worker

import (
	"errors"
	"fmt"
	"slices"

	"example.com/holdfast/queue"
)

// MaxAckWith is how many changes one [AckWith] takes: as many as leave room in one
// Update for the ack and for the claims that it is made with.
const MaxAckWith = queue.MaxUpdate - MaxConcurrency - 1

// AckWith is returned by a handler that is done and wants more to happen with the ack:
// the message is acked in one commit together with these changes, all of them or none.
// So a follow-up is enqueued exactly once, however often the handler runs.
//
// It takes queue.EnqueueChange and queue.CursorChange, [MaxAckWith] at most; with any
// other change the answer is a failure of the message, as one that wraps
// queue.ErrInvalid is. The ack is made first: a follow-up may have the message's own ID.
//
// A change that the store refuses (queue.ErrDuplicate, queue.ErrInvalid…) leaves the
// message unacked. It is a failure of the message, retried as after any other error,
// whose text is the refusal: a *queue.UpdateError with the index among these changes.
// Only queue.ErrFull is none: the commit is tried again with back-off while the lease
// is kept, and after Options.StoreFailures tries, or when the worker ends, the message
// is returned, excused. The payloads must not be changed after the return.
func AckWith(changes ...queue.Change) error {
	a := &ackWith{changes: slices.Clone(changes)}
	if len(changes) > MaxAckWith {
		a.refused = fmt.Errorf("acked with %d changes: at most %d: %w", len(changes), MaxAckWith, queue.ErrInvalid)
		return a
	}
	for i, c := range changes {
		switch c.(type) {
		case queue.EnqueueChange, queue.CursorChange:
		default:
			a.refused = fmt.Errorf("acked with changes, number %d is a %T: only queue.EnqueueChange and queue.CursorChange are for handlers: %w", i, c, queue.ErrInvalid)
			return a
		}
	}
	return a
}

type ackWith struct {
	changes []queue.Change
	refused error
}

func (a *ackWith) Error() string {
	if a.refused != nil {
		return a.refused.Error()
	}
	return fmt.Sprintf("acked with %d changes", len(a.changes))
}

func (a *ackWith) Unwrap() error { return a.refused }

func (a *ackWith) verdict(v verdict) verdict {
	if a.refused != nil {
		return v
	}
	return verdict{action: ActionAck, with: a.changes}
}

// full deals with an ack that brings changes for which the store has no room. It waits
// alone, for settling the others may make room, and so may handlers in its slot: so it
// does not wait for ever.
func (w *worker) full(m *held, err error) {
	if w.phase != releasing && (w.o.StoreFailures < 0 || m.tries+1 < w.o.StoreFailures) {
		w.retrySettling(m, err)
		return
	}
	v := verdict{action: ActionSnooze, least: longestPause, most: longestPause, cause: queue.CutError(err.Error()), err: err}
	if w.phase != running {
		v.action, v.least, v.most = ActionRelease, 0, 0
	}
	m.settleAs(v, w.o.seams)
}

// refuseWith deals with a change that the store refused, the one at that index of those
// that an ack brings.
func (w *worker) refuseWith(m *held, index int, err error) {
	switch {
	case errors.Is(err, queue.ErrClosed) || w.named(err):
		m.err = err
		w.failed("settle", &w.settling, err)
	case errors.Is(err, queue.ErrFull):
		w.full(m, err)
	default:
		err = fmt.Errorf("acked with changes: %w", &queue.UpdateError{Index: index, Err: err})
		m.doubt = false // what is refused now did not happen before
		m.settleAs(failed(err, err.Error(), m.source.o.Retry, m.d.Failures).capped(m.d.Failures), w.o.seams)
	}
}
