package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

var loadTrials = []trial{
	{"whatever the schedule", loadSchedule},
	{"one that came back", loadReturned},
	{"no such message", loadNotFound},
	{"a leased one is refused until its deadline", loadLeased},
	{"a takeover is a lapse", loadTakeover},
	{"a lease without deadline that names no holder", loadNoDeadline},
	{"a lease without deadline of a living holder", loadHeld},
	{"out of the order of its key", loadKeyOrder},
	{"not while its key is leased", loadKeyLeased},
	{"the older generation first", loadOlder},
	{"on a paused queue", loadPaused},
	{"refused names", loadNames},
}

// cannotLoad checks a refusal of Load.
func (s *scene) cannotLoad(name, id string, want error) {
	s.Helper()
	s.refuses(want, func() error {
		_, err := s.Store.Load(s.ctx, name, id, queue.LoadOptions{})
		return err
	})
	s.refusedAt(0, want, queue.LoadChange{Queue: name, ID: id})
}

func loadSchedule(s *scene) {
	s.put(mail, "first")
	e := s.put(mail, "a", s.after(time.Hour), key("k"))
	d := s.load(mail, "a")
	equal(s, "generation", d.Receipt.Generation, e.Generation)
	equal(s, "attempt", d.Attempt(), 1)
	equal(s, "payload", string(d.Payload), string(payloadOf("a")))
	equal(s, "key", d.Key, "k")
	s.sameTime("deadline", d.Deadline, s.Now().Add(minute))
	s.gauged(mail, gauges{ready: 1, processing: 1})
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 1})
	s.release(d.Receipt, 0) // the schedule was for the first delivery
	s.takes(mail, 5, "first a")
}

func loadReturned(s *scene) {
	s.put(mail, "a")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Delay: time.Hour, Cause: "no"})
	d := s.load(mail, "a")
	equal(s, "attempt", d.Attempt(), 2)
	equal(s, "failures", d.Failures, 1)
	equal(s, "lapses", d.Lapses, 0)
	equal(s, "last error", d.LastError, "no")
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 2, Retried: 1})
}

func loadNotFound(s *scene) {
	s.cannotLoad("unknown", "a", queue.ErrNotFound)
	s.put(mail, "b")
	s.cannotLoad(mail, "a", queue.ErrNotFound)
	s.fail(s.load(mail, "b").Receipt, "no")
	s.cannotLoad(mail, "b", queue.ErrNotFound)
}

func loadLeased(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.cannotLoad(mail, "a", queue.ErrLeased)
	s.Advance(minute - time.Millisecond)
	s.cannotLoad(mail, "a", queue.ErrLeased)
	s.Advance(time.Millisecond)
	equal(s, "attempt", s.load(mail, "a").Attempt(), 2)
	s.loses(d.Receipt, queue.ErrStale, 2, func() error { return s.Store.Ack(s.ctx, d.Receipt) })
}

func loadTakeover(s *scene) {
	s.put(mail, "a")
	first := s.take(mail, "a")
	s.Advance(minute)
	d := s.load(mail, "a")
	if d.Fence <= first.Fence {
		s.Fatalf("fence %d after %d", d.Fence, first.Fence)
	}
	equal(s, "lapses", d.Lapses, 1)
	equal(s, "failures", d.Failures, 0)
	e := s.entry(mail, "a")
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{2, 0, 1})
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 2, Reaped: 1})
	s.gauged(mail, gauges{processing: 1})
	s.ack(d.Receipt)
}

func loadNoDeadline(s *scene) {
	s.put(mail, "a")
	c := s.claim(mail, queue.ClaimOptions{Lease: queue.NoDeadline, WithoutHolder: true})[0]
	d, err := s.Store.Load(s.ctx, mail, "a", queue.LoadOptions{Lease: queue.NoDeadline, WithoutHolder: true})
	s.must(err)
	equal(s, "attempt", d.Attempt(), 2)
	equal(s, "lapses", d.Lapses, 1)
	s.loses(c.Receipt, queue.ErrStale, 2, func() error { return s.Store.Ack(s.ctx, c.Receipt) })
	s.gauged(mail, gauges{processing: 1})
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 2, Reaped: 1})
}

func loadHeld(s *scene) {
	s.put(mail, "a")
	c := s.claim(mail, queue.ClaimOptions{Lease: queue.NoDeadline})[0]
	s.cannotLoad(mail, "a", queue.ErrLeased)
	s.gauged(mail, gauges{processing: 1})
	s.ack(c.Receipt)
}

func loadKeyOrder(s *scene) {
	s.put(mail, "a", key("k"))
	s.put(mail, "b", key("k"))
	d := s.load(mail, "b")
	s.gauged(mail, gauges{blocked: 1, processing: 1})
	s.takes(mail, 5, "")
	s.release(d.Receipt, time.Hour)
	s.takes(mail, 5, "a") // b came back, behind a
}

func loadKeyLeased(s *scene) {
	s.put(mail, "a", key("k"))
	s.put(mail, "b", key("k"))
	s.put(mail, "c", key("l"))
	d := s.take(mail, "a")
	s.cannotLoad(mail, "b", queue.ErrLeased)
	s.load(mail, "c")
	s.Advance(time.Hour) // the lease of another message is not b's to take over
	s.cannotLoad(mail, "b", queue.ErrLeased)
	s.ack(d.Receipt)
	s.load(mail, "b")
}

func loadOlder(s *scene) {
	s.put(mail, "a", holding("1"))
	d := s.take(mail, "a")
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.cannotLoad(mail, "a", queue.ErrLeased)
	s.release(d.Receipt, time.Hour)
	d = s.load(mail, "a")
	equal(s, "payload", string(d.Payload), "1")
	s.Advance(minute)
	d = s.load(mail, "a")
	equal(s, "payload", string(d.Payload), "1")
	s.ack(d.Receipt)
	equal(s, "payload", string(s.load(mail, "a").Payload), "2")
}

func loadPaused(s *scene) {
	s.put(mail, "a")
	s.pause(mail)
	s.takes(mail, 5, "")
	s.ack(s.load(mail, "a").Receipt)
}

func loadNames(s *scene) {
	s.cannotLoad("a//b", "a", queue.ErrInvalidName)
	s.cannotLoad(mail, "", queue.ErrInvalidName)
	s.cannotLoad(mail, ".a", queue.ErrInvalidName)
}
