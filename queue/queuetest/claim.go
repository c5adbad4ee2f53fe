package queuetest

import (
	"strings"
	"sync/atomic"
	"time"

	"example.com/holdfast/queue"
)

var claimTrials = []trial{
	{"nothing due is an empty result", claimNothing},
	{"what a delivery says", claimDelivery},
	{"as many as asked", claimMax},
	{"as many bytes as asked", claimMaxBytes},
	{"leases", claimLeases},
	{"a lease is over at its deadline", claimOver},
	{"a leased one is not given out, not even an overdue one", claimNotAgain},
	{"due exactly at its time", claimDueAtItsTime},
	{"what has failed so far", claimHistory},
	{"a label is shown", claimLabel},
	{"refused options", claimRefused},
	{"many claimers share out", claimMany},
	{"the payload's slice is the caller's", claimOwnSlice},
}

func claimNothing(s *scene) {
	before := s.look()
	s.takes("unknown", 5, "")
	s.unchanged(before)
	s.put(mail, "a")
	s.ack(s.take(mail, "a").Receipt)
	before = s.look()
	s.takes(mail, 5, "")
	s.claim(mail, queue.ClaimOptions{Fair: true})
	s.unchanged(before)
	s.counted(mail, queue.Counters{Enqueued: 1, Claimed: 1, Completed: 1})
}

func claimDelivery(s *scene) {
	e := s.put(mail, "a", key("k"))
	enqueued := s.Now()
	s.Advance(time.Second)
	ds := s.claim(mail, queue.ClaimOptions{Lease: 90 * time.Second})
	equal(s, "claimed", ids(ds), "a")
	d := ds[0]
	want := queue.Receipt{Store: d.Receipt.Store, Queue: mail, ID: "a", Generation: e.Generation, Attempt: 1}
	if d.Receipt != want || d.Receipt.Store == "" {
		s.Fatalf("got receipt %s, want %s", d.Receipt, want)
	}
	equal(s, "payload", string(d.Payload), string(payloadOf("a")))
	equal(s, "key", d.Key, "k")
	equal(s, "last error", d.LastError, "")
	equal(s, "failures and lapses", d.Failures+d.Lapses, 0)
	equal(s, "attempt", d.Attempt(), 1)
	s.sameTime("deadline", d.Deadline, s.Now().Add(90*time.Second))
	s.sameTime("enqueued at", d.EnqueuedAt, enqueued)
	if d.Fence == 0 {
		s.Fatal("fence 0")
	}
	got := s.entry(mail, "a")
	equal(s, "state", got.State, queue.Processing)
	equal(s, "receipt", got.Receipt, d.Receipt)
	equal(s, "fence", got.Fence, d.Fence)
	s.sameTime("deadline shown", got.Deadline, d.Deadline)
	s.sameTime("not before", got.NotBefore, time.Time{})
	read, err := queue.ParseReceipt(d.Receipt.String())
	s.must(err)
	s.ack(read)
	s.gauged(mail, gauges{})
}

func claimMax(s *scene) {
	s.puts(mail, "a", "b", "c", "d", "e", "f")
	equal(s, "claimed", ids(s.claim(mail, queue.ClaimOptions{})), "a")
	equal(s, "claimed", ids(s.claim(mail, queue.ClaimOptions{Max: 2})), "b c")
	equal(s, "claimed", ids(s.claim(mail, queue.ClaimOptions{Max: queue.MaxClaim})), "d e f")
	s.gauged(mail, gauges{processing: 6})
	s.counted(mail, queue.Counters{Enqueued: 6, Claimed: 6})
}

// The bound is of payloads together. It keeps to the order: a smaller one behind the one
// that is too much waits too.
func claimMaxBytes(s *scene) {
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		payload := `"four"`
		if id == "d" {
			payload = `"much more than four"`
		}
		s.put(mail, id, holding(payload))
	}
	four := int64(len(`"four"`))
	for _, c := range []struct {
		most int64
		fair bool
		want string
	}{
		{3*four - 1, false, "a b"}, {3 * four, false, "a b c"}, {4 * four, false, "a b c"}, {4 * four, true, "a b c"},
		{1, false, "a"}, {1, true, "a"}, {queue.DefaultMaxPayloadBytes, false, "a b c d e"}, {0, false, "a b c d e"},
	} {
		ds := s.claim(mail, queue.ClaimOptions{Max: 9, MaxBytes: c.most, Fair: c.fair})
		if got := ids(ds); got != c.want {
			s.Fatalf("of %d bytes, fair %v, got %q, want %q", c.most, c.fair, got, c.want)
		}
		for _, d := range ds {
			s.must(s.Store.Release(s.ctx, d.Receipt, queue.ReleaseOptions{}))
		}
	}
	equal(s, "claimed", ids(s.claim(mail, queue.ClaimOptions{MaxBytes: 1})), "a")
}

func claimLeases(s *scene) {
	for _, lease := range []time.Duration{0, time.Millisecond, time.Hour, queue.MaxLease, queue.NoDeadline} {
		deadline := s.ends(lease)
		s.put(mail, "")
		d := s.claim(mail, queue.ClaimOptions{Lease: lease})[0]
		s.sameTime("deadline of the claim", d.Deadline, deadline)
		s.sameTime("deadline shown", s.entry(mail, d.Receipt.ID).Deadline, deadline)
		s.ack(d.Receipt)

		id := s.put(mail, "").ID
		d, err := s.Store.Load(s.ctx, mail, id, queue.LoadOptions{Lease: lease})
		s.must(err)
		s.sameTime("deadline of the load", d.Deadline, deadline)
	}
}

// ends is the deadline of a lease that begins now.
func (s *scene) ends(lease time.Duration) time.Time {
	switch lease {
	case 0:
		return s.Now().Add(queue.DefaultLease)
	case queue.NoDeadline:
		return time.Time{}
	}
	return s.Now().Add(lease)
}

func claimOver(s *scene) {
	s.put(mail, "a")
	s.take(mail, "a")
	s.Advance(minute - time.Millisecond)
	s.gauged(mail, gauges{processing: 1})
	s.Advance(time.Millisecond)
	s.gauged(mail, gauges{processing: 1, overdue: 1})
	equal(s, "overdue", s.entry(mail, "a").Overdue, true)
	s.put(mail, "b")
	s.claim(mail, queue.ClaimOptions{Lease: queue.NoDeadline})
	s.Advance(10 * queue.DefaultLease)
	s.gauged(mail, gauges{processing: 2, overdue: 1})
}

func claimNotAgain(s *scene) {
	s.puts(mail, "a", "b")
	d := s.take(mail, "a")
	s.Advance(time.Hour)
	s.takes(mail, 5, "b")
	s.takes(mail, 5, "")
	s.ack(d.Receipt) // past its deadline the receipt is still good
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 2, Completed: 1})
}

func claimDueAtItsTime(s *scene) {
	s.put(mail, "a", s.after(minute))
	s.put(mail, "past", at(s.Now().Add(-time.Hour)))
	s.takes(mail, 5, "past")
	s.Advance(minute - time.Millisecond)
	s.gauged(mail, gauges{scheduled: 1, processing: 1})
	s.takes(mail, 5, "")
	s.Advance(time.Millisecond)
	s.gauged(mail, gauges{ready: 1, processing: 1, overdue: 1})
	s.takes(mail, 5, "a")
}

func claimHistory(s *scene) {
	s.put(mail, "a")
	enqueued := s.Now()
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: "smtp: 550"}) // a failure
	s.release(s.take(mail, "a").Receipt, 0)                                    // excused
	s.take(mail, "a")
	s.Advance(minute)
	s.reapOne() // a lapse
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Cause: "smtp: 551"})
	d := s.take(mail, "a")
	equal(s, "attempt", d.Attempt(), 5)
	equal(s, "failures", d.Failures, 2)
	equal(s, "lapses", d.Lapses, 1)
	equal(s, "last error", d.LastError, "smtp: 551")
	s.sameTime("enqueued at", d.EnqueuedAt, enqueued)
	e := s.entry(mail, "a")
	equal(s, "attempts, excused, lapses", [3]uint64{e.Attempts, e.Excused, e.Lapses}, [3]uint64{5, 1, 1})
}

func claimLabel(s *scene) {
	s.puts(mail, "a", "b")
	d := s.claim(mail, queue.ClaimOptions{Label: "worker 1 \U0001f4ec"})[0]
	equal(s, "label", s.entry(mail, "a").Label, "worker 1 \U0001f4ec")
	s.release(d.Receipt, 0)
	equal(s, "label", s.entry(mail, "a").Label, "")
	_, err := s.Store.Load(s.ctx, mail, "b", queue.LoadOptions{Label: "b's"})
	s.must(err)
	equal(s, "label", s.entry(mail, "b").Label, "b's")
}

func claimRefused(s *scene) {
	s.put(mail, "a")
	for _, o := range []queue.ClaimOptions{
		{Max: -1}, {Max: queue.MaxClaim + 1}, {Max: 1, MaxBytes: -1},
		{Lease: -2}, {Lease: time.Millisecond - 1}, {Lease: queue.MaxLease + 1},
		{Label: strings.Repeat("l", queue.MaxNameBytes+1)}, {Label: "a\x1bb"},
	} {
		s.refuses(queue.ErrInvalid, func() error {
			_, err := s.Store.Claim(s.ctx, mail, o)
			return err
		})
		if o.Max == 0 {
			s.refuses(queue.ErrInvalid, func() error {
				_, err := s.Store.Load(s.ctx, mail, "a", queue.LoadOptions{Lease: o.Lease, Label: o.Label})
				return err
			})
		}
	}
	s.refuses(queue.ErrInvalidName, func() error {
		_, err := s.Store.Claim(s.ctx, "mail/ack", queue.ClaimOptions{})
		return err
	})
}

func claimMany(s *scene) {
	const messages, claimers = 120, 8
	var ms []queue.Message
	for range messages {
		ms = append(ms, message(""))
	}
	s.enqueueBatch(mail, ms...)
	claimed := make([][]queue.Delivery, claimers)
	var left atomic.Int64
	left.Store(messages)
	errs := s.together(claimers, func(i int) error {
		for left.Load() > 0 {
			c, err := s.Store.Claim(s.ctx, mail, queue.ClaimOptions{Max: 1 + i%3})
			if err != nil || len(c.Deliveries) == 0 {
				return err
			}
			claimed[i] = append(claimed[i], c.Deliveries...)
			left.Add(-int64(len(c.Deliveries)))
		}
		return nil
	})
	seen, fences := map[string]bool{}, map[uint64]bool{}
	for i, ds := range claimed {
		s.must(errs[i])
		for j, d := range ds {
			if seen[d.Receipt.ID] || fences[d.Fence] {
				s.Fatalf("claimed twice, or a fence twice: %+v", d)
			}
			if j > 0 && d.Fence <= ds[j-1].Fence {
				s.Fatalf("fence %d came after %d", d.Fence, ds[j-1].Fence)
			}
			seen[d.Receipt.ID], fences[d.Fence] = true, true
		}
	}
	equal(s, "claimed", len(seen), messages)
}

func claimOwnSlice(s *scene) {
	s.put(mail, "a", holding(`"before"`))
	d := s.take(mail, "a")
	copy(d.Payload, "xxxxxxxx")
	equal(s, "payload shown", string(s.entry(mail, "a").Payload), `"before"`)
	s.release(d.Receipt, 0)
	d = s.load(mail, "a")
	equal(s, "payload", string(d.Payload), `"before"`)
	copy(d.Payload, "xxxxxxxx")
	equal(s, "payload shown", string(s.entry(mail, "a").Payload), `"before"`)
}
