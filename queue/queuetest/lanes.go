package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

// Who holds a key, where schedules, generations and keys meet.

var laneTrials = []trial{
	{"a scheduled one holds nobody until it is due", lanesScheduled},
	{"once due it takes its place", lanesDueTakesPlace},
	{"leased already when an older one comes due", lanesLeasedFirst},
	{"one behind its own ID holds nobody", lanesBehindOwnID},
	{"a newer generation joins when the older ends", lanesNewerJoins},
	{"a generation may have another key", lanesOtherKey},
	{"superseding leaves the lane", lanesSuperseded},
	{"two that came back", lanesTwoReturned},
	{"which gauge counts first", lanesGauges},
}

func lanesScheduled(s *scene) {
	s.put(mail, "a", key("k"), s.after(minute))
	s.putKeyed(mail, "k", "b", "c")
	s.gauged(mail, gauges{ready: 1, scheduled: 1, blocked: 1})
	s.ack(s.take(mail, "b").Receipt)
	s.ack(s.take(mail, "c").Receipt)
	s.Advance(minute)
	s.take(mail, "a")
}

func lanesDueTakesPlace(s *scene) {
	s.put(mail, "a", key("k"), s.after(minute))
	s.putKeyed(mail, "k", "b", "c")
	s.ack(s.take(mail, "b").Receipt)
	s.Advance(minute)
	s.gauged(mail, gauges{ready: 1, blocked: 1})
	d := s.takes(mail, 5, "a")[0] // ahead of c, which was enqueued later
	s.release(d.Receipt, minute)
	s.takes(mail, 5, "")
}

func lanesLeasedFirst(s *scene) {
	s.put(mail, "a", key("k"), s.after(time.Second))
	s.putKeyed(mail, "k", "b")
	d := s.take(mail, "b")
	s.Advance(time.Second)
	s.gauged(mail, gauges{blocked: 1, processing: 1})
	s.takes(mail, 5, "")
	s.release(d.Receipt, 0)
	s.gauged(mail, gauges{ready: 1, blocked: 1})
	s.takes(mail, 5, "a")
}

func lanesBehindOwnID(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.put(mail, "a", how(queue.Replace), key("k"))
	s.putKeyed(mail, "k", "b", "c")
	s.gauged(mail, gauges{ready: 1, blocked: 2, processing: 1})
	b := s.takes(mail, 5, "b")[0]
	s.ack(d.Receipt)
	s.gauged(mail, gauges{blocked: 2, processing: 1})
	s.ack(b.Receipt)
	s.takes(mail, 5, "a") // its place is before that of c
}

func lanesNewerJoins(s *scene) {
	s.putKeyed(mail, "k", "a")
	d := s.take(mail, "a")
	s.put(mail, "a", how(queue.Replace), key("k"), holding("2"))
	s.putKeyed(mail, "k", "b")
	s.release(d.Receipt, 0)
	s.gauged(mail, gauges{ready: 1, blocked: 2})
	d = s.takes(mail, 5, "a")[0]
	s.ack(d.Receipt)
	d = s.takes(mail, 5, "a")[0]
	equal(s, "payload", string(d.Payload), "2")
	s.ack(d.Receipt)
	s.takes(mail, 5, "b")
}

func lanesOtherKey(s *scene) {
	s.putKeyed(mail, "k", "a")
	d := s.take(mail, "a")
	s.put(mail, "a", how(queue.Replace), key("l"))
	s.putKeyed(mail, "l", "b")
	s.putKeyed(mail, "k", "c")
	b := s.takes(mail, 5, "b")[0]
	s.release(d.Receipt, time.Hour)
	s.ack(b.Receipt)
	s.takes(mail, 5, "") // a waits, its newer generation waits for it, c for key k
	s.ack(s.load(mail, "a").Receipt)
	s.takes(mail, 5, "a c")
}

func lanesSuperseded(s *scene) {
	s.putKeyed(mail, "k", "a", "b")
	s.put(mail, "a", how(queue.Replace), key("k"))
	s.gauged(mail, gauges{ready: 1, blocked: 1})
	s.ack(s.takes(mail, 5, "b")[0].Receipt)
	s.putKeyed(mail, "k", "c")
	s.put(mail, "a", how(queue.Replace))
	s.takes(mail, 5, "c a")
}

func lanesTwoReturned(s *scene) {
	s.putKeyed(mail, "k", "a", "b", "c")
	s.release(s.load(mail, "b").Receipt, minute)
	s.gauged(mail, gauges{ready: 1, scheduled: 1, blocked: 1})
	s.release(s.take(mail, "a").Receipt, 2*minute)
	s.gauged(mail, gauges{scheduled: 2, blocked: 1})
	s.Advance(minute)
	s.gauged(mail, gauges{scheduled: 1, blocked: 2}) // b is due, behind a
	s.takes(mail, 5, "")
	s.Advance(minute)
	s.ack(s.takes(mail, 5, "a")[0].Receipt)
	s.ack(s.takes(mail, 5, "b")[0].Receipt)
	s.takes(mail, 5, "c")
}

func lanesGauges(s *scene) {
	s.putKeyed(mail, "k", "a")
	s.take(mail, "a")
	s.put(mail, "a", how(queue.Replace), s.after(minute))
	s.put(mail, "b", key("k"), s.after(minute))
	s.put(mail, "c", key("k"))
	s.gauged(mail, gauges{scheduled: 1, blocked: 2, processing: 1})
	equal(s, "behind its own ID", s.show(mail, "a", 2)[1].State, queue.Blocked)
	equal(s, "behind its schedule", s.entry(mail, "b").State, queue.Scheduled)
	equal(s, "behind its key", s.entry(mail, "c").State, queue.Blocked)
	s.Advance(minute)
	s.gauged(mail, gauges{blocked: 3, processing: 1, overdue: 1})
}
