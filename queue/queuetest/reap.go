package queuetest

import (
	"fmt"
	"strings"
	"time"

	"example.com/holdfast/queue"
)

var reapTrials = []trial{
	{"nothing over is an empty result", reapNothing},
	{"exactly at the deadline", reapAtDeadline},
	{"what it says", reapSays},
	{"oldest first, a limit at a time", reapLimit},
	{"the queues that are named", reapQueues},
	{"the place in the line stays", reapPlace},
	{"to failed at the cap of lapses", reapCap},
	{"the default cap of lapses", reapDefaultCap},
	{"at the cap under a name that is free", reapFreeName},
	{"one named claim", reapNamed},
	{"one named claim to the cap", reapNamedCap},
	{"a named claim that came back", reapNamedReturned},
	{"refused options", reapRefused},
}

// reapedIDs names what was reaped, and where it failed.
func reapedIDs(rs []queue.Returned) string {
	var names []string
	for _, r := range rs {
		name := r.ID
		if r.FailedName != "" {
			name += "→" + r.FailedName
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func reapNothing(s *scene) {
	s.puts(mail, "a", "b", "c")
	s.take(mail, "a")
	s.claim(mail, queue.ClaimOptions{Lease: queue.NoDeadline})
	before := s.look()
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{})), "")
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{Queues: []string{"unknown"}})), "")
	s.unchanged(before)
}

func reapAtDeadline(s *scene) {
	s.puts(mail, "a", "b")
	s.claim(mail, queue.ClaimOptions{Max: 2, Lease: time.Millisecond})
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{})), "")
	s.Advance(time.Millisecond)
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{})), "a b")
	s.puts(mail, "c")
	s.claim(mail, queue.ClaimOptions{Max: 3, Lease: queue.NoDeadline})
	s.Advance(1000 * time.Hour)
	equal(s, "reaped without a deadline", reapedIDs(s.reap(queue.ReapOptions{})), "")
}

func reapSays(s *scene) {
	s.put(mail, "a")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: "before"})
	s.take(mail, "a")
	s.Advance(minute)
	if r, want := s.reapOne(), (queue.Returned{Queue: mail, ID: "a", Attempt: 2, Cause: queue.ByDeadline, Lapses: 1}); r != want {
		s.Fatalf("got %+v, want %+v", r, want)
	}
	e := s.entry(mail, "a")
	equal(s, "state, returned", fmt.Sprint(e.State, e.Returned), fmt.Sprint(queue.Ready, "reaped"))
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{2, 0, 1})
	equal(s, "last error", e.LastError, "before")
	s.sameTime("not before", e.NotBefore, time.Time{})
	s.gauged(mail, gauges{ready: 1})
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 2, Retried: 1, Reaped: 1})
	d := s.take(mail, "a")
	equal(s, "failures", d.Failures, 1)
	equal(s, "lapses", d.Lapses, 1)
	s.Advance(minute)
	equal(s, "lapses", s.reapOne().Lapses, 2)
}

func reapLimit(s *scene) {
	s.puts(mail, "e", "d", "c", "b", "a")
	for _, lease := range []time.Duration{5, 4, 3, 2, 1} { // the oldest message ends last
		s.claim(mail, queue.ClaimOptions{Lease: lease * time.Second})
	}
	s.Advance(4 * time.Second)
	s.gauged(mail, gauges{processing: 5, overdue: 4})
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{Limit: 3})), "d c b")
	s.Advance(time.Second)
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{Limit: 3})), "e a")

	var ms []queue.Message
	for range queue.DefaultReapLimit + 1 {
		ms = append(ms, message(""))
	}
	s.enqueueBatch(spool, ms...)
	s.claim(spool, queue.ClaimOptions{Max: len(ms)})
	s.Advance(queue.DefaultLease)
	equal(s, "reaped by default", len(s.reap(queue.ReapOptions{})), queue.DefaultReapLimit)
	equal(s, "reaped of the rest", len(s.reap(queue.ReapOptions{})), 1)
}

func reapQueues(s *scene) {
	for _, name := range []string{"x", "y", "z"} {
		s.puts(name, name+"1", name+"2")
		s.claim(name, queue.ClaimOptions{Max: 2})
	}
	s.Advance(time.Hour)
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{Queues: []string{"y", "unknown"}})), "y1 y2")
	s.gauged("x", gauges{processing: 2, overdue: 2})
	rs := s.reap(queue.ReapOptions{})
	order := map[string]string{}
	for _, r := range rs {
		order[r.Queue] += r.ID + " "
	}
	if len(rs) != 4 || order["x"] != "x1 x2 " || order["z"] != "z1 z2 " {
		s.Fatalf("reaped %+v, want those of x and z, each in order", rs)
	}
}

func reapPlace(s *scene) {
	s.put(mail, "a", holding("1"))
	s.put(mail, "b")
	s.take(mail, "a")
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.Advance(minute)
	s.reapOne()
	s.gauged(mail, gauges{ready: 2, blocked: 1})
	ds := s.takes(mail, 5, "a b")
	equal(s, "payload", string(ds[0].Payload), "1")
}

func reapCap(s *scene) {
	s.put(mail, "a")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: "before"})
	o := queue.ReapOptions{MaxLapses: 2}
	s.take(mail, "a")
	s.Advance(minute)
	equal(s, "reaped", reapedIDs(s.reap(o)), "a")
	s.release(s.take(mail, "a").Receipt, 0)
	d := s.take(mail, "a")
	s.Advance(minute)
	rs := s.reap(o)
	if want := (queue.Returned{Queue: mail, ID: "a", Attempt: 4, Cause: queue.ByDeadline, Lapses: 2, FailedName: "a"}); len(rs) != 1 || rs[0] != want {
		s.Fatalf("got %+v, want %+v", rs, want)
	}
	e := s.evidence("a")
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{4, 1, 2})
	if !strings.HasPrefix(e.LastError, "lapsed 2 times without settlement") {
		s.Fatalf("the last error is %q", e.LastError)
	}
	s.gauged(mail, gauges{failed: 1})
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 4, Retried: 1, Released: 1, Reaped: 2, Failed: 1})
	s.loses(d.Receipt, queue.ErrGone, 0, func() error { return s.Store.Ack(s.ctx, d.Receipt) })
}

func reapDefaultCap(s *scene) {
	s.put(mail, "a")
	for i := range queue.DefaultMaxLapses {
		s.take(mail, "a")
		s.Advance(minute)
		r := s.reapOne()
		equal(s, "lapses", r.Lapses, uint64(i+1))
		equal(s, "failed", r.FailedName != "", i == queue.DefaultMaxLapses-1)
	}
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 10, Reaped: 10, Failed: 1})
}

func reapFreeName(s *scene) {
	s.put(mail, "a", holding("1"))
	s.fail(s.take(mail, "a").Receipt, "first")
	e := s.put(mail, "a", holding("2"))
	s.take(mail, "a")
	s.Advance(minute)
	rs := s.reap(queue.ReapOptions{MaxLapses: 1})
	want := "a~" + e.Generation
	equal(s, "reaped", reapedIDs(rs), "a→"+want)
	equal(s, "payloads", string(s.evidence("a").Payload)+string(s.evidence(want).Payload), "12")
}

func reapNamed(s *scene) {
	s.puts(mail, "a", "b", "c")
	d := s.takes(mail, 2, "a b")[1]
	c := s.claim(mail, queue.ClaimOptions{Lease: queue.NoDeadline})[0]
	for _, r := range []queue.Receipt{d.Receipt, c.Receipt} {
		rs := s.reap(queue.ReapOptions{Receipt: &r})
		if want := (queue.Returned{Queue: mail, ID: r.ID, Attempt: 1, Cause: queue.ByOperator, Lapses: 1}); len(rs) != 1 || rs[0] != want {
			s.Fatalf("got %+v, want %+v", rs, want)
		}
	}
	s.gauged(mail, gauges{ready: 2, processing: 1})
	s.counted(mail, queue.Counters{Enqueued: 3, Claimed: 3, Reaped: 2})
	s.extend(d.Receipt, minute) // its worker lives, and goes on
	s.takes(mail, 5, "c")
	s.ack(d.Receipt)
}

func reapNamedCap(s *scene) {
	s.put(mail, "a")
	r := s.take(mail, "a").Receipt
	rs := s.reap(queue.ReapOptions{Receipt: &r, MaxLapses: 1})
	equal(s, "reaped", reapedIDs(rs), "a→a")
	equal(s, "cause", rs[0].Cause, queue.ByOperator)
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 1, Reaped: 1, Failed: 1})
}

func reapNamedReturned(s *scene) {
	s.put(mail, "a")
	r := s.take(mail, "a").Receipt
	again := func() error {
		_, err := s.Store.Reap(s.ctx, queue.ReapOptions{Receipt: &r})
		return err
	}
	s.must(again())
	s.loses(r, queue.ErrStale, 1, again)
	s.release(r, 0) // the refusal did not spoil the receipt
	s.loses(r, queue.ErrStale, 1, again)
	s.take(mail, "a")
	s.loses(r, queue.ErrStale, 2, again)
}

func reapRefused(s *scene) {
	s.put(mail, "a")
	r := s.take(mail, "a").Receipt
	s.Advance(minute)
	for _, o := range []queue.ReapOptions{
		{Limit: -1}, {Limit: queue.MaxClaim + 1}, {Queues: []string{"a/"}}, {Queues: []string{mail}, Receipt: &r},
	} {
		s.refuses(queue.ErrInvalid, func() error {
			_, err := s.Store.Reap(s.ctx, o)
			return err
		})
	}
}
