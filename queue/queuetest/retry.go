package queuetest

import (
	"fmt"
	"strings"
	"time"

	"example.com/holdfast/queue"
)

var retryTrials = []trial{
	{"at once", retryAtOnce},
	{"after a delay", retryDelay},
	{"an empty cause leaves the last error", retryNoCause},
	{"a cause is cut on a rune", retryCut},
	{"to failed at the cap", retryCap},
	{"the default cap", retryDefaultCap},
	{"the cap counts real failures", retryRealFailures},
	{"a reaped one's lapse becomes a failure", retryReaped},
	{"at the cap under a name that is free", retryFreeName},
	{"a cap of one never meets a taken name", retryAtFirst},
	{"refused delays", retryRefused},
}

func retryAtOnce(s *scene) {
	s.puts(mail, "a", "b")
	d := s.take(mail, "a")
	r := s.retry(d.Receipt, queue.RetryOptions{Cause: "smtp: 550"})
	if want := (queue.Returned{Queue: mail, ID: "a", Attempt: 1}); r != want {
		s.Fatalf("got %+v, want %+v", r, want)
	}
	e := s.entry(mail, "a")
	equal(s, "state, returned", fmt.Sprint(e.State, e.Returned), fmt.Sprint(queue.Ready, "retried"))
	equal(s, "last error", e.LastError, "smtp: 550")
	s.sameTime("not before", e.NotBefore, time.Time{})
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 1, Retried: 1})
	d = s.take(mail, "a")
	equal(s, "failures", d.Failures, 1)
	equal(s, "last error", d.LastError, "smtp: 550")
}

func retryDelay(s *scene) {
	s.puts(mail, "a", "b")
	r := s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Delay: 90 * time.Second})
	s.sameTime("not before", r.NotBefore, s.Now().Add(90*time.Second))
	equal(s, "failed name", r.FailedName, "")
	s.sameTime("not before shown", s.entry(mail, "a").NotBefore, r.NotBefore)
	s.gauged(mail, gauges{ready: 1, scheduled: 1})
	s.Advance(90*time.Second - time.Millisecond)
	equal(s, "peek", idsOf(s.peek(mail, 5)), "b")
	s.Advance(time.Millisecond)
	d := s.take(mail, "a")
	s.sameTime("not before while leased", s.entry(mail, "a").NotBefore, time.Time{})
	r = s.retry(d.Receipt, queue.RetryOptions{Delay: time.Nanosecond}) // never earlier than asked
	s.sameTime("not before", r.NotBefore, s.Now().Add(time.Millisecond))
}

func retryNoCause(s *scene) {
	s.put(mail, "a")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: "first"})
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{})
	equal(s, "last error", s.entry(mail, "a").LastError, "first")
	s.release(s.take(mail, "a").Receipt, 0)
	equal(s, "last error", s.entry(mail, "a").LastError, "first")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: "second"})
	equal(s, "last error", s.entry(mail, "a").LastError, "second")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{MaxFailures: 1})
	equal(s, "last error", s.evidence("a").LastError, "second")
}

func retryCut(s *scene) {
	long := strings.Repeat("x", queue.MaxErrorBytes-2) + "\U0001f4ec tail"
	s.put(mail, "a")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: long})
	equal(s, "last error", s.entry(mail, "a").LastError, long[:queue.MaxErrorBytes-2])
	odd := "line 1\nline 2\x00\xff\"<&>"
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: odd})
	equal(s, "last error", s.entry(mail, "a").LastError, strings.ToValidUTF8(odd, "\ufffd"))
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: long, MaxFailures: 1})
	equal(s, "last error", s.evidence("a").LastError, long[:queue.MaxErrorBytes-2])
}

func retryCap(s *scene) {
	s.put(mail, "a")
	o := queue.RetryOptions{MaxFailures: 3, Delay: minute, Cause: "no"}
	for range 2 {
		equal(s, "failed name", s.retry(s.take(mail, "a").Receipt, o).FailedName, "")
		s.Advance(minute)
	}
	d := s.take(mail, "a")
	r := s.retry(d.Receipt, o)
	if want := (queue.Returned{Queue: mail, ID: "a", Attempt: 3, FailedName: "a"}); r != want {
		s.Fatalf("got %+v, want %+v", r, want)
	}
	e := s.evidence("a")
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{3, 0, 0})
	equal(s, "last error", e.LastError, "no")
	equal(s, "generation", e.Generation, d.Receipt.Generation)
	s.gauged(mail, gauges{failed: 1})
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 3, Retried: 2, Failed: 1})
	s.loses(d.Receipt, queue.ErrGone, 0, func() error { return s.Store.Ack(s.ctx, d.Receipt) })
}

func retryDefaultCap(s *scene) {
	s.put(mail, "a")
	for i := range queue.DefaultMaxFailures {
		want := ""
		if i == queue.DefaultMaxFailures-1 {
			want = "a"
		}
		equal(s, "failed name", s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{}).FailedName, want)
	}
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 20, Retried: 19, Failed: 1})
}

func retryRealFailures(s *scene) {
	s.put(mail, "a")
	two := queue.RetryOptions{MaxFailures: 2}
	s.release(s.take(mail, "a").Receipt, 0)
	s.take(mail, "a")
	s.Advance(minute)
	s.reapOne()
	s.take(mail, "a")
	s.Advance(minute)
	s.load(mail, "a") // taken over
	s.Advance(minute)
	s.reapOne()
	s.release(s.take(mail, "a").Receipt, 0)
	equal(s, "failed at the first failure", s.retry(s.take(mail, "a").Receipt, two).FailedName, "")
	s.release(s.take(mail, "a").Receipt, 0)
	d := s.take(mail, "a")
	equal(s, "failures", d.Failures, 1)
	equal(s, "lapses", d.Lapses, 3)
	equal(s, "attempt", d.Attempt(), 8)
	equal(s, "failed at the second failure", s.retry(d.Receipt, two).FailedName, "a")
	e := s.evidence("a")
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{8, 3, 3})
}

func retryReaped(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.Advance(minute)
	s.reapOne()
	r := s.retry(d.Receipt, queue.RetryOptions{Delay: minute, Cause: "late, but it failed"})
	s.sameTime("not before", r.NotBefore, s.Now().Add(minute))
	e := s.entry(mail, "a")
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{1, 0, 0})
	equal(s, "returned", e.Returned, "retried")
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 1, Reaped: 1, Retried: 1})
	s.Advance(minute)
	d = s.take(mail, "a")
	equal(s, "failures", d.Failures, 1)
	s.Advance(minute)
	s.reapOne()
	equal(s, "failed at the second failure", s.retry(d.Receipt, queue.RetryOptions{MaxFailures: 2}).FailedName, "a")
	equal(s, "lapses", s.evidence("a").Lapses, 0)
}

func retryFreeName(s *scene) {
	s.put(mail, "a", holding("1"))
	s.fail(s.take(mail, "a").Receipt, "first")
	e := s.put(mail, "a", holding("2"))
	want := "a~" + e.Generation
	r := s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{MaxFailures: 1, Cause: "second"})
	equal(s, "failed name", r.FailedName, want)
	s.must(queue.CheckFailedName(r.FailedName))
	equal(s, "payloads", string(s.evidence("a").Payload)+string(s.evidence(want).Payload), "12")
	equal(s, "ID", s.evidence(want).ID, "a")
	s.gauged(mail, gauges{failed: 2})
}

func retryAtFirst(s *scene) {
	seen := map[string]bool{}
	for i := range 5 {
		name := mail
		if i%2 == 1 {
			name = spool // of the same failed namespace
		}
		s.put(name, "a")
		failed := s.retry(s.take(name, "a").Receipt, queue.RetryOptions{MaxFailures: 1}).FailedName
		if failed == "" || seen[failed] {
			s.Fatalf("failed under %q, taken are %v", failed, seen)
		}
		seen[failed] = true
	}
	s.gauged(mail, gauges{failed: 3})
	s.gauged(spool, gauges{failed: 2})
}

func retryRefused(s *scene) {
	s.put(mail, "a")
	r := s.take(mail, "a").Receipt
	for _, delay := range []time.Duration{-1, queue.NoDeadline, queue.MaxLease + 1} {
		s.refuses(queue.ErrInvalid, func() error {
			_, err := s.Store.Retry(s.ctx, r, queue.RetryOptions{Delay: delay})
			return err
		})
		s.refuses(queue.ErrInvalid, func() error {
			return s.Store.Release(s.ctx, r, queue.ReleaseOptions{Delay: delay})
		})
	}
	s.retry(r, queue.RetryOptions{Delay: queue.MaxLease})
}
