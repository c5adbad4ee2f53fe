package queuetest

import "example.com/holdfast/queue"

var clearTrials = []trial{
	{"pending and returned ones", clearPending},
	{"leased ones too", clearLeased},
	{"nothing there", clearNothing},
	{"IDs and keys are free again", clearFrees},
}

func clearPending(s *scene) {
	s.puts(mail, "leased", "reaped", "released", "failed", "ready")
	s.put(mail, "scheduled", s.after(minute))
	ds := s.takes(mail, 4, "leased reaped released failed")
	s.put(mail, "leased", how(queue.Replace))
	s.putKeyed(mail, "k", "k1", "k2")
	s.puts(spool, "a")
	s.reap(queue.ReapOptions{Receipt: &ds[1].Receipt})
	s.release(ds[2].Receipt, minute)
	s.fail(ds[3].Receipt, "no")
	s.gauged(mail, gauges{ready: 3, scheduled: 2, blocked: 2, processing: 1, failed: 1})
	s.clear(mail, false, 7)
	s.gauged(mail, gauges{processing: 1, failed: 1})
	s.gauged(spool, gauges{ready: 1})
	s.counted(mail, queue.Counters{Enqueued: 9, Claimed: 4, Released: 1, Reaped: 1, Failed: 1, Cleared: 7})
	s.loses(ds[1].Receipt, queue.ErrGone, 0, func() error { return s.Store.Ack(s.ctx, ds[1].Receipt) })
	s.ack(ds[0].Receipt)
	equal(s, "complete", s.status(mail).Complete(), true)
}

func clearLeased(s *scene) {
	s.puts(mail, "a", "b")
	d := s.take(mail, "a")
	s.put(mail, "a", how(queue.Replace))
	s.clear(mail, true, 3)
	s.gauged(mail, gauges{})
	s.counted(mail, queue.Counters{Enqueued: 3, Claimed: 1, Cleared: 3})
	for _, c := range s.settlements() {
		s.Log(c.name)
		s.loses(d.Receipt, queue.ErrGone, 0, func() error { return c.call(d.Receipt) })
	}
}

func clearNothing(s *scene) {
	s.clear("unknown", true, 0)
	s.put(mail, "a")
	s.take(mail, "a")
	before := s.look()
	s.clear(mail, false, 0)
	s.unchanged(before)
	s.refuses(queue.ErrInvalidName, func() error {
		_, err := s.Store.Clear(s.ctx, "mail/ack", queue.ClearOptions{})
		return err
	})
}

func clearFrees(s *scene) {
	s.putKeyed(mail, "k", "a", "b")
	s.take(mail, "a")
	s.clear(mail, false, 1)
	s.putKeyed(mail, "k", "b")
	s.takes(mail, 5, "") // a is still leased
	s.clear(mail, true, 2)
	s.putKeyed(mail, "k", "b", "a")
	d := s.take(mail, "b")
	equal(s, "attempt", d.Attempt(), 1)
	s.ack(d.Receipt)
	s.take(mail, "a")
}
