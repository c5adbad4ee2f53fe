package worker

import (
	"context"
	"time"

	"example.com/holdfast/queue"
)

// A held is a message in the worker's hands: claimed, and not settled yet. It takes
// up a slot for as long as it is held.
type held struct {
	source *source
	d      queue.Delivery

	running   bool // its handler has not returned
	lost      error
	stuck     bool // its handler ignored its cancelled context for the grace
	abandoned bool // the worker ends without waiting for its handler

	started   time.Time
	cancel    context.CancelCauseFunc
	cancelled time.Time // when its context is, or will be by the time limit; zero: not known
	cause     error     // of that

	leased time.Time // when the call began that gave it its lease; zero: renew at once

	// Once it is not running any more:
	verdict verdict
	elapsed time.Duration
	delay   time.Duration // drawn once
	tries   int           // settlements that failed
	after   time.Time     // not to be settled before
	doubt   bool          // a settlement may have happened
	err     error         // what the last settlement met
}

// start runs the handler of a message that was just claimed.
func (w *worker) start(m *held) {
	ctx, cancel := limited(w.base, m.source.o.Timeout)
	m.running, m.started, m.cancel = true, w.now, cancel
	if m.source.o.Timeout > 0 {
		m.cancelled, m.cause = m.started.Add(m.source.o.Timeout), ErrTimeout
	}
	run, d := m.source.run, m.d
	m.d.Payload = nil // the handler's from here on
	attempt(ctx, func(ctx context.Context) error { return run(ctx, d) }, m.source.o.Retry, d.Failures, func(v verdict) {
		cancel(nil)
		w.results <- result{m, v} // has room for one of every slot: it never waits
	})
}

// A result is what a handler came to.
type result struct {
	m *held
	v verdict
}

// finish takes the result of a handler.
func (w *worker) finish(m *held, v verdict) {
	m.elapsed = w.now.Sub(m.started)
	w.pace.handled(m.elapsed)
	if v.panicked {
		e := about(EventPanicked, m)
		e.Err, e.Elapsed = v.err, m.elapsed
		w.tell(e, v.cause)
	}
	if m.abandoned || m.lost != nil {
		w.drop(m, v)
		return
	}
	m.running = false
	m.settleAs(v, w.o.seams)
}

// settleAs notes what is to become of a message.
func (m *held) settleAs(v verdict, s seams) {
	m.verdict, m.delay = v, v.delay(s)
}

// drop tells of an answer that nobody waits for any more, and frees the slot.
func (w *worker) drop(m *held, v verdict) {
	e := about(EventDropped, m)
	e.Action, e.Elapsed, e.Err = v.action, m.elapsed, v.err
	w.tell(e, v.line())
	if !m.abandoned { // else its slot went with the release
		w.forget(m)
	}
}

// lose tells that a claim is not ours any more. Its handler keeps the slot until it
// returns.
func (w *worker) lose(m *held, err error) {
	e := about(EventLost, m)
	e.Action, e.Elapsed, e.Err = m.verdict.action, m.elapsed, err
	w.tell(e, "")
	if !m.running {
		w.forget(m)
		return
	}
	m.lost = err
	w.interrupt(m, err)
}

// interrupt cancels the context of a running handler.
func (w *worker) interrupt(m *held, cause error) {
	m.cancel(cause)
	if m.cancelled.IsZero() || m.cancelled.After(w.now) {
		m.cancelled, m.cause = w.now, cause
	}
}

// forget frees the slot of a message.
func (w *worker) forget(m *held) {
	for i, other := range w.held {
		if other == m {
			w.held = append(w.held[:i], w.held[i+1:]...)
			return
		}
	}
}

// reportStuck tells of handlers that ignore their cancelled context, and ends the
// renewals of their leases, so that the messages come back. Their slots stay taken:
// Go has no way to stop them, and a worker that went on as if they were gone would
// pile up one after the other until the process is out of memory.
func (w *worker) reportStuck() {
	for _, m := range w.held {
		if !m.running || m.stuck || m.cancelled.IsZero() || !w.due(m.cancelled.Add(w.o.Grace)) {
			continue
		}
		m.stuck = true
		e := about(EventStuck, m)
		e.Elapsed, e.Err = w.now.Sub(m.started), m.cause
		w.tell(e, "")
	}
}
