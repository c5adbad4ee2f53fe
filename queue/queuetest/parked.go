package queuetest

import (
	"context"
	"sync/atomic"

	"example.com/holdfast/queue"
)

// A parked is a call that is expected to park.
type parked struct {
	s       *scene
	what    string
	cancel  context.CancelFunc
	allowed atomic.Bool // something has happened by which it may return
	done    chan answer
}

type answer struct {
	status  queue.Status
	err     error
	allowed bool // as it stood when the call returned
}

// begin starts a call and returns when it has parked or returned, as far as one can
// tell.
func (s *scene) begin(what string, call func(ctx context.Context) (queue.Status, error)) *parked {
	s.Helper()
	before := 0
	if s.Parked != nil {
		before = s.Parked()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	p := &parked{s: s, what: what, cancel: cancel, done: make(chan answer, 1)}
	s.Cleanup(cancel)
	go func() {
		st, err := call(ctx)
		p.done <- answer{st, err, p.allowed.Load()}
	}()
	for yield(); s.Parked != nil && s.Parked() <= before && len(p.done) == 0; {
		yield()
	}
	return p
}

// park starts a call that must park.
func (s *scene) park(what string, call func(ctx context.Context) (queue.Status, error)) *parked {
	s.Helper()
	p := s.begin(what, call)
	p.stays()
	return p
}

// atOnce makes a call that has nothing to wait for. Nobody else may be parked then.
func (s *scene) atOnce(what string, call func(ctx context.Context) (queue.Status, error)) queue.Status {
	s.Helper()
	p := s.begin(what, call)
	if s.Parked != nil && len(p.done) == 0 {
		s.Fatalf("%s parked, with nothing to wait for", what)
	}
	a := <-p.done
	s.must(a.err)
	return a.status
}

// parkDue parks in WaitDue.
func (s *scene) parkDue(names ...string) *parked {
	s.Helper()
	return s.park("WaitDue", func(ctx context.Context) (queue.Status, error) {
		return queue.Status{}, s.Store.WaitDue(ctx, names...)
	})
}

// isDue calls WaitDue, which must not park.
func (s *scene) isDue(names ...string) {
	s.Helper()
	s.atOnce("WaitDue", func(ctx context.Context) (queue.Status, error) {
		return queue.Status{}, s.Store.WaitDue(ctx, names...)
	})
}

// parkWait parks in Wait.
func (s *scene) parkWait(o queue.WaitOptions) *parked {
	s.Helper()
	return s.park("Wait", func(ctx context.Context) (queue.Status, error) { return s.Store.Wait(ctx, o) })
}

// wait calls Wait, which must not park.
func (s *scene) wait(o queue.WaitOptions) queue.Status {
	s.Helper()
	return s.atOnce("Wait", func(ctx context.Context) (queue.Status, error) { return s.Store.Wait(ctx, o) })
}

// stays checks that the call has not returned.
func (p *parked) stays() {
	p.s.Helper()
	yield()
	select {
	case a := <-p.done:
		p.s.Fatalf("%s returned %v before there was a reason", p.what, a.err)
	default:
	}
}

// returns checks that the call returns after wake, and not before it began. If
// nothing wakes it, the test hangs here until its time is up.
func (p *parked) returns(wake func()) queue.Status {
	p.s.Helper()
	p.stays()
	p.allowed.Store(true)
	wake()
	return p.answers()
}

// answers waits for a call that may return by now.
func (p *parked) answers() queue.Status {
	p.s.Helper()
	a := <-p.done
	if !a.allowed || a.err != nil {
		p.s.Fatalf("%s returned %v; it had a reason: %v", p.what, a.err, a.allowed)
	}
	return a.status
}

// ends checks that the call returns want after end.
func (p *parked) ends(want error, end func()) {
	p.s.Helper()
	p.stays()
	p.allowed.Store(true)
	end()
	a := <-p.done
	if p.s.is(a.err, want); !a.allowed {
		p.s.Fatalf("%s returned %v too early", p.what, a.err)
	}
}
