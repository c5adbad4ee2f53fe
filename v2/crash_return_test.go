//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// The scenarios of what brings messages back, and of what changes several things in
// one commit.

// withOverdue is withClaims, where the leases of b and c are past their deadline.
func withOverdue(t testing.TB, d *crashtest.Disk, s *Store) {
	withThree(t, d, s)
	p := d.Process()
	o := crashOptions(p)
	early := crashClock.at
	early.Wall, early.Boot = early.Wall.Add(-time.Minute), early.Boot-time.Minute
	o.clock = fixedClock{early}
	old, err := Open(t.Context(), crashDir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	defer old.Close()
	for _, id := range []string{"b", "c"} {
		if _, err := old.Load(t.Context(), "mail", id, queue.LoadOptions{Lease: time.Second, Label: "gone"}); err != nil {
			t.Fatal(err)
		}
	}
}

// withReaped is withOverdue after b was reaped.
func withReaped(t testing.TB, d *crashtest.Disk, s *Store) {
	withOverdue(t, d, s)
	if _, err := s.Reap(t.Context(), queue.ReapOptions{Limit: 1}); err != nil {
		t.Fatal(err)
	}
}

// withKeys is a store with messages of two keys and one without.
func withKeys(t testing.TB, _ *crashtest.Disk, s *Store) {
	var ms []queue.Message
	for _, m := range []struct{ id, key string }{{"a1", "a"}, {"a2", "a"}, {"free", ""}, {"b1", "b"}} {
		ms = append(ms, queue.Message{ID: m.id, Key: m.key, Payload: []byte(`"` + m.id + `"`)})
	}
	if _, err := s.EnqueueBatch(t.Context(), "mail", ms); err != nil {
		t.Fatal(err)
	}
}

// settle makes a step of a call that takes the receipt of a message.
func settle(id string, f func(ctx context.Context, s *Store, r queue.Receipt) error) crashStep {
	return func(ctx context.Context, s *Store, r receipts) error { return f(ctx, s, r[id]) }
}

var returnScenarios = []crashScenario{
	{name: "retry", setup: withClaims, steps: []crashStep{
		settle("a", func(ctx context.Context, s *Store, r queue.Receipt) error {
			_, err := s.Retry(ctx, r, queue.RetryOptions{Delay: time.Minute, Cause: "not yet"})
			return err
		}),
		settle("b", func(ctx context.Context, s *Store, r queue.Receipt) error {
			_, err := s.Retry(ctx, r, queue.RetryOptions{MaxFailures: 1, Cause: "never"})
			return err
		}),
	}},
	{name: "release-delay", setup: withClaims, steps: []crashStep{
		settle("a", func(ctx context.Context, s *Store, r queue.Receipt) error {
			return s.Release(ctx, r, queue.ReleaseOptions{Delay: time.Hour})
		}),
	}},
	{name: "extend", setup: withClaims, steps: []crashStep{
		settle("a", func(ctx context.Context, s *Store, r queue.Receipt) error {
			_, err := s.Extend(ctx, r, time.Hour)
			return err
		}),
	}},
	{name: "reap", setup: withOverdue, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			got, err := s.Reap(ctx, queue.ReapOptions{Limit: 1})
			if err == nil && len(got) != 1 {
				return fmt.Errorf("reaped %v", got)
			}
			return err
		},
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.Reap(ctx, queue.ReapOptions{MaxLapses: 1})
			return err
		},
	}},
	{name: "reap-named", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			receipt := r["c"]
			_, err := s.Reap(ctx, queue.ReapOptions{Receipt: &receipt})
			return err
		},
	}},
	{name: "extend-reaped", setup: withReaped, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			shown, err := s.Show(ctx, "mail", "b")
			if err != nil {
				return err
			}
			_, err = s.Extend(ctx, queue.Receipt{
				Store: s.ID(), Queue: "mail", ID: "b", Generation: shown[0].Generation, Attempt: shown[0].Attempts,
			}, time.Hour)
			return err
		},
	}},
	{name: "reprocess", setup: withFailed, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			return s.Reprocess(ctx, "a", queue.ReprocessOptions{})
		},
	}},
	{name: "pause", setup: withThree, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error { return s.Pause(ctx, "mail") },
		func(ctx context.Context, s *Store, r receipts) error { return s.Resume(ctx, "mail") },
	}},
	{name: "failed-namespace", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			return s.SetFailedNamespace(ctx, "mail", asideSpace)
		},
		settle("b", func(ctx context.Context, s *Store, r queue.Receipt) error {
			_, err := s.Fail(ctx, r, queue.FailOptions{Cause: "no"})
			return err
		}),
	}},
	{name: "claim-fair", setup: withKeys, steps: []crashStep{
		take(queue.ClaimOptions{Fair: true}),
		take(queue.ClaimOptions{Fair: true, Max: 3}),
	}},
	{name: "update", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.Update(ctx,
				queue.AckChange{Receipt: r["a"]},
				queue.RetryChange{Receipt: r["b"], Options: queue.RetryOptions{Cause: "again"}},
				queue.ExtendChange{Receipt: r["c"], Lease: time.Hour},
				queue.EnqueueChange{Queue: "next", Message: small("follow-up")},
				queue.ClaimChange{Queue: "next", Options: queue.ClaimOptions{Label: "same commit"}},
				queue.CursorChange{Queue: "next", Cursor: "offset 42"},
			)
			return err
		},
	}},
}
