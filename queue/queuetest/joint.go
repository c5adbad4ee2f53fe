package queuetest

import (
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// Many calls of one kind in one commit, and of different kinds of one message.

var jointTrials = []trial{
	{"a hundred of each call in one commit", jointBatches},
	{"what each brings back", jointOutcomes},
	{"a load as it goes alone", jointLoads},
	{"settle, follow up, claim the next", jointFollowUp},
	{"claimed, ended, extended, failed, back and claimed again", jointLife},
	{"another payload and what follows", jointPayload},
	{"a failed message and what follows", jointFailed},
	{"ended by name and what follows", jointReap},
}

// batchSize is how many messages the batches are of.
const batchSize = 100

// many gives the messages of a batch, and claims them.
func (s *scene) many(claimed bool) (names []string, ds []queue.Delivery) {
	s.Helper()
	var ms []queue.Message
	for i := range batchSize {
		names = append(names, fmt.Sprintf("m%03d", i))
		ms = append(ms, message(names[i]))
	}
	s.enqueueBatch(mail, ms...)
	if claimed {
		ds = s.claim(mail, queue.ClaimOptions{Max: batchSize, Lease: minute})
		equal(s, "claimed", len(ds), batchSize)
	}
	return names, ds
}

func jointBatches(s *scene) {
	receipts := func(change func(r queue.Receipt) queue.Change) func(s *scene) []queue.Change {
		return func(s *scene) (changes []queue.Change) {
			_, ds := s.many(true)
			for _, d := range ds {
				changes = append(changes, change(d.Receipt))
			}
			return changes
		}
	}
	failed := func(change func(name string) queue.Change) func(s *scene) []queue.Change {
		return func(s *scene) (changes []queue.Change) {
			names, ds := s.many(true)
			var fail []queue.Change
			for i, d := range ds {
				fail = append(fail, queue.FailChange{Receipt: d.Receipt})
				changes = append(changes, change(names[i]))
			}
			s.update(fail...)
			return changes
		}
	}
	for _, c := range []struct {
		name    string
		changes func(s *scene) []queue.Change
		gauged  gauges
		counter func(c *queue.Counters) *uint64
	}{
		{"enqueue", func(*scene) (changes []queue.Change) {
			for i := range batchSize {
				changes = append(changes, queue.EnqueueChange{Queue: mail, Message: message(fmt.Sprint("m", i))})
			}
			return changes
		}, gauges{ready: batchSize}, func(c *queue.Counters) *uint64 { return &c.Enqueued }},
		{"claim", func(s *scene) (changes []queue.Change) {
			s.many(false)
			for range batchSize {
				changes = append(changes, queue.ClaimChange{Queue: mail})
			}
			return changes
		}, gauges{processing: batchSize}, func(c *queue.Counters) *uint64 { return &c.Claimed }},
		{"load", func(s *scene) (changes []queue.Change) {
			names, _ := s.many(false)
			for _, id := range names {
				changes = append(changes, queue.LoadChange{Queue: mail, ID: id})
			}
			return changes
		}, gauges{processing: batchSize}, func(c *queue.Counters) *uint64 { return &c.Claimed }},
		{"ack", receipts(func(r queue.Receipt) queue.Change { return queue.AckChange{Receipt: r} }),
			gauges{}, func(c *queue.Counters) *uint64 { return &c.Completed }},
		{"release", receipts(func(r queue.Receipt) queue.Change { return queue.ReleaseChange{Receipt: r} }),
			gauges{ready: batchSize}, func(c *queue.Counters) *uint64 { return &c.Released }},
		{"retry", receipts(func(r queue.Receipt) queue.Change {
			return queue.RetryChange{Receipt: r, Options: queue.RetryOptions{Delay: minute}}
		}), gauges{scheduled: batchSize}, func(c *queue.Counters) *uint64 { return &c.Retried }},
		{"extend", receipts(func(r queue.Receipt) queue.Change { return queue.ExtendChange{Receipt: r} }),
			gauges{processing: batchSize}, nil},
		{"fail", receipts(func(r queue.Receipt) queue.Change { return queue.FailChange{Receipt: r} }),
			gauges{failed: batchSize}, func(c *queue.Counters) *uint64 { return &c.Failed }},
		{"replace payload", receipts(func(r queue.Receipt) queue.Change {
			return queue.ReplacePayloadChange{Receipt: r, Payload: []byte(`"another"`)}
		}), gauges{processing: batchSize}, nil},
		{"reap", receipts(func(r queue.Receipt) queue.Change { return queue.ReapChange{Receipt: r} }),
			gauges{ready: batchSize}, func(c *queue.Counters) *uint64 { return &c.Reaped }},
		{"reprocess", failed(func(name string) queue.Change { return queue.ReprocessChange{FailedName: name} }),
			gauges{ready: batchSize}, func(c *queue.Counters) *uint64 { return &c.Reprocessed }},
		{"purge", failed(func(name string) queue.Change { return queue.PurgeChange{FailedName: name} }),
			gauges{}, func(c *queue.Counters) *uint64 { return &c.Purged }},
	} {
		s.Log(c.name)
		changes := c.changes(s)
		want, before := s.status(mail).Counters, s.look().status.Revision
		s.update(changes...)
		equal(s, "revision", s.look().status.Revision, before+1)
		s.gauged(mail, c.gauged)
		if c.counter != nil {
			*c.counter(&want) += batchSize
		}
		s.counted(mail, want)
		s.sweep()
	}
}

func jointOutcomes(s *scene) {
	s.put(mail, "loaded", s.after(time.Hour), key("k"), holding("1"))
	s.puts(mail, "named", "capped", "failed", "purged")
	s.fail(s.load(mail, "failed").Receipt, "before")
	s.fail(s.load(mail, "purged").Receipt, "before")
	named, capped := s.load(mail, "named").Receipt, s.load(mail, "capped").Receipt
	out := s.update(
		queue.LoadChange{Queue: mail, ID: "loaded", Options: queue.LoadOptions{Lease: minute, Label: "w"}},
		queue.ReapChange{Receipt: named},
		queue.ReapChange{Receipt: capped, MaxLapses: 1},
		queue.ReprocessChange{FailedName: "failed"},
		queue.PurgeChange{FailedName: "purged"},
	)
	ds := out[0].Claimed.Deliveries
	if len(ds) != 1 || len(out[0].Claimed.Damaged) > 0 {
		s.Fatalf("loaded %+v", out[0])
	}
	e := s.entry(mail, "loaded")
	equal(s, "receipt", ds[0].Receipt, e.Receipt)
	equal(s, "label", e.Label, "w")
	equal(s, "key, payload", ds[0].Key+string(ds[0].Payload), "k1")
	s.sameTime("deadline", ds[0].Deadline, s.Now().Add(minute))
	equal(s, "reaped", out[1].Returned, queue.Returned{Queue: mail, ID: "named", Attempt: 1, Cause: queue.ByOperator, Lapses: 1})
	equal(s, "reaped", out[2].Returned, queue.Returned{Queue: mail, ID: "capped", Attempt: 1, Cause: queue.ByOperator, Lapses: 1, FailedName: "capped"})
	s.gauged(mail, gauges{ready: 2, processing: 1, failed: 1})
	s.counted(mail, queue.Counters{Enqueued: 5, Claimed: 5, Reaped: 2, Failed: 3, Reprocessed: 1, Purged: 1})
	s.ack(ds[0].Receipt)
}

func jointLoads(s *scene) {
	s.putKeyed(mail, "k", "k1", "k2")
	s.put(mail, "late", s.after(time.Hour))
	s.puts(mail, "over")
	over := s.load(mail, "over")
	s.Advance(minute)
	s.pause(mail)
	load := func(id string) queue.Change { return queue.LoadChange{Queue: mail, ID: id} }
	out := s.update(load("late"), load("k2"), load("over"))
	equal(s, "attempt of a takeover", out[2].Claimed.Deliveries[0].Attempt(), over.Attempt()+1)
	equal(s, "lapses of a takeover", out[2].Claimed.Deliveries[0].Lapses, 1)
	s.sameTime("deadline by default", out[0].Claimed.Deliveries[0].Deadline, s.Now().Add(queue.DefaultLease))
	k2 := out[1].Claimed.Deliveries[0].Receipt
	s.refusedAt(0, queue.ErrLeased, load("k1"), queue.AckChange{Receipt: k2})
	out = s.update(queue.AckChange{Receipt: k2}, load("k1")) // its key is free by then
	equal(s, "loaded", ids(out[1].Claimed.Deliveries), "k1")
	s.refusedAt(2, queue.ErrLeased, queue.EnqueueChange{Queue: mail, Message: message("new")}, load("new"), load("new"))
	s.counted(mail, queue.Counters{Enqueued: 4, Claimed: 5, Reaped: 1, Completed: 1})
}

func jointFollowUp(s *scene) {
	s.puts(mail, "a", "b")
	d := s.take(mail, "a")
	out := s.update(
		queue.AckChange{Receipt: d.Receipt},
		queue.EnqueueChange{Queue: spool, Message: message("a.1", holding("1"))},
		queue.EnqueueChange{Queue: spool, Message: message("a.2", holding("2"))},
		queue.CursorChange{Queue: spool, Cursor: "a"},
		queue.ClaimChange{Queue: mail},
		queue.ClaimChange{Queue: spool, Options: queue.ClaimOptions{Max: 9}},
	)
	equal(s, "the next", ids(out[4].Claimed.Deliveries), "b")
	equal(s, "follow-ups", ids(out[5].Claimed.Deliveries), "a.1 a.2")
	equal(s, "payload", string(out[5].Claimed.Deliveries[1].Payload), "2")
	out = s.update(
		queue.RetryChange{Receipt: out[4].Claimed.Deliveries[0].Receipt},
		queue.AckChange{Receipt: out[5].Claimed.Deliveries[0].Receipt},
		queue.ReleaseChange{Receipt: out[5].Claimed.Deliveries[1].Receipt},
		queue.ClaimChange{Queue: spool, Options: queue.ClaimOptions{Max: 9}},
		queue.ClaimChange{Queue: mail},
	)
	equal(s, "claimed again", ids(out[3].Claimed.Deliveries)+" "+ids(out[4].Claimed.Deliveries), "a.2 b")
	s.cursorIs(spool, "a")
	s.counted(spool, queue.Counters{Enqueued: 2, Claimed: 3, Completed: 1, Released: 1})
}

func jointLife(s *scene) {
	s.puts(spool, "x")
	r := s.take(spool, "x").Receipt // a receipt can be told before its claim
	r.Queue, r.ID, r.Generation = mail, "a", s.put(mail, "a").Generation
	out := s.update(
		queue.LoadChange{Queue: mail, ID: "a"},
		queue.ReapChange{Receipt: r},
		queue.ExtendChange{Receipt: r, Lease: minute}, // its worker lives
		queue.FailChange{Receipt: r},
		queue.ReprocessChange{FailedName: "a"},
		queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Max: 9}},
		queue.EnqueueChange{Queue: mail, Message: message("a", how(queue.Replace))},
		queue.ClaimChange{Queue: mail}, // the newer generation waits
	)
	equal(s, "claimed", ids(out[5].Claimed.Deliveries)+ids(out[7].Claimed.Deliveries), "a")
	equal(s, "attempt", out[5].Claimed.Deliveries[0].Attempt(), 2)
	r.Attempt = 2
	s.update(queue.AckChange{Receipt: r}, queue.ClaimChange{Queue: mail})
	s.gauged(mail, gauges{processing: 1})
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 3, Reaped: 1, Failed: 1, Reprocessed: 1, Completed: 1})
}

func jointPayload(s *scene) {
	s.puts(mail, "a", "b", "c", "d")
	ds := s.takes(mail, 4, "a b c d")
	payload := []byte("2")
	with := func(d queue.Delivery) queue.Change {
		return queue.ReplacePayloadChange{Receipt: d.Receipt, Payload: payload}
	}
	out := s.update(
		with(ds[0]), queue.ReleaseChange{Receipt: ds[0].Receipt}, queue.LoadChange{Queue: mail, ID: "a"},
		with(ds[1]), queue.FailChange{Receipt: ds[1].Receipt},
		with(ds[2]), queue.AckChange{Receipt: ds[2].Receipt},
		with(ds[3]), queue.ReplacePayloadChange{Receipt: ds[3].Receipt, Payload: []byte(blank(100_000))},
	)
	copy(payload, "3") // the caller's again
	equal(s, "payload of a", string(out[2].Claimed.Deliveries[0].Payload), "2")
	equal(s, "payload of b", string(s.evidence("b").Payload), "2")
	equal(s, "payload of d", string(s.entry(mail, "d").Payload), blank(100_000))
	s.release(out[2].Claimed.Deliveries[0].Receipt, 0)
	equal(s, "payload of a", string(s.take(mail, "a").Payload), "2")
	s.reprocess("b")
	equal(s, "payload of b", string(s.take(mail, "b").Payload), "2")
	out = s.update(queue.EnqueueChange{Queue: spool, Message: message("x")}, queue.ClaimChange{Queue: spool})
	x := out[1].Claimed.Deliveries[0]
	s.update(with(x), queue.ReleaseChange{Receipt: x.Receipt, Options: queue.ReleaseOptions{Delay: minute}})
	equal(s, "payload of x", string(s.entry(spool, "x").Payload), "3")
}

func jointFailed(s *scene) {
	s.puts(mail, "a", "b")
	s.put(mail, "c", holding("1"))
	ds := s.takes(mail, 3, "a b c")
	out := s.update(
		queue.FailChange{Receipt: ds[0].Receipt}, queue.PurgeChange{FailedName: "a"},
		queue.FailChange{Receipt: ds[1].Receipt, Options: queue.FailOptions{As: "a"}}, // the name is free again
		queue.FailChange{Receipt: ds[2].Receipt}, queue.ReprocessChange{FailedName: "c"},
		queue.LoadChange{Queue: mail, ID: "c"},
	)
	equal(s, "failed names", out[0].Failed+out[2].Failed+out[3].Failed, "aac")
	equal(s, "b failed as", s.evidence("a").ID, "b")
	c := out[5].Claimed.Deliveries[0]
	equal(s, "payload of c", string(c.Payload), "1")
	equal(s, "attempt, failures of c", [2]uint64{c.Attempt(), c.Failures}, [2]uint64{2, 0})
	s.refusedAt(2, queue.ErrInFlight,
		queue.EnqueueChange{Queue: mail, Message: message("b")}, queue.LoadChange{Queue: mail, ID: "b"},
		queue.ReprocessChange{FailedName: "a"})
	s.gauged(mail, gauges{processing: 1, failed: 1})
	s.counted(mail, queue.Counters{Enqueued: 3, Claimed: 4, Failed: 3, Reprocessed: 1, Purged: 1})
}

func jointReap(s *scene) {
	s.puts(mail, "a", "b")
	ds := s.takes(mail, 2, "a b")
	out := s.update(
		queue.ReapChange{Receipt: ds[0].Receipt}, queue.AckChange{Receipt: ds[0].Receipt}, // good until the next claim
		queue.ReapChange{Receipt: ds[1].Receipt}, queue.ClaimChange{Queue: mail},
	)
	d := out[3].Claimed.Deliveries[0]
	equal(s, "b's attempt, failures, lapses", [3]uint64{d.Attempt(), d.Failures, d.Lapses}, [3]uint64{2, 0, 1})
	s.loses(ds[1].Receipt, queue.ErrStale, 2, func() error { return s.Store.Ack(s.ctx, ds[1].Receipt) })
	s.refusedAt(1, queue.ErrStale, queue.ReapChange{Receipt: d.Receipt}, queue.ReapChange{Receipt: d.Receipt})
	s.ack(d.Receipt)
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 3, Completed: 2, Reaped: 2})
}
