package queuetest

import (
	"strings"
	"time"

	"example.com/holdfast/queue"
)

var failTrials = []trial{
	{"under its ID", failUnderID},
	{"under another name", failAs},
	{"a taken name leaves the claim as it was", failTaken},
	{"an empty cause leaves the last error", failNoCause},
	{"a cause is cut on a rune", failCut},
	{"the ID is free again", failFreesID},
	{"a reaped one", failReaped},
	{"purge", failPurge},
	{"refused names", failNames},
}

func failUnderID(s *scene) {
	e := s.put(mail, "a", key("k"))
	enqueued := s.Now()
	s.Advance(time.Second)
	d := s.take(mail, "a")
	s.Advance(time.Second)
	equal(s, "failed name", s.fail(d.Receipt, "no such address"), "a")
	got := s.evidence("a")
	if got.Queue != mail || got.ID != "a" || got.Generation != e.Generation || got.State != queue.Failed || got.Key != "k" ||
		got.FailedName != "a" || got.Namespace != "" || got.Attempts != 1 || got.LastError != "no such address" {
		s.Fatalf("got %s", entryLine(got))
	}
	equal(s, "payload", string(got.Payload), string(payloadOf("a")))
	equal(s, "payload bytes", got.PayloadBytes, int64(len(got.Payload)))
	s.sameTime("enqueued at", got.EnqueuedAt, enqueued)
	s.sameTime("failed at", got.FailedAt, s.Now())
	s.gauged(mail, gauges{failed: 1})
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 1, Failed: 1})
	equal(s, "complete", s.status(mail).Complete(), true)
}

func failAs(s *scene) {
	s.put(mail, "a")
	name, err := s.Store.Fail(s.ctx, s.take(mail, "a").Receipt, queue.FailOptions{As: "mail.a"})
	s.must(err)
	equal(s, "failed name", name, "mail.a")
	equal(s, "ID", s.evidence("mail.a").ID, "a")
	_, err = s.Store.ShowFailed(s.ctx, "a", queue.FailedOptions{})
	s.is(err, queue.ErrNotFailed)
}

func failTaken(s *scene) {
	s.put(mail, "a", holding("1"))
	s.fail(s.take(mail, "a").Receipt, "first")
	s.put(spool, "a", holding("2"))
	d := s.take(spool, "a")
	s.refuses(queue.ErrFailedExists, func() error {
		_, err := s.Store.Fail(s.ctx, d.Receipt, queue.FailOptions{Cause: "second"})
		return err
	})
	name, err := s.Store.Fail(s.ctx, d.Receipt, queue.FailOptions{Cause: "second", As: "b"})
	s.must(err)
	equal(s, "failed name", name, "b")
	equal(s, "payloads", string(s.evidence("a").Payload)+string(s.evidence("b").Payload), "12")
}

func failNoCause(s *scene) {
	s.put(mail, "a")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: "before"})
	s.fail(s.take(mail, "a").Receipt, "")
	equal(s, "last error", s.evidence("a").LastError, "before")
}

func failCut(s *scene) {
	s.put(mail, "a")
	long := strings.Repeat("é", queue.MaxErrorBytes/2-1) + "x\u2028 tail"
	s.fail(s.take(mail, "a").Receipt, long)
	equal(s, "last error", s.evidence("a").LastError, queue.CutError(long))
}

func failFreesID(s *scene) {
	s.put(mail, "a", holding("1"))
	d := s.take(mail, "a")
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.fail(d.Receipt, "no")
	d = s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "2")
	equal(s, "attempt", d.Attempt(), 1)
	s.ack(d.Receipt)
	s.put(mail, "a", holding("3"))
	s.gauged(mail, gauges{ready: 1, failed: 1})
}

func failReaped(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.Advance(minute)
	s.reapOne()
	equal(s, "failed name", s.fail(d.Receipt, "late, and it failed"), "a")
	e := s.evidence("a")
	equal(s, "attempts", e.Attempts, 1)
	equal(s, "last error", e.LastError, "late, and it failed")
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 1, Reaped: 1, Failed: 1})
	s.loses(d.Receipt, queue.ErrGone, 0, func() error { return s.Store.Ack(s.ctx, d.Receipt) })
}

func failPurge(s *scene) {
	s.put(mail, "a")
	s.fail(s.take(mail, "a").Receipt, "no")
	purge := func(name, space string) error {
		return s.Store.Purge(s.ctx, name, queue.PurgeOptions{Namespace: space})
	}
	s.refuses(queue.ErrNotFailed, func() error { return purge("b", "") })
	s.refuses(queue.ErrNotFailed, func() error { return purge("a", "elsewhere") })
	s.refuses(queue.ErrInvalidName, func() error { return purge("a~b~c", "") })
	s.must(purge("a", ""))
	s.refuses(queue.ErrNotFailed, func() error { return purge("a", "") })
	s.gauged(mail, gauges{})
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 1, Failed: 1, Purged: 1})
	s.put(mail, "a")
	equal(s, "failed name", s.fail(s.take(mail, "a").Receipt, "no"), "a") // the name is free again
}

func failNames(s *scene) {
	s.put(mail, "a")
	r := s.take(mail, "a").Receipt
	for _, as := range []string{"a/b", ".", "a~b", "nul", "a."} {
		s.refuses(queue.ErrInvalidName, func() error {
			_, err := s.Store.Fail(s.ctx, r, queue.FailOptions{As: as})
			return err
		})
	}
	for _, name := range []string{"", "a/b", "a~"} {
		_, err := s.Store.ShowFailed(s.ctx, name, queue.FailedOptions{})
		s.is(err, queue.ErrInvalidName)
		s.is(s.Store.Reprocess(s.ctx, name, queue.ReprocessOptions{}), queue.ErrInvalidName)
	}
}
