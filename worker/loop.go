package worker

import (
	"context"
	"errors"
	"time"

	"example.com/holdfast/queue"
)

// A worker is one Run. Its fields belong to the loop, which alone reads and writes
// them; other goroutines reach it through the channels.
type worker struct {
	store   queue.Store
	sources []*source
	o       GroupOptions
	lease   time.Duration // the shortest of the sources

	base context.Context // of handlers and logs: never cancelled
	soft context.Context // of claims, reaping and waiting: ends when the drain begins
	hard context.Context // of settling and renewing: ends when Run has to
	stop context.CancelFunc
	kill context.CancelFunc

	held     []*held
	results  chan result
	returned chan func() // what is to be done with the result of a store call
	calling  bool        // one is under way
	woken    chan error  // what WaitDue returned
	watching *watch

	now   time.Time // of this turn, with the monotonic clock
	seen  time.Time // the wall clock at the same moment
	wake  time.Time // the earliest time at which something is to be done; zero: none
	jumps int       // seen so far

	settling, renewing, reaping, waiting patience
	pace                                 pace

	passed      bool // claims that failed before gave way to settlements
	justRenewed bool // the last store call was a renewal
	vain        int  // times in a row that WaitDue returned and nothing was found

	reapAt  time.Time
	delays  int // times in a row that reaping was put off
	reapSet int // the next of the sets that are reaped one by one

	phase phase
	until time.Time // when the phase ends
	err   error     // why Run gives up
}

func newWorker(ctx context.Context, store queue.Store, sources []source, o GroupOptions) *worker {
	w := &worker{
		store: store, o: o,
		base:     context.WithoutCancel(ctx),
		results:  make(chan result, o.Concurrency),
		returned: make(chan func()),
		woken:    make(chan error),
	}
	for _, s := range sources {
		w.sources = append(w.sources, &s)
		if w.lease == 0 || s.o.Lease < w.lease {
			w.lease = s.o.Lease
		}
	}
	w.soft, w.stop = context.WithCancel(ctx)
	w.hard, w.kill = context.WithCancel(w.base)
	return w
}

// run is the loop: each turn does what is due, then sleeps until something happens or
// the next thing is due.
func (w *worker) run(ctx context.Context) error {
	defer w.kill()
	defer w.collecting()()
	w.now = time.Now()
	w.seen = w.o.seams.wall(w.now).Round(0)
	w.reapAt = w.now
	timer := time.NewTimer(0)
	defer timer.Stop()
	cancelled := ctx.Done()
	for {
		w.wake = time.Time{}
		if ctx.Err() != nil {
			cancelled = nil
			w.drain(w.o.Drain)
		}
		w.advance()
		w.reportStuck()
		w.watch()
		if w.over() {
			return w.end()
		}
		if !w.calling && w.phase != ended {
			w.call()
		}
		timer.Stop()
		if !w.wake.IsZero() {
			timer.Reset(time.Until(w.wake))
		}
		var happened func()
		select {
		case <-cancelled:
			happened = func() {} // the turn begins with it
		case r := <-w.results:
			happened = func() { w.finish(r.m, r.v) }
		case apply := <-w.returned:
			happened = func() { w.calling = false; apply() }
		case err := <-w.woken:
			happened = func() { w.awake(err) }
		case <-timer.C:
			happened = func() {}
		}
		w.tick() // first: what happened is judged by the clock of now
		happened()
		w.finishMore()
	}
}

// finishMore takes the results that are there by now: one turn, and one commit, is
// enough for all of them.
func (w *worker) finishMore() {
	for {
		select {
		case r := <-w.results:
			w.finish(r.m, r.v)
		default:
			return
		}
	}
}

// due reports whether a time has come, and else sees to it that the loop wakes then.
func (w *worker) due(t time.Time) bool {
	if !t.After(w.now) {
		return true
	}
	if w.wake.IsZero() || t.Before(w.wake) {
		w.wake = t
	}
	return false
}

// call begins the most urgent store call that there is reason for. One at a time:
// they all wait for the same lock of the store, and the worker can say in which order
// its own take effect. Renewals go before reaping, so that the worker does not reap
// what it could keep; reaping before claims, so that a busy queue does not starve it.
// On a store so slow that renewals are owed all the time, each second call is another.
func (w *worker) call() {
	if w.justRenewed {
		w.justRenewed = false
		if w.work() {
			return
		}
	}
	if w.renew() || w.reap() || w.work() {
		return
	}
}

// begin runs a store call beside the loop; apply is then run in the loop.
func (w *worker) begin(call func() (apply func())) {
	w.calling = true
	began := w.now
	go func() {
		apply := call()
		w.returned <- func() {
			if took := w.now.Sub(began); took >= w.lease/3 {
				w.putOff(took) // others could not renew meanwhile either
			}
			apply()
		}
	}()
}

// failed notes that a store call failed, and ends the worker where that is useless to
// repeat. It is not told of calls that only the end of the worker cut off.
func (w *worker) failed(op string, p *patience, err error) {
	pause := p.fail(w.now, w.o.seams)
	e := Event{Kind: EventStoreFailed, Op: op, Err: err, Delay: pause, Count: p.failures}
	useless := &StoreError{Op: op, Err: err}
	switch {
	case w.fatal(err):
		useless.Failures = 1
	case op != "reap" && w.o.StoreFailures > 0 && p.failures >= w.o.StoreFailures:
		useless.Failures = p.failures
	default:
		w.tell(e, "")
		return
	}
	e.Delay = 0 // it is not made again
	w.tell(e, "")
	w.fail(useless)
}

// fatal reports whether no repetition of a store call that answered err can help.
func (w *worker) fatal(err error) bool {
	for _, sure := range []error{queue.ErrInvalid, queue.ErrClosed, errors.ErrUnsupported} {
		if errors.Is(err, sure) {
			return true
		}
	}
	return w.named(err)
}

// named asks the option Fatal about an error.
func (w *worker) named(err error) (is bool) {
	if w.o.Fatal != nil {
		w.guard("option Fatal", func() { is = w.o.Fatal(err) })
	}
	return is
}

// cutOff reports whether err says no more than that ctx was cancelled by the worker:
// the call had not entered a commit, and nothing happened.
func cutOff(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, queue.ErrUncertain)
}
