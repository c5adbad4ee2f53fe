package queuetest

import (
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

var releaseTrials = []trial{
	{"at once, excused", releaseAtOnce},
	{"a snooze", releaseSnooze},
	{"a reaped one's lapse is excused", releaseReaped},
	{"ahead of a newer one", releaseAhead},
}

func releaseAtOnce(s *scene) {
	s.puts(mail, "a", "b")
	d := s.take(mail, "a")
	s.release(d.Receipt, 0)
	e := s.entry(mail, "a")
	equal(s, "state, returned", fmt.Sprint(e.State, e.Returned), fmt.Sprint(queue.Ready, "released"))
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{1, 1, 0})
	s.sameTime("not before", e.NotBefore, time.Time{})
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 1, Released: 1})
	d = s.take(mail, "a")
	equal(s, "failures", d.Failures, 0)
	equal(s, "attempt", d.Attempt(), 2)
}

func releaseSnooze(s *scene) {
	s.puts(mail, "a", "b")
	s.release(s.take(mail, "a").Receipt, minute)
	e := s.entry(mail, "a")
	equal(s, "state, returned", fmt.Sprint(e.State, e.Returned), fmt.Sprint(queue.Scheduled, "released"))
	s.sameTime("not before", e.NotBefore, s.Now().Add(minute))
	equal(s, "excused", e.Excused, 1)
	s.Advance(minute - time.Millisecond)
	equal(s, "peek", idsOf(s.peek(mail, 5)), "b")
	s.Advance(time.Millisecond)
	s.takes(mail, 5, "a b")
}

func releaseReaped(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.Advance(minute)
	s.reapOne()
	s.release(d.Receipt, minute)
	e := s.entry(mail, "a")
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{1, 1, 0})
	equal(s, "state, returned", fmt.Sprint(e.State, e.Returned), fmt.Sprint(queue.Scheduled, "released"))
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 1, Reaped: 1, Released: 1})
	s.loses(d.Receipt, queue.ErrStale, 1, func() error { return s.Store.Ack(s.ctx, d.Receipt) })
}

func releaseAhead(s *scene) {
	s.put(mail, "a", holding("1"))
	d := s.take(mail, "a")
	s.puts(mail, "b")
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.release(d.Receipt, 0)
	s.gauged(mail, gauges{ready: 2, blocked: 1})
	ds := s.takes(mail, 5, "a b")
	equal(s, "payload", string(ds[0].Payload), "1")
}
