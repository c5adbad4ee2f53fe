package worker

import (
	"fmt"
	"time"
)

// A phase is how far the worker is in ending. Each begins when the one before it has
// nothing left to wait for, or at its bound.
type phase int

const (
	running    phase = iota
	finishing        // nothing is claimed any more; handlers run on, for Drain
	cancelling       // their contexts are cancelled; they have lastMoment to return
	releasing        // what has not returned was given back; settlements have lastBound
	ended
)

// Bounds on the end of a drain. Run returns after Drain and both of them at the
// latest, and whatever a commit takes that is under way.
const (
	lastMoment = time.Second
	lastBound  = 10 * time.Second
)

// drain begins the end: nothing is claimed any more.
func (w *worker) drain(most time.Duration) {
	if w.phase != running {
		return
	}
	w.phase, w.until = finishing, w.now.Add(max(most, 0))
	w.stop()
	w.unwatch()
	e := Event{Kind: EventDraining, Count: w.working()}
	if e.Count > 0 { // else nothing is waited for
		e.Delay = max(most, 0)
	}
	w.tell(e, "")
}

// fail ends the worker because going on is useless. Handlers are not given the time
// of a drain: most likely their settlements would not be taken either.
func (w *worker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.drain(0)
	if w.phase == finishing {
		w.until = w.now
	}
}

// advance goes from phase to phase.
func (w *worker) advance() {
	if w.phase == finishing && (w.working() == 0 || w.due(w.until)) {
		w.phase, w.until = cancelling, w.now.Add(lastMoment)
		for _, m := range w.held {
			if m.running {
				w.interrupt(m, ErrDraining)
			}
		}
	}
	if w.phase == cancelling && (w.working() == 0 || w.due(w.until)) {
		w.phase, w.until = releasing, w.now.Add(lastBound)
		for _, m := range append([]*held(nil), w.held...) {
			m.after = time.Time{} // a settlement that waits may have no other chance
			if m.running {
				w.abandon(m)
			}
		}
	}
	if w.phase == releasing && w.due(w.until) {
		w.phase = ended
		w.kill()
	}
}

// working counts the handlers that are worth waiting for.
func (w *worker) working() int {
	n := 0
	for _, m := range w.held {
		if m.running && !m.stuck {
			n++
		}
	}
	return n
}

// abandon gives back a message whose handler did not return in time.
func (w *worker) abandon(m *held) {
	m.abandoned = true
	if m.lost != nil {
		w.forget(m)
		return
	}
	m.running = false
	m.elapsed = w.now.Sub(m.started)
	w.release(m)
}

// release has a message returned at once, excused.
func (w *worker) release(m *held) {
	m.settleAs(verdict{action: ActionRelease, err: ErrDraining, cause: ErrDraining.Error()}, w.o.seams)
}

// over reports whether nothing is left to do or to wait for.
func (w *worker) over() bool {
	if w.phase == running || w.calling || w.watching != nil {
		return false
	}
	// A worker that gave up repeats no settlement that fails.
	useless := w.err != nil && w.phase == releasing && w.settling.failures > 0
	return len(w.held) == 0 || w.phase == ended || useless
}

// end says what Run returns.
func (w *worker) end() error {
	if len(w.held) == 0 {
		return w.err
	}
	left := &UnsettledError{Cause: w.err}
	for _, m := range w.held {
		left.Receipts = append(left.Receipts, m.d.Receipt)
		if m.err != nil {
			left.Err = m.err
		}
		e := about(EventUnsettled, m)
		e.Action, e.Elapsed, e.Err = m.verdict.action, m.elapsed, m.err
		w.tell(e, "")
	}
	if left.Err == nil {
		left.Err = fmt.Errorf("no settlement was answered within %s", lastBound)
	}
	return left
}
