package worker

import (
	"errors"

	"example.com/holdfast/queue"
)

// ready gives the messages whose answers can be settled now.
func (w *worker) ready() []*held {
	if !w.due(w.settling.after) {
		return nil
	}
	var ready []*held
	for _, m := range w.held {
		if !m.running && w.due(m.after) {
			ready = append(ready, m)
		}
	}
	return ready
}

// settled tells what became of a message, and frees its slot.
func (w *worker) settled(m *held, r queue.Returned) {
	v := m.verdict
	e := about(EventAcked, m)
	e.Action, e.Elapsed, e.Err, e.Delay = v.action, m.elapsed, v.err, m.delay
	switch v.action {
	case ActionDiscard:
		e.Kind = EventDiscarded
	case ActionSnooze:
		e.Kind = EventSnoozed
	case ActionRelease:
		e.Kind = EventReleased
	case ActionRetry, ActionFail:
		e.Kind = EventRetried
		e.Failures++
		if e.FailedName = r.FailedName; e.FailedName != "" || m.doubt && v.action == ActionFail {
			e.Kind, e.Delay = EventFailed, 0
		}
	}
	w.tell(e, v.line())
	w.forget(m)
}

// refuse deals with a change of a message that the store refused.
func (w *worker) refuse(m *held, err error) {
	switch {
	case errors.Is(err, queue.ErrLost) && m.doubt:
		// The settlement that may have happened did, or the claim was lost before it.
		// The store cannot tell them apart; the first is by far the likelier, and
		// nothing is left to do after either.
		w.settled(m, queue.Returned{})
	case errors.Is(err, queue.ErrLost):
		if m.verdict.action == ActionAck && len(m.verdict.with) == 0 && m.tries == 0 && errors.Is(err, queue.ErrGone) {
			err = &elsewhereError{err}
		}
		w.lose(m, err)
	case w.fatal(err) || w.o.StoreFailures > 0 && m.tries+1 >= w.o.StoreFailures:
		w.lose(m, err) // its lease ends by itself, and it comes back
	default:
		// Nothing that the worker asks for is refused for another reason; should it be,
		// this message alone waits, and is told of.
		w.retrySettling(m, err)
	}
}

// retrySettling has one settlement tried again later, apart from the others.
func (w *worker) retrySettling(m *held, err error) {
	p := patience{failures: m.tries}
	m.tries++
	m.err = err
	e := about(EventStoreFailed, m)
	e.Op, e.Action, e.Err, e.Delay = "settle", m.verdict.action, err, p.fail(w.now, w.o.seams)
	m.after = p.after
	w.tell(e, "")
}

// An elsewhereError is the loss of a claim whose handler returned nil and whose message
// was gone by then. Nothing is wrong where the handler itself settled it.
type elsewhereError struct{ err error }

func (e *elsewhereError) Error() string {
	return e.err.Error() + "; settled elsewhere, perhaps by the handler itself: use AckWith"
}

func (e *elsewhereError) Unwrap() error { return e.err }
