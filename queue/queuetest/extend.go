package queuetest

import (
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

var extendTrials = []trial{
	{"the deadline moves", extendMoves},
	{"an overdue one", extendOverdue},
	{"a reaped one goes back into processing", extendReaped},
	{"a reaped one whose key was claimed meanwhile", extendKeyTaken},
	{"a reaped one with a newer one behind it", extendNewerBehind},
	{"refused leases", extendRefused},
}

func extendMoves(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.Advance(time.Second)
	for _, lease := range []time.Duration{time.Hour, time.Millisecond, 0, queue.NoDeadline, queue.MaxLease, minute} {
		want := s.ends(lease)
		s.sameTime("deadline", s.extend(d.Receipt, lease), want)
		e := s.entry(mail, "a")
		s.sameTime("deadline shown", e.Deadline, want)
		equal(s, "receipt", e.Receipt, d.Receipt)
		equal(s, "fence", e.Fence, d.Fence)
	}
	s.Advance(minute - time.Millisecond)
	equal(s, "reaped", len(s.reap(queue.ReapOptions{})), 0)
	s.Advance(time.Millisecond)
	equal(s, "reaped", s.reapOne().ID, "a")
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 1, Reaped: 1})
}

func extendOverdue(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.Advance(time.Hour)
	s.gauged(mail, gauges{processing: 1, overdue: 1})
	s.extend(d.Receipt, minute)
	s.gauged(mail, gauges{processing: 1})
	equal(s, "reaped", len(s.reap(queue.ReapOptions{})), 0)
	s.ack(d.Receipt)
}

func extendReaped(s *scene) {
	s.put(mail, "first")
	s.put(mail, "a", key("k"))
	d := s.claim(mail, queue.ClaimOptions{Max: 2, Lease: minute, Label: "w"})[1]
	s.put(mail, "b", key("k"))
	s.Advance(minute)
	s.reap(queue.ReapOptions{})
	s.gauged(mail, gauges{ready: 2, blocked: 1})
	s.sameTime("deadline", s.extend(d.Receipt, time.Hour), s.Now().Add(time.Hour))
	e := s.entry(mail, "a")
	equal(s, "state, returned", fmt.Sprint(e.State, e.Returned), fmt.Sprint(queue.Processing, ""))
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{1, 0, 0})
	equal(s, "receipt", e.Receipt, d.Receipt)
	s.sameTime("deadline shown", e.Deadline, s.Now().Add(time.Hour))
	s.gauged(mail, gauges{ready: 1, blocked: 1, processing: 1})
	s.takes(mail, 5, "first")
	s.Advance(minute)
	equal(s, "reaped", s.reapOne().ID, "first")
	s.counted(mail, queue.Counters{Enqueued: 3, Claimed: 3, Reaped: 3})
	s.ack(d.Receipt)
}

func extendKeyTaken(s *scene) {
	s.put(mail, "a", key("k"))
	s.put(mail, "b", key("k"))
	d := s.take(mail, "a")
	s.Advance(minute)
	s.reapOne()
	other := s.load(mail, "b") // which does not keep to the order of the key
	s.loses(d.Receipt, queue.ErrStale, 1, func() error {
		_, err := s.Store.Extend(s.ctx, d.Receipt, minute)
		return err
	})
	s.ack(other.Receipt)
	s.extend(d.Receipt, minute) // nobody has claimed a itself
	s.ack(d.Receipt)
}

func extendNewerBehind(s *scene) {
	s.put(mail, "a", holding("1"))
	d := s.take(mail, "a")
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.Advance(minute)
	s.reapOne()
	s.gauged(mail, gauges{ready: 1, blocked: 1})
	s.extend(d.Receipt, minute)
	s.gauged(mail, gauges{blocked: 1, processing: 1})
	s.ack(d.Receipt)
	equal(s, "payload", string(s.take(mail, "a").Payload), "2")
}

func extendRefused(s *scene) {
	s.put(mail, "a")
	r := s.take(mail, "a").Receipt
	for _, lease := range []time.Duration{-2, time.Millisecond - 1, queue.MaxLease + 1} {
		s.refuses(queue.ErrInvalid, func() error {
			_, err := s.Store.Extend(s.ctx, r, lease)
			return err
		})
	}
}
