package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

var fenceTrials = []trial{
	{"T04 a late worker", fenceLateWorker},
	{"attempts grow within a generation and begin anew with the next", fenceAttempts},
	{"sixteen settle one claim at once", fenceSixteen},
	{"fences grow in the whole store and never repeat", fenceGrows},
}

func fenceLateWorker(s *scene) {
	s.puts(mail, "a", "b")
	late := s.claim(mail, queue.ClaimOptions{Lease: time.Second})[0]
	s.Advance(2 * time.Second)
	equal(s, "reaped attempt", s.reapOne().Attempt, 1)
	d := s.take(mail, "a")
	equal(s, "attempt", d.Attempt(), 2)
	for _, c := range s.settlements() {
		s.Log(c.name)
		s.loses(late.Receipt, queue.ErrStale, 2, func() error { return c.call(late.Receipt) })
		other := late.Receipt
		other.ID = "b" // the right attempt with another ID
		s.loses(other, queue.ErrGone, 0, func() error { return c.call(other) })
	}
	s.ack(d.Receipt)
	for _, c := range s.settlements() {
		s.loses(late.Receipt, queue.ErrGone, 0, func() error { return c.call(late.Receipt) })
	}
	s.ack(s.take(mail, "b").Receipt)
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 3, Completed: 2, Reaped: 1})
}

func fenceAttempts(s *scene) {
	s.put(mail, "a")
	for attempt := range uint64(4) {
		d := s.take(mail, "a")
		equal(s, "attempt", d.Attempt(), attempt+1)
		switch attempt {
		case 0:
			s.release(d.Receipt, 0)
		case 1:
			s.retry(d.Receipt, queue.RetryOptions{})
		case 2:
			s.fail(d.Receipt, "no")
			s.reprocess("a")
		case 3:
			s.put(mail, "a", how(queue.Replace))
			s.ack(d.Receipt)
		}
	}
	equal(s, "attempt of the next generation", s.take(mail, "a").Attempt(), 1)
}

func fenceSixteen(s *scene) {
	for range 5 {
		s.put(mail, "a")
		r := s.take(mail, "a").Receipt
		before := s.status(mail).Counters
		errs := s.together(16, func(i int) error {
			switch i % 4 {
			case 0:
				return s.Store.Ack(s.ctx, r)
			case 1:
				return s.settle("retry at the cap", r)
			case 2:
				return s.settle("release", r)
			default:
				return s.settle("retry", r)
			}
		})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				s.is(err, queue.ErrLost)
			}
		}
		n := s.status(mail).Counters
		settled := n.Completed + n.Failed + n.Released + n.Retried - before.Completed - before.Failed - before.Released - before.Retried
		equal(s, "who settled it, and how often it counted", [2]uint64{uint64(won), settled}, [2]uint64{1, 1})
		s.clear(mail, false, s.status(mail).Unacked())
	}
}

func fenceGrows(s *scene) {
	last := uint64(0)
	next := func(d queue.Delivery) {
		s.Helper()
		if d.Fence <= last {
			s.Fatalf("fence %d came after %d", d.Fence, last)
		}
		last = d.Fence
	}
	s.puts(mail, "a", "b", "c")
	s.puts(spool, "x")
	for _, d := range s.takes(mail, 2, "a b") {
		next(d)
	}
	next(s.take(spool, "x"))
	next(s.load(mail, "c"))
	s.Advance(minute)
	next(s.load(mail, "a")) // taken over
	s.reap(queue.ReapOptions{})
	out := s.update(
		queue.ClaimChange{Queue: mail},
		queue.ClaimChange{Queue: spool},
		queue.EnqueueChange{Queue: spool, Message: message("y")},
		queue.ClaimChange{Queue: spool, Options: queue.ClaimOptions{Fair: true}},
	)
	for _, i := range []int{0, 1, 3} {
		next(out[i].Claimed.Deliveries[0])
	}
	s.clear(mail, true, 3)
	s.clear(spool, true, 2)
	s.put(mail, "a")
	next(s.take(mail, "a"))
}
