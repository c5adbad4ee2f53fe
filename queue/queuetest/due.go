package queuetest

import (
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

var dueTrials = []trial{
	{"due already", dueAlready},
	{"an enqueue wakes", dueEnqueue},
	{"any queue", dueAnyQueue},
	{"the time wakes", dueTime},
	{"the earliest of several times", dueEarliest},
	{"a return wakes", dueReturn},
	{"a key that is free wakes", dueKey},
	{"a generation whose elder has left wakes", dueGeneration},
	{"a resume wakes", dueResume},
	{"an update wakes", dueUpdate},
	{"all who wait are woken", dueMany},
	{"no wake-up is missed", dueNoneMissed},
	{"refused names", dueRefused},
}

func dueAlready(s *scene) {
	s.put(mail, "a", at(s.Now()))
	s.isDue(mail)
	s.isDue("unknown", mail)
	s.isDue()
	s.gauged(mail, gauges{ready: 1}) // it claims nothing
}

func dueEnqueue(s *scene) {
	p := s.parkDue(mail)
	p.returns(func() { s.put(mail, "a") })
	s.take(mail, "a")
	p = s.parkDue(mail) // a leased one is not due
	p.returns(func() { s.enqueueBatch(mail, message("b", s.after(minute)), message("c")) })
}

func dueAnyQueue(s *scene) {
	named, any := s.parkDue("x", spool), s.parkDue()
	any.returns(func() { s.put(mail, "a") })
	named.stays()
	named.returns(func() { s.put(spool, "a") })
	s.takes(mail, 1, "a")
	s.takes(spool, 1, "a")
	p := s.parkDue()
	p.returns(func() { s.put("never/heard/of", "a") })
}

func dueTime(s *scene) {
	s.put(mail, "a", s.after(minute))
	p := s.parkDue(mail)
	s.Advance(minute - time.Millisecond)
	p.stays()
	p.returns(func() { s.Advance(time.Millisecond) })
	s.take(mail, "a")
	p = s.parkDue()
	s.Advance(time.Hour) // a lease that is over makes nothing due
	p.stays()
	p.returns(func() { s.reapOne() })
}

func dueEarliest(s *scene) {
	s.put(mail, "a", s.after(3*minute))
	p := s.parkDue(mail, spool)
	s.put(spool, "b", s.after(2*minute))
	s.put(mail, "c", s.after(minute))
	p.stays()
	s.clear(mail, false, 2) // the earliest is no more
	s.Advance(minute)
	p.stays()
	p.returns(func() { s.Advance(minute) })
	s.takes(spool, 1, "b")
}

func dueReturn(s *scene) {
	s.put(mail, "a")
	for _, c := range []struct {
		name string
		back func(r queue.Receipt)
	}{
		{"release", func(r queue.Receipt) { s.release(r, 0) }},
		{"retry", func(r queue.Receipt) { s.retry(r, queue.RetryOptions{}) }},
		{"snooze", func(r queue.Receipt) {
			s.release(r, minute)
			s.Advance(minute)
		}},
		{"retry with a delay", func(r queue.Receipt) {
			s.retry(r, queue.RetryOptions{Delay: minute})
			s.Advance(minute)
		}},
		{"reap", func(r queue.Receipt) { s.reap(queue.ReapOptions{Receipt: &r}) }},
		{"reprocess", func(r queue.Receipt) {
			s.fail(r, "no")
			s.reprocess("a")
		}},
	} {
		s.Log(c.name)
		r := s.take(mail, "a").Receipt
		p := s.parkDue(mail)
		p.returns(func() { c.back(r) })
	}
}

func dueKey(s *scene) {
	s.putKeyed(mail, "k", "a", "b")
	d := s.take(mail, "a")
	p := s.parkDue(mail)
	s.extend(d.Receipt, time.Hour)
	p.stays()
	s.release(d.Receipt, minute) // it holds its key
	p.stays()
	d = s.load(mail, "a")
	p.returns(func() { s.ack(d.Receipt) })
	s.take(mail, "b")
}

func dueGeneration(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	p := s.parkDue(mail)
	s.put(mail, "a", how(queue.Replace))
	p.stays()
	p.returns(func() { s.fail(d.Receipt, "no") })
}

func dueResume(s *scene) {
	s.pause(mail)
	s.put(mail, "a")
	p := s.parkDue(mail)
	any := s.parkDue()
	s.put(mail, "b")
	any.stays()
	any.allowed.Store(true)
	p.returns(func() { s.resume(mail) })
	any.answers()
}

func dueUpdate(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	p := s.parkDue(mail)
	q := s.parkDue(spool)
	s.refusedAt(1, queue.ErrInvalidName,
		queue.EnqueueChange{Queue: spool, Message: message("x")}, queue.EnqueueChange{Queue: "a//b"})
	q.stays()
	q.returns(func() {
		s.update(queue.AckChange{Receipt: d.Receipt}, queue.EnqueueChange{Queue: spool, Message: message("x")})
	})
	p.stays()
	p.returns(func() { s.update(queue.EnqueueChange{Queue: mail, Message: message("b")}) })
}

func dueMany(s *scene) {
	var ps []*parked
	for range 8 {
		ps = append(ps, s.parkDue(mail))
	}
	for _, p := range ps {
		p.stays()
		p.allowed.Store(true)
	}
	s.put(mail, "a") // which nobody claims
	for _, p := range ps {
		p.answers()
	}
}

// dueNoneMissed lets a claimer that only WaitDue tells of messages race with who
// enqueues the next one when the one before is settled.
func dueNoneMissed(s *scene) {
	const rounds = 50
	settled := make(chan error, 1)
	go func() {
		for i := range rounds {
			settled <- func() error {
				if err := s.Store.WaitDue(s.ctx, mail); err != nil {
					return err
				}
				c, err := s.Store.Claim(s.ctx, mail, queue.ClaimOptions{})
				if err != nil || len(c.Deliveries) != 1 {
					return fmt.Errorf("round %d: claimed %v, %v after WaitDue", i, c, err)
				}
				return s.Store.Ack(s.ctx, c.Deliveries[0].Receipt)
			}()
		}
	}()
	for i := range rounds {
		if i%3 == 0 {
			yield()
		}
		s.put(mail, "")
		s.must(<-settled)
	}
	s.wait(queue.WaitOptions{})
}

func dueRefused(s *scene) {
	s.is(s.Store.WaitDue(s.ctx, mail, "a//b"), queue.ErrInvalidName)
}
