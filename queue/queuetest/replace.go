package queuetest

import "example.com/holdfast/queue"

var replaceTrials = []trial{
	{"a pending one is superseded", replacePending},
	{"the newcomer takes a new place", replaceNewPlace},
	{"key and schedule are the newcomer's", replaceKeyAndSchedule},
	{"a leased one is not touched", replaceLeased},
	{"a returned one is not touched", replaceReturned},
	{"only the one that waits is superseded", replaceWaiting},
	{"an ID that is not live", replaceNothing},
	{"keep gives the live one", keepLive},
	{"keep gives the newest of two", keepNewest},
}

func replacePending(s *scene) {
	old := s.put(mail, "a", holding("1"))
	e := s.put(mail, "a", holding("2"), how(queue.Replace))
	if e.Kept || e.Generation == old.Generation {
		s.Fatalf("got %+v, want another generation than %s", e, old.Generation)
	}
	s.counted(mail, queue.Counters{Enqueued: 2, Superseded: 1})
	d := s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "2")
	equal(s, "generation", d.Receipt.Generation, e.Generation)
	s.ack(d.Receipt)
	s.takes(mail, 5, "")
}

func replaceNewPlace(s *scene) {
	s.puts(mail, "a", "b")
	s.put(mail, "a", how(queue.Replace))
	s.puts(mail, "c")
	s.takes(mail, 5, "b a c")
}

func replaceKeyAndSchedule(s *scene) {
	s.put(mail, "a", key("k"))
	s.put(mail, "b", key("k"))
	s.gauged(mail, gauges{ready: 1, blocked: 1})
	s.put(mail, "a", how(queue.Replace), key("l"), s.after(minute))
	s.gauged(mail, gauges{ready: 1, scheduled: 1})
	s.put(mail, "a", how(queue.Replace))
	equal(s, "key", s.entry(mail, "a").Key, "")
	s.takes(mail, 5, "b a")
}

func replaceLeased(s *scene) {
	s.put(mail, "a", holding("1"))
	d := s.take(mail, "a")
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.gauged(mail, gauges{blocked: 1, processing: 1})
	s.takes(mail, 5, "") // one generation is in flight
	es := s.show(mail, "a", 2)
	equal(s, "the older one first", string(es[0].Payload)+string(es[1].Payload), "12")
	equal(s, "state of the newer", es[1].State, queue.Blocked)
	s.ack(d.Receipt)
	s.gauged(mail, gauges{ready: 1})
	equal(s, "payload", string(s.take(mail, "a").Payload), "2")
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 2, Completed: 1})
}

func replaceReturned(s *scene) {
	s.put(mail, "a", holding("1"))
	s.release(s.take(mail, "a").Receipt, minute)
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.gauged(mail, gauges{scheduled: 1, blocked: 1})
	s.takes(mail, 5, "") // the newer one waits for the older, which waits for its time
	s.Advance(minute)
	d := s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "1")
	equal(s, "attempt", d.Attempt(), 2)
	s.takes(mail, 5, "")
	s.fail(d.Receipt, "no")
	d = s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "2")
	equal(s, "attempt", d.Attempt(), 1)
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 3, Released: 1, Failed: 1})
}

func replaceWaiting(s *scene) {
	s.put(mail, "a", holding("1"))
	d := s.take(mail, "a")
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.put(mail, "a", holding("3"), how(queue.Replace))
	s.gauged(mail, gauges{blocked: 1, processing: 1})
	s.counted(mail, queue.Counters{Enqueued: 3, Superseded: 1, Claimed: 1})
	s.refuses(queue.ErrDuplicate, func() error {
		_, err := s.Store.Enqueue(s.ctx, mail, message("a"))
		return err
	})
	s.release(d.Receipt, 0)
	d = s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "1")
	s.ack(d.Receipt)
	equal(s, "payload", string(s.take(mail, "a").Payload), "3")
}

func replaceNothing(s *scene) {
	e := s.put(mail, "a", how(queue.Replace))
	equal(s, "kept", e.Kept, false)
	k := s.put(mail, "b", how(queue.Keep))
	equal(s, "kept", k.Kept, false)
	s.counted(mail, queue.Counters{Enqueued: 2})
}

func keepLive(s *scene) {
	first := s.put(mail, "a", holding("1"))
	kept := func() {
		s.Helper()
		before := s.look()
		e := s.put(mail, "a", holding("2"), how(queue.Keep), key("k"))
		if !e.Kept || e.Queue != mail || e.ID != "a" || e.Generation != first.Generation ||
			e.Revision < first.Revision || e.Revision > before.status.Revision {
			s.Fatalf("got %+v, want %+v kept", e, first)
		}
		s.unchanged(before)
	}
	kept() // ready
	d := s.take(mail, "a")
	kept() // leased
	s.release(d.Receipt, minute)
	kept() // returned
	s.Advance(minute)
	equal(s, "payload", string(s.take(mail, "a").Payload), "1")
}

func keepNewest(s *scene) {
	s.put(mail, "a")
	s.take(mail, "a")
	newer := s.put(mail, "a", how(queue.Replace))
	equal(s, "kept", s.put(mail, "a", how(queue.Keep)).Generation, newer.Generation)
}
