//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// The scenarios of the crash tests: the stores that they begin with, and their steps.

func put(m queue.Message) crashStep {
	return func(ctx context.Context, s *Store, r receipts) error {
		_, err := s.Enqueue(ctx, "mail", m)
		return err
	}
}

func take(o queue.ClaimOptions) crashStep {
	return func(ctx context.Context, s *Store, r receipts) error {
		c, err := s.Claim(ctx, "mail", o)
		for err == nil && len(c.Deliveries) == 0 && len(c.Damaged) > 0 { // an unreadable one was behind these
			c, err = s.Claim(ctx, "mail", o)
		}
		for _, d := range c.Deliveries {
			r[d.Receipt.ID] = d.Receipt
		}
		return err
	}
}

// withThree is a store with three pending messages in one object.
func withThree(t testing.TB, _ *crashtest.Disk, s *Store) {
	if _, err := s.EnqueueBatch(t.Context(), "mail", []queue.Message{small("a"), small("b"), small("c")}); err != nil {
		t.Fatal(err)
	}
}

// withClaims is a store with three messages claimed and one behind a claim.
func withClaims(t testing.TB, d *crashtest.Disk, s *Store) {
	withThree(t, d, s)
	if _, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 3, Lease: queue.NoDeadline, Label: "w"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), "mail", queue.Message{ID: "a", Payload: []byte(`"newer"`), IfExists: queue.Replace}); err != nil {
		t.Fatal(err)
	}
}

// withFailed is a store with two failed messages and one pending.
func withFailed(t testing.TB, d *crashtest.Disk, s *Store) {
	withThree(t, d, s)
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Deliveries {
		if _, err := s.Fail(t.Context(), d.Receipt, queue.FailOptions{Cause: "broken"}); err != nil {
			t.Fatal(err)
		}
	}
}

// withDeadOwner is withThree after its last writer died inside a transition, with
// the leftovers that such a death may have.
func withDeadOwner(t testing.TB, d *crashtest.Disk, s *Store) {
	withThree(t, d, s)
	space := crashDir + "/" + namespaceDir
	d.WriteRaw(space+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
	d.WriteRaw(space+"/"+stateTemp(token{9}), []byte("half"))
	d.MkdirAll(space + "/" + objectsDir + "/" + token{8}.String())
}

// withConsent is withDeadOwner in a store that recovers by itself.
func withConsent(t testing.TB, d *crashtest.Disk, s *Store) {
	if err := s.Set(t.Context(), Settings{OnDeadOwner: AutoRecover}); err != nil {
		t.Fatal(err)
	}
	withDeadOwner(t, d, s)
}

// withDamage is a store whose oldest message has lost its payload.
func withDamage(t testing.TB, d *crashtest.Disk, s *Store) {
	put := func(id string) queue.Entry {
		if _, err := s.Enqueue(t.Context(), "mail", small(id)); err != nil {
			t.Fatal(err)
		}
		shown, err := s.Show(t.Context(), "mail", id)
		if err != nil {
			t.Fatal(err)
		}
		return shown[0]
	}
	lost := put("lost")
	put("whole")
	d.WriteRaw(crashDir+"/"+namespaceDir+"/"+objectsDir+"/"+lost.Object+"/"+payloadFile, []byte("{}"))
}

var bigPayload = []byte(`"` + strings.Repeat("x", smallPayload) + `"`)

// crashScenarios are all of them.
var crashScenarios = slices.Concat(storeScenarios, returnScenarios, importScenarios, runScenarios, failedRunScenarios)

var storeScenarios = []crashScenario{
	{name: "enqueue", steps: []crashStep{
		put(small("a")),
		put(queue.Message{ID: "a", Payload: []byte(`"replaced"`), IfExists: queue.Replace}),
	}},
	{name: "enqueue-batch", setup: withThree, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.EnqueueBatch(ctx, "mail", []queue.Message{small("x"), {ID: "big", Payload: bigPayload}, small("y")})
			return err
		},
	}},
	{name: "claim", setup: withThree, steps: []crashStep{
		take(queue.ClaimOptions{Max: 2, Label: "w"}),
		take(queue.ClaimOptions{Lease: queue.NoDeadline}),
	}},
	{name: "claim-damaged", setup: withDamage, damaged: true, steps: []crashStep{
		take(queue.ClaimOptions{Max: 2, Label: "w"}),
	}},
	{name: "load", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.Load(ctx, "mail", "b", queue.LoadOptions{})
			return err
		},
	}},
	{name: "ack", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error { return s.Ack(ctx, r["a"]) },
		func(ctx context.Context, s *Store, r receipts) error { return s.Ack(ctx, r["b"]) },
	}},
	{name: "release", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			return s.Release(ctx, r["a"], queue.ReleaseOptions{})
		},
	}},
	{name: "fail", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.Fail(ctx, r["a"], queue.FailOptions{Cause: "no", As: "evidence"})
			return err
		},
	}},
	{name: "replace", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			return s.ReplacePayload(ctx, r["b"], []byte(`"migrated"`))
		},
	}},
	{name: "clear", setup: withClaims, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.Clear(ctx, "mail", queue.ClearOptions{})
			return err
		},
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.Clear(ctx, "mail", queue.ClearOptions{Leased: true})
			return err
		},
	}},
	{name: "purge", setup: withFailed, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			return s.Purge(ctx, "a", queue.PurgeOptions{})
		},
	}},
	{name: "set", setup: withThree, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			return s.Set(ctx, Settings{OnDeadOwner: AutoRecover})
		},
	}},
	{name: "recover", setup: withDeadOwner, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			if _, err := s.Recover(ctx); err != nil {
				return err
			}
			_, err := s.Enqueue(ctx, "mail", queue.Message{ID: "after", Payload: []byte(`1`), IfExists: queue.Keep})
			return err
		},
	}},
	{name: "collect", setup: withLittleGarbage, cold: true, collects: true, steps: []crashStep{
		func(ctx context.Context, s *Store, _ receipts) error {
			r, err := s.Collect(ctx, CollectOptions{StepEntries: 2})
			if err == nil && !r.Done {
				err = fmt.Errorf("collect came to no end: %+v", r)
			}
			if err != nil {
				return err
			}
			_, err = s.Enqueue(ctx, "mail", queue.Message{ID: "after", Payload: []byte(`1`), IfExists: queue.Keep})
			return err
		},
	}},
	{name: "recover-by-consent", setup: withConsent, steps: []crashStep{
		put(queue.Message{ID: "after", Payload: []byte(`1`)}),
	}},
}
