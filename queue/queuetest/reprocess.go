package queuetest

import (
	"fmt"

	"example.com/holdfast/queue"
)

var reprocessTrials = []trial{
	{"back in its old place", reprocessBack},
	{"a fresh cap", reprocessFreshCap},
	{"ahead of a pending one", reprocessAhead},
	{"not while its ID is in flight", reprocessInFlight},
	{"no such failed message", reprocessNotFailed},
	{"under the name that a cap made", reprocessMadeName},
	{"under a name that Fail was given", reprocessAs},
	{"a key's older message", reprocessKey},
	{"again and again", reprocessAgain},
}

func reprocessBack(s *scene) {
	s.puts(mail, "a", "b")
	first := s.entry(mail, "a")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: "before"})
	s.take(mail, "a")
	s.Advance(minute)
	s.reapOne()
	d := s.take(mail, "a")
	s.fail(d.Receipt, "no")
	s.reprocess("a")
	e := s.entry(mail, "a")
	equal(s, "generation", e.Generation, first.Generation)
	equal(s, "sequence", e.Seq, first.Seq)
	equal(s, "state, returned", fmt.Sprint(e.State, e.Returned), fmt.Sprint(queue.Ready, "reprocessed"))
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{3, 3, 0})
	equal(s, "last error", e.LastError, "no")
	equal(s, "payload", string(e.Payload), string(payloadOf("a")))
	s.sameTime("enqueued at", e.EnqueuedAt, first.EnqueuedAt)
	s.gauged(mail, gauges{ready: 2})
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 3, Retried: 1, Reaped: 1, Failed: 1, Reprocessed: 1})
	s.loses(d.Receipt, queue.ErrStale, 3, func() error { return s.Store.Ack(s.ctx, d.Receipt) })
	ds := s.takes(mail, 5, "a b")
	equal(s, "attempt", ds[0].Attempt(), 4)
	equal(s, "failures and lapses", ds[0].Failures+ds[0].Lapses, 0)
	equal(s, "last error", ds[0].LastError, "no")
}

func reprocessFreshCap(s *scene) {
	s.put(mail, "a")
	two := queue.RetryOptions{MaxFailures: 2}
	s.retry(s.take(mail, "a").Receipt, two)
	s.retry(s.take(mail, "a").Receipt, two)
	s.reprocess("a")
	equal(s, "failed name", s.retry(s.take(mail, "a").Receipt, two).FailedName, "")
	equal(s, "failed name", s.retry(s.take(mail, "a").Receipt, two).FailedName, "a")
	s.reprocess("a")
	s.take(mail, "a")
	s.Advance(minute)
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{MaxLapses: 2})), "a")
}

func reprocessAhead(s *scene) {
	s.put(mail, "a", holding("1"))
	s.fail(s.take(mail, "a").Receipt, "no")
	s.put(mail, "a", holding("2"))
	s.gauged(mail, gauges{ready: 1, failed: 1})
	s.reprocess("a")
	s.gauged(mail, gauges{ready: 1, blocked: 1})
	d := s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "1")
	s.takes(mail, 5, "")
	s.ack(d.Receipt)
	equal(s, "payload", string(s.take(mail, "a").Payload), "2")
}

func reprocessInFlight(s *scene) {
	s.put(mail, "a", holding("1"))
	s.fail(s.take(mail, "a").Receipt, "no")
	s.put(mail, "a", holding("2"))
	again := func() error { return s.Store.Reprocess(s.ctx, "a", queue.ReprocessOptions{}) }
	d := s.take(mail, "a")
	s.refuses(queue.ErrInFlight, again) // leased
	s.Advance(minute)
	s.refuses(queue.ErrInFlight, again) // overdue
	s.release(d.Receipt, minute)
	s.refuses(queue.ErrInFlight, again) // returned
	s.ack(s.load(mail, "a").Receipt)
	s.must(again())
	equal(s, "payload", string(s.take(mail, "a").Payload), "1")
}

func reprocessNotFailed(s *scene) {
	s.puts(mail, "a", "b")
	s.fail(s.take(mail, "a").Receipt, "no")
	for _, c := range []struct{ name, space string }{{"b", ""}, {"unknown", ""}, {"a", "elsewhere"}, {"a~g", ""}} {
		s.refuses(queue.ErrNotFailed, func() error {
			return s.Store.Reprocess(s.ctx, c.name, queue.ReprocessOptions{Namespace: c.space})
		})
	}
	s.reprocess("a")
	s.refuses(queue.ErrNotFailed, func() error { return s.Store.Reprocess(s.ctx, "a", queue.ReprocessOptions{}) })
}

func reprocessMadeName(s *scene) {
	s.put(mail, "a", holding("1"))
	s.fail(s.take(mail, "a").Receipt, "no")
	s.put(mail, "a", holding("2"))
	made := s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{MaxFailures: 1}).FailedName
	s.reprocess(made)
	s.gauged(mail, gauges{ready: 1, failed: 1})
	d := s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "2")
	equal(s, "failed name", s.retry(d.Receipt, queue.RetryOptions{MaxFailures: 1}).FailedName, made)
}

func reprocessAs(s *scene) {
	s.put(mail, "a")
	_, err := s.Store.Fail(s.ctx, s.take(mail, "a").Receipt, queue.FailOptions{As: "b"})
	s.must(err)
	s.put(mail, "b")
	s.reprocess("b")
	s.takes(mail, 5, "a b")
}

func reprocessKey(s *scene) {
	s.put(mail, "a", key("k"))
	s.put(mail, "b", key("k"))
	s.put(mail, "c", key("k"))
	s.fail(s.take(mail, "a").Receipt, "no")
	d := s.take(mail, "b")
	s.reprocess("a")
	s.gauged(mail, gauges{blocked: 2, processing: 1})
	s.takes(mail, 5, "")
	s.release(d.Receipt, 0)
	d = s.take(mail, "a") // at its old place, ahead of b
	equal(s, "key", d.Key, "k")
	s.gauged(mail, gauges{blocked: 2, processing: 1})
	s.ack(d.Receipt)
	s.take(mail, "b")
}

func reprocessAgain(s *scene) {
	e := s.put(mail, "a")
	for round := range uint64(3) {
		d := s.take(mail, "a")
		equal(s, "attempt", d.Attempt(), round+1)
		equal(s, "generation", d.Receipt.Generation, e.Generation)
		s.fail(d.Receipt, fmt.Sprint("round ", round))
		s.reprocess("a")
		equal(s, "excused", s.entry(mail, "a").Excused, round+1)
	}
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 3, Failed: 3, Reprocessed: 3})
}
