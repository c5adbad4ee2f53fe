package queuetest

import (
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

var updateTrials = []trial{
	{"nothing to change", updateNothing},
	{"every change, each with its outcome", updateEvery},
	{"ack and claim the next in one", updateAckAndClaim},
	{"enqueue and claim it in one", updateEnqueueAndClaim},
	{"across queues in one revision", updateAcross},
	{"each change meets what those before it made", updateInOrder},
	{"a claim that finds nothing is no refusal", updateEmptyClaim},
	{"to failed at the cap", updateCap},
	{"sixteen at once", updateSixteen},
	{"the receipts of an update are good", updateReceipts},
	{"the payloads' slices are the caller's again", updateOwnSlices},
}

func updateNothing(s *scene) {
	s.put(mail, "a")
	before := s.look()
	s.update()
	s.unchanged(before)
}

func updateEvery(s *scene) {
	s.puts(mail, "a", "b", "c", "d", "e", "f")
	ds := s.takes(mail, 5, "a b c d e")
	out := s.update(
		queue.AckChange{Receipt: ds[0].Receipt},
		queue.ReleaseChange{Receipt: ds[1].Receipt, Options: queue.ReleaseOptions{Delay: minute}},
		queue.RetryChange{Receipt: ds[2].Receipt, Options: queue.RetryOptions{Delay: minute, Cause: "no"}},
		queue.ExtendChange{Receipt: ds[3].Receipt, Lease: time.Hour},
		queue.FailChange{Receipt: ds[4].Receipt, Options: queue.FailOptions{Cause: "never", As: "e.bad"}},
		queue.EnqueueChange{Queue: spool, Message: message("x", key("k"), s.after(minute))},
		queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Max: 3, Lease: minute, Label: "w"}},
		queue.CursorChange{Queue: mail, Cursor: "offset 6"},
	)
	if want := (queue.Returned{Queue: mail, ID: "c", Attempt: 1, NotBefore: out[2].Returned.NotBefore}); out[2].Returned != want {
		s.Fatalf("returned %+v, want %+v", out[2].Returned, want)
	}
	s.sameTime("not before", out[2].Returned.NotBefore, s.Now().Add(minute))
	s.sameTime("extended to", out[3].Deadline, s.Now().Add(time.Hour))
	equal(s, "failed name", out[4].Failed, "e.bad")
	x := out[5].Enqueued
	if x.Queue != spool || x.ID != "x" || x.Kept || x.Generation != s.entry(spool, "x").Generation {
		s.Fatalf("enqueued %+v", x)
	}
	equal(s, "claimed", ids(out[6].Claimed.Deliveries), "f")
	equal(s, "label", s.entry(mail, "f").Label, "w")
	cursor, err := s.Store.Cursor(s.ctx, mail)
	s.must(err)
	equal(s, "cursor", cursor, "offset 6")
	equal(s, "b's returned", s.entry(mail, "b").Returned, "released")
	equal(s, "c's last error", s.entry(mail, "c").LastError, "no")
	equal(s, "e's last error", s.evidence("e.bad").LastError, "never")
	s.gauged(mail, gauges{scheduled: 2, processing: 2, failed: 1})
	s.gauged(spool, gauges{scheduled: 1})
	s.counted(mail, queue.Counters{Enqueued: 6, Claimed: 6, Completed: 1, Released: 1, Retried: 1, Failed: 1})
	s.counted(spool, queue.Counters{Enqueued: 1})
}

func updateAckAndClaim(s *scene) {
	s.putKeyed(mail, "k", "a", "b", "c")
	d := s.take(mail, "a")
	for _, want := range []string{"b", "c", ""} {
		before := s.look().status.Revision
		out := s.update(queue.AckChange{Receipt: d.Receipt}, queue.ClaimChange{Queue: mail})
		equal(s, "claimed", ids(out[1].Claimed.Deliveries), want)
		if after := s.look().status.Revision; after != before+1 {
			s.Fatalf("from revision %d to %d: want one commit", before, after)
		}
		if want != "" {
			d = out[1].Claimed.Deliveries[0]
		}
	}
	s.counted(mail, queue.Counters{Enqueued: 3, Claimed: 3, Completed: 3})
}

func updateEnqueueAndClaim(s *scene) {
	big := blank(100_000)
	out := s.update(
		queue.EnqueueChange{Queue: mail, Message: message("a", key("k"))},
		queue.EnqueueChange{Queue: mail, Message: message("b", holding(big))},
		queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Max: 5}},
	)
	ds := out[2].Claimed.Deliveries
	equal(s, "claimed", ids(ds), "a b")
	equal(s, "payload of a", string(ds[0].Payload), string(payloadOf("a")))
	equal(s, "payload of b", string(ds[1].Payload), big)
	equal(s, "generation", ds[0].Receipt.Generation, out[0].Enqueued.Generation)
	equal(s, "key", ds[0].Key, "k")
	s.gauged(mail, gauges{processing: 2})
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 2})
	equal(s, "payload shown", string(s.entry(mail, "b").Payload), big)
	s.ack(ds[0].Receipt)
	s.release(ds[1].Receipt, 0)
	equal(s, "payload again", string(s.take(mail, "b").Payload), big)
}

func updateAcross(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	out := s.update(
		queue.EnqueueChange{Queue: "x", Message: message("a1")},
		queue.EnqueueChange{Queue: "y/z", Message: message("a2")},
		queue.AckChange{Receipt: d.Receipt},
		queue.CursorChange{Queue: "w", Cursor: "1"},
	)
	v := s.look()
	for _, i := range []int{0, 1} {
		equal(s, "revision", out[i].Enqueued.Revision, v.status.Revision)
	}
	s.gauged("x", gauges{ready: 1})
	s.gauged("y/z", gauges{ready: 1})
	s.gauged(mail, gauges{})
	equal(s, "cursor", v.cursors["w"], "1")
}

func updateInOrder(s *scene) {
	s.put(mail, "a", holding("1"))
	d := s.take(mail, "a")
	s.update(
		queue.AckChange{Receipt: d.Receipt},
		queue.EnqueueChange{Queue: mail, Message: message("a", holding("2"))}, // no duplicate any more
		queue.EnqueueChange{Queue: mail, Message: message("a", holding("3"), how(queue.Replace))},
		queue.CursorChange{Queue: mail, Cursor: "first"},
		queue.CursorChange{Queue: mail, Cursor: "second"},
	)
	s.counted(mail, queue.Counters{Enqueued: 3, Superseded: 1, Claimed: 1, Completed: 1})
	equal(s, "cursor", s.look().cursors[mail], "second")
	d = s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "3")
	out := s.update(
		queue.ReleaseChange{Receipt: d.Receipt},
		queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Lease: minute}},
		queue.EnqueueChange{Queue: mail, Message: message("b")},
		queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Lease: queue.NoDeadline}},
	)
	equal(s, "claimed", ids(out[1].Claimed.Deliveries)+ids(out[3].Claimed.Deliveries), "ab")
	equal(s, "attempt", out[1].Claimed.Deliveries[0].Attempt(), 2)
	s.sameTime("deadline", out[1].Claimed.Deliveries[0].Deadline, s.Now().Add(minute))
	s.sameTime("deadline", out[3].Claimed.Deliveries[0].Deadline, time.Time{})
	s.Advance(minute)
	s.reapOne()
	r := out[1].Claimed.Deliveries[0].Receipt
	out = s.update(queue.ExtendChange{Receipt: r}, queue.AckChange{Receipt: r}, queue.EnqueueChange{Queue: mail, Message: message("c")}, queue.ClaimChange{Queue: mail})
	s.sameTime("deadline by default", out[0].Deadline, s.Now().Add(queue.DefaultLease))
	s.sameTime("deadline by default", out[3].Claimed.Deliveries[0].Deadline, s.Now().Add(queue.DefaultLease))
	s.gauged(mail, gauges{processing: 2})
}

func updateEmptyClaim(s *scene) {
	s.put(mail, "a", s.after(minute))
	out := s.update(
		queue.ClaimChange{Queue: mail},
		queue.ClaimChange{Queue: "unknown", Options: queue.ClaimOptions{Fair: true}},
		queue.EnqueueChange{Queue: mail, Message: message("b")},
	)
	equal(s, "claimed", ids(out[0].Claimed.Deliveries)+ids(out[1].Claimed.Deliveries), "")
	s.gauged(mail, gauges{ready: 1, scheduled: 1})
	before := s.look()
	s.update(queue.ClaimChange{Queue: "unknown"})
	s.unchanged(before)
}

func updateCap(s *scene) {
	s.puts(mail, "a", "b")
	s.fail(s.take(mail, "a").Receipt, "first")
	e := s.put(mail, "a")
	ds := s.takes(mail, 2, "b a")
	out := s.update(
		queue.RetryChange{Receipt: ds[0].Receipt, Options: queue.RetryOptions{MaxFailures: 1, Cause: "b's"}},
		queue.RetryChange{Receipt: ds[1].Receipt, Options: queue.RetryOptions{MaxFailures: 1, Cause: "a's"}},
	)
	equal(s, "failed names", out[0].Returned.FailedName+" "+out[1].Returned.FailedName, "b a~"+e.Generation)
	s.counted(mail, queue.Counters{Enqueued: 3, Claimed: 3, Failed: 3})
}

// updateSixteen: of sixteen that settle one claim and enqueue what follows from it, one
// does both and the others neither.
func updateSixteen(s *scene) {
	for range 5 {
		s.put(mail, "a")
		r := s.take(mail, "a").Receipt
		errs := s.together(16, func(i int) error {
			_, err := s.Store.Update(s.ctx,
				queue.EnqueueChange{Queue: spool, Message: message(fmt.Sprint(i))},
				queue.CursorChange{Queue: spool, Cursor: fmt.Sprint(i)},
				queue.AckChange{Receipt: r})
			return err
		})
		won := ""
		for i, err := range errs {
			if err == nil {
				won += fmt.Sprint(i)
			} else {
				s.is(err, queue.ErrGone)
			}
		}
		s.ack(s.takes(spool, 16, won)[0].Receipt)
		s.cursorIs(spool, won)
	}
	s.counted(spool, queue.Counters{Enqueued: 5, Claimed: 5, Completed: 5})
}

func updateReceipts(s *scene) {
	s.puts(mail, "a", "b", "c")
	ds := s.update(queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Max: 3, Lease: minute}})[0].Claimed.Deliveries
	equal(s, "receipt shown", s.entry(mail, "b").Receipt, ds[1].Receipt)
	s.update(queue.RetryChange{Receipt: ds[1].Receipt}, queue.ExtendChange{Receipt: ds[2].Receipt, Lease: time.Hour})
	s.ack(ds[0].Receipt)
	s.ack(ds[2].Receipt)
	s.loses(ds[1].Receipt, queue.ErrStale, 1, func() error { return s.Store.Ack(s.ctx, ds[1].Receipt) })
	s.takes(mail, 5, "b")
}

func updateOwnSlices(s *scene) {
	m := message("a", holding(`"before"`))
	out := s.update(queue.EnqueueChange{Queue: mail, Message: m}, queue.ClaimChange{Queue: mail})
	copy(m.Payload, "xxxxxxxx")
	d := out[1].Claimed.Deliveries[0]
	equal(s, "payload", string(d.Payload), `"before"`)
	copy(d.Payload, "yyyyyyyy")
	equal(s, "payload shown", string(s.entry(mail, "a").Payload), `"before"`)
}
