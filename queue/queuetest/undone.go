package queuetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// A refused Update leaves no trace, whatever the refusal and wherever it stands.

// stage makes a store in which every one of the changes is good, each to something of
// its own, and gives a claim that none of them names.
func stage(s *scene) (changes []queue.Change, free queue.Receipt) {
	s.keepFailedIn(spool, "spooled")
	s.puts(mail, "a", "b", "c", "d", "e", "f", "failed", "pending")
	s.putKeyed(mail, "k", "k1", "k2")
	s.putKeyed(mail, "l", "l1")
	s.puts(spool, "y")
	s.fail(s.load(mail, "failed").Receipt, "before")
	s.update(queue.CursorChange{Queue: mail, Cursor: "before"})
	ds := s.takes(mail, 6, "a b c d e f")
	s.put(mail, "c", how(queue.Replace)) // behind the claimed one
	s.Advance(minute)
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{Limit: 4})), "a b c d") // the others are overdue
	s.puts(desk, "r", "n", "p", "q", "i")
	s.put(desk, "l", s.after(time.Hour))
	for _, id := range []string{"p", "q", "i"} {
		s.fail(s.load(desk, id).Receipt, "before")
	}
	s.puts(desk, "i") // whose ID is in flight
	s.load(desk, "i")
	held, named := s.load(desk, "r").Receipt, s.load(desk, "n").Receipt
	return []queue.Change{
		queue.AckChange{Receipt: ds[0].Receipt},
		queue.ReleaseChange{Receipt: ds[1].Receipt, Options: queue.ReleaseOptions{Delay: minute}},
		queue.RetryChange{Receipt: ds[2].Receipt, Options: queue.RetryOptions{Cause: "after", MaxFailures: 1}},
		queue.ExtendChange{Receipt: ds[3].Receipt, Lease: minute},
		queue.FailChange{Receipt: ds[4].Receipt, Options: queue.FailOptions{Cause: "after"}},
		queue.EnqueueChange{Queue: mail, Message: message("new")},
		queue.EnqueueChange{Queue: mail, Message: message("pending", how(queue.Replace))},
		queue.EnqueueChange{Queue: "unheard/of", Message: message("new", holding(blank(100_000)))},
		queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Max: 2, Fair: true}},
		queue.ClaimChange{Queue: spool},
		queue.CursorChange{Queue: mail, Cursor: "after"},
		queue.CursorChange{Queue: "only/a/cursor", Cursor: "after"},
		queue.LoadChange{Queue: desk, ID: "l"},
		queue.ReplacePayloadChange{Receipt: held, Payload: []byte(`"after"`)},
		queue.ReapChange{Receipt: named},
		queue.ReprocessChange{FailedName: "p"},
		queue.PurgeChange{FailedName: "q"},
	}, ds[5].Receipt
}

// spoilt gives a receipt that is not good.
func spoilt(r queue.Receipt, spoil func(r *queue.Receipt)) queue.Receipt {
	spoil(&r)
	return r
}

func future(r *queue.Receipt)    { r.Attempt++ }
func unknown(r *queue.Receipt)   { r.ID = "unknown" }
func elsewhere(r *queue.Receipt) { r.Store += "x" }

// undoneBy are the changes that are refused; r is a good receipt.
var undoneBy = []struct {
	name   string
	want   error
	change func(r queue.Receipt) queue.Change
}{
	{"ack of a stale receipt", queue.ErrStale, func(r queue.Receipt) queue.Change {
		return queue.AckChange{Receipt: spoilt(r, future)}
	}},
	{"ack of another store's receipt", queue.ErrInvalidReceipt, func(r queue.Receipt) queue.Change {
		return queue.AckChange{Receipt: spoilt(r, elsewhere)}
	}},
	{"release of a message gone", queue.ErrGone, func(r queue.Receipt) queue.Change {
		return queue.ReleaseChange{Receipt: spoilt(r, unknown)}
	}},
	{"release with a bad delay", queue.ErrInvalid, func(r queue.Receipt) queue.Change {
		return queue.ReleaseChange{Receipt: r, Options: queue.ReleaseOptions{Delay: -1}}
	}},
	{"retry of a stale receipt", queue.ErrStale, func(r queue.Receipt) queue.Change {
		return queue.RetryChange{Receipt: spoilt(r, future)}
	}},
	{"extend of a message gone", queue.ErrGone, func(r queue.Receipt) queue.Change {
		return queue.ExtendChange{Receipt: spoilt(r, unknown)}
	}},
	{"extend with a bad lease", queue.ErrInvalid, func(r queue.Receipt) queue.Change {
		return queue.ExtendChange{Receipt: r, Lease: -7}
	}},
	{"fail under a taken name", queue.ErrFailedExists, func(r queue.Receipt) queue.Change {
		return queue.FailChange{Receipt: r, Options: queue.FailOptions{As: "failed"}}
	}},
	{"fail under a bad name", queue.ErrInvalidName, func(r queue.Receipt) queue.Change {
		return queue.FailChange{Receipt: r, Options: queue.FailOptions{As: "a/b"}}
	}},
	{"fail of a stale receipt", queue.ErrStale, func(r queue.Receipt) queue.Change {
		return queue.FailChange{Receipt: spoilt(r, future)}
	}},
	{"enqueue of a live ID", queue.ErrDuplicate, func(queue.Receipt) queue.Change {
		return queue.EnqueueChange{Queue: mail, Message: message("k1")}
	}},
	{"enqueue of a bad payload", queue.ErrInvalidPayload, func(queue.Receipt) queue.Change {
		return queue.EnqueueChange{Queue: mail, Message: message("z", holding("{"))}
	}},
	{"enqueue under a bad ID", queue.ErrInvalidName, func(queue.Receipt) queue.Change {
		return queue.EnqueueChange{Queue: mail, Message: message("z/z")}
	}},
	{"claim of a bad queue", queue.ErrInvalidName, func(queue.Receipt) queue.Change {
		return queue.ClaimChange{Queue: "mail/ack"}
	}},
	{"claim of too many", queue.ErrInvalid, func(queue.Receipt) queue.Change {
		return queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Max: queue.MaxClaim + 1}}
	}},
	{"load of an unknown ID", queue.ErrNotFound, func(queue.Receipt) queue.Change {
		return queue.LoadChange{Queue: desk, ID: "unknown"}
	}},
	{"load of a leased message", queue.ErrLeased, func(queue.Receipt) queue.Change {
		return queue.LoadChange{Queue: desk, ID: "r"}
	}},
	{"load under a bad ID", queue.ErrInvalidName, func(queue.Receipt) queue.Change {
		return queue.LoadChange{Queue: desk, ID: "r/r"}
	}},
	{"load with a bad lease", queue.ErrInvalid, func(queue.Receipt) queue.Change {
		return queue.LoadChange{Queue: desk, ID: "l", Options: queue.LoadOptions{Lease: -7}}
	}},
	{"another payload for a stale receipt", queue.ErrStale, func(r queue.Receipt) queue.Change {
		return queue.ReplacePayloadChange{Receipt: spoilt(r, future), Payload: []byte("1")}
	}},
	{"another payload for a message gone", queue.ErrGone, func(r queue.Receipt) queue.Change {
		return queue.ReplacePayloadChange{Receipt: spoilt(r, unknown), Payload: []byte("1")}
	}},
	{"another payload that is bad", queue.ErrInvalidPayload, func(r queue.Receipt) queue.Change {
		return queue.ReplacePayloadChange{Receipt: r, Payload: []byte("{")}
	}},
	{"reaping of a stale receipt", queue.ErrStale, func(r queue.Receipt) queue.Change {
		return queue.ReapChange{Receipt: spoilt(r, future)}
	}},
	{"reaping of another store's receipt", queue.ErrInvalidReceipt, func(r queue.Receipt) queue.Change {
		return queue.ReapChange{Receipt: spoilt(r, elsewhere)}
	}},
	{"reprocess under an unknown name", queue.ErrNotFailed, func(queue.Receipt) queue.Change {
		return queue.ReprocessChange{FailedName: "unknown"}
	}},
	{"reprocess in another namespace", queue.ErrNotFailed, func(queue.Receipt) queue.Change {
		return queue.ReprocessChange{FailedName: "failed", Options: queue.ReprocessOptions{Namespace: "spooled"}}
	}},
	{"reprocess of an ID in flight", queue.ErrInFlight, func(queue.Receipt) queue.Change {
		return queue.ReprocessChange{FailedName: "i"}
	}},
	{"reprocess under a bad name", queue.ErrInvalidName, func(queue.Receipt) queue.Change {
		return queue.ReprocessChange{FailedName: "a/b"}
	}},
	{"purge under an unknown name", queue.ErrNotFailed, func(queue.Receipt) queue.Change {
		return queue.PurgeChange{FailedName: "unknown"}
	}},
	{"purge in another namespace", queue.ErrNotFailed, func(queue.Receipt) queue.Change {
		return queue.PurgeChange{FailedName: "failed", Options: queue.PurgeOptions{Namespace: "spooled"}}
	}},
	{"purge in a bad namespace", queue.ErrInvalidName, func(queue.Receipt) queue.Change {
		return queue.PurgeChange{FailedName: "failed", Options: queue.PurgeOptions{Namespace: "a/"}}
	}},
	{"a cursor too long", queue.ErrTooLarge, func(queue.Receipt) queue.Change {
		return queue.CursorChange{Queue: mail, Cursor: strings.Repeat("c", queue.MaxCursorBytes+1)}
	}},
	{"no change at all", queue.ErrInvalid, func(queue.Receipt) queue.Change { return nil }},
}

var undoneTrials = []trial{
	{"whatever is refused, and wherever", undoneWherever},
	{"by what the update itself did", undoneByItself},
	{"the last of many", undoneLastOfMany},
	{"too many changes", undoneTooMany},
	{"the turn of a fair claim", undoneTurn},
}

func undoneWherever(s *scene) {
	good, free := stage(s)
	for _, c := range undoneBy {
		if !s.T.Run(c.name, func(t *testing.T) {
			for _, i := range []int{0, 1, len(good) / 2, len(good)} {
				s.in(t).refusedAt(i, c.want, slices.Insert(slices.Clone(good), i, c.change(free))...)
			}
		}) {
			return
		}
	}
	s.update(good...) // all of it was good
	s.ack(free)
}

// refusedAt checks that an update is refused at the change of index i and leaves no
// trace.
func (s *scene) refusedAt(i int, want error, changes ...queue.Change) {
	s.Helper()
	before := s.look()
	out, err := s.Store.Update(s.ctx, changes...)
	var refused *queue.UpdateError
	if !errors.As(err, &refused) || len(out) > 0 {
		s.Fatalf("got %v, %v, want a *queue.UpdateError", out, err)
	}
	if s.is(err, want); refused.Index != i || refused.Err == nil {
		s.Fatalf("got %+v, want index %d", refused, i)
	}
	s.unchanged(before)
}

func undoneByItself(s *scene) {
	good, free := stage(s)
	n := len(good)
	for _, c := range []struct {
		want   error
		change queue.Change
	}{
		{queue.ErrGone, good[0]},  // acked already
		{queue.ErrStale, good[1]}, // released already
		{queue.ErrGone, queue.AckChange{Receipt: good[2].(queue.RetryChange).Receipt}}, // failed at its cap
		{queue.ErrGone, good[4]},      // failed already
		{queue.ErrDuplicate, good[5]}, // enqueued already
		{queue.ErrFailedExists, queue.FailChange{Receipt: free, Options: queue.FailOptions{As: "e"}}}, // taken just before
		{queue.ErrLeased, good[n-5]},                             // loaded already
		{queue.ErrStale, good[n-3]},                              // reaped already
		{queue.ErrNotFailed, good[n-2]},                          // reprocessed already
		{queue.ErrNotFailed, queue.PurgeChange{FailedName: "p"}}, // reprocessed already
		{queue.ErrNotFailed, good[n-1]},                          // purged already
	} {
		s.refusedAt(n, c.want, append(slices.Clone(good), c.change)...)
	}
	s.update(good...)
}

func undoneLastOfMany(s *scene) {
	var changes []queue.Change
	s.put(mail, "a")
	d := s.take(mail, "a")
	changes = append(changes, queue.ReleaseChange{Receipt: d.Receipt})
	for range 100 {
		changes = append(changes,
			queue.EnqueueChange{Queue: mail, Message: message("", key("k"))},
			queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Fair: true}},
			queue.EnqueueChange{Queue: spool, Message: message("")})
	}
	s.refusedAt(len(changes), queue.ErrStale, append(slices.Clone(changes), queue.AckChange{Receipt: d.Receipt})...)
	s.refusedAt(1, queue.ErrStale, append([]queue.Change{changes[0], queue.AckChange{Receipt: d.Receipt}}, changes[1:]...)...)
	s.update(changes...)
	s.gauged(mail, gauges{blocked: 99, processing: 2})
	s.gauged(spool, gauges{ready: 100})
}

func undoneTooMany(s *scene) {
	changes := []queue.Change{queue.EnqueueChange{Queue: mail, Message: message("a")}}
	for len(changes) <= queue.MaxUpdate {
		changes = append(changes, queue.CursorChange{Queue: mail, Cursor: "1"})
	}
	s.refuses(queue.ErrTooLarge, func() error {
		_, err := s.Store.Update(s.ctx, changes...)
		return err
	})
	s.update(changes[:queue.MaxUpdate]...)
	s.gauged(mail, gauges{ready: 1})
}

func undoneTurn(s *scene) {
	s.putKeyed(mail, "a", "a1", "a2")
	s.putKeyed(mail, "b", "b1", "b2")
	s.putKeyed(mail, "c", "c1", "c2")
	s.fairAck(mail, "a1")
	fair := queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Fair: true}}
	s.refusedAt(1, queue.ErrDuplicate, fair, queue.EnqueueChange{Queue: mail, Message: message("a2")})
	out := s.update(fair)
	equal(s, "claimed", ids(out[0].Claimed.Deliveries), "b1")
	out = s.update(queue.ReleaseChange{Receipt: out[0].Claimed.Deliveries[0].Receipt}, fair)
	equal(s, "claimed", ids(out[1].Claimed.Deliveries), "c1")
}
