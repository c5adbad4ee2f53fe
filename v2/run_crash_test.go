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

// The scenarios of runs. Their stores seal blocks of two messages: of a backlog that
// grows one by one the seventh seals m002 to m004, the tenth m005 to m007, and what
// stays inline is m000 and m001 before them and the last two behind.

// withBacklog gives a set-up with so many messages m000, m001, … in mail.
func withBacklog(n int) func(t testing.TB, d *crashtest.Disk, s *Store) {
	return func(t testing.TB, _ *crashtest.Disk, s *Store) {
		for _, m := range smalls(n) {
			if _, err := s.Enqueue(t.Context(), "mail", m); err != nil {
				t.Fatal(err)
			}
		}
		want := max(0, (n-4)/3)
		if got := len(s.cached.st.queue("mail").runs); got != want {
			t.Fatalf("%d messages come in %d runs, want %d", n, got, want)
		}
	}
}

// withReached is withBacklog of ten after a claim that brought the first run back.
func withReached(t testing.TB, d *crashtest.Disk, s *Store) {
	withBacklog(10)(t, d, s)
	if _, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 3, Lease: queue.NoDeadline}); err != nil {
		t.Fatal(err)
	}
}

// withSchedule is a store with nine scheduled messages, those of odd numbers due by now
// and the others in an hour. Seven are sealed: one run holds both kinds.
func withSchedule(t testing.TB, d *crashtest.Disk, s *Store) {
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
	for i, m := range smalls(9) {
		if m.NotBefore = early.Wall.Add(time.Duration(60-i) * time.Second); i%2 == 0 {
			m.NotBefore = m.NotBefore.Add(time.Hour)
		}
		if _, err := old.Enqueue(t.Context(), "mail", m); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range old.cached.st.queue("mail").runs {
		if now := crashClock.at.millis(); r.from <= now && now < r.to {
			return
		}
	}
	t.Fatal("no run has both what is due and what is not")
}

// withEvidence is a store with a failed message whose ID lies in a run again.
func withEvidence(t testing.TB, d *crashtest.Disk, s *Store) {
	if _, err := s.Enqueue(t.Context(), "mail", small("m003")); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fail(t.Context(), c.Deliveries[0].Receipt, queue.FailOptions{Cause: "broken"}); err != nil {
		t.Fatal(err)
	}
	withBacklog(7)(t, d, s)
}

// withDeadOwnerOfRuns is withDeadOwner after a backlog.
func withDeadOwnerOfRuns(t testing.TB, d *crashtest.Disk, s *Store) {
	withBacklog(9)(t, d, s)
	space := crashDir + "/" + namespaceDir
	d.WriteRaw(space+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
	d.MkdirAll(space + "/" + objectsDir + "/" + token{8}.String())
	d.WriteRaw(space+"/"+objectsDir+"/"+token{8}.String()+"/"+runFile, []byte("half"))
}

// two gives a batch that seals two runs at once: one of what is due, one of what is
// scheduled.
func two() (ms []queue.Message) {
	for i := range 3 {
		ms = append(ms, small(fmt.Sprintf("n%03d", i)))
	}
	for i := range 7 {
		m := small(fmt.Sprintf("s%03d", i))
		m.NotBefore = crashClock.at.Wall.Add(time.Duration(9-i) * time.Hour)
		ms = append(ms, m)
	}
	return ms
}

func claimed(want int, o queue.ClaimOptions) crashStep {
	return func(ctx context.Context, s *Store, r receipts) error {
		c, err := s.Claim(ctx, "mail", o)
		if err == nil && len(c.Deliveries) != want {
			return fmt.Errorf("claimed %d, want %d", len(c.Deliveries), want)
		}
		return err
	}
}

var runScenarios = []crashScenario{
	{name: "run-seal", cold: true, setup: withBacklog(6), steps: []crashStep{
		put(small("m006")),
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.EnqueueBatch(ctx, "mail", two())
			return err
		},
	}},
	{name: "run-claim", cold: true, setup: withBacklog(10), steps: []crashStep{
		claimed(3, queue.ClaimOptions{Max: 3, Lease: queue.NoDeadline}),
		claimed(6, queue.ClaimOptions{Max: 6, Lease: queue.NoDeadline}),
	}},
	{name: "run-claim-both", cold: true, setup: withBacklog(10), steps: []crashStep{
		claimed(9, queue.ClaimOptions{Max: 9, Lease: queue.NoDeadline}),
	}},
	{name: "run-load", cold: true, setup: withBacklog(10), steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.Load(ctx, "mail", "m006", queue.LoadOptions{})
			return err
		},
	}},
	{name: "run-replace", cold: true, setup: withBacklog(9), steps: []crashStep{
		// The replaced one goes to the end, where it is the tenth: the same commit seals.
		put(queue.Message{ID: "m003", Payload: []byte(`"newer"`), IfExists: queue.Replace}),
	}},
	{name: "run-clear", cold: true, setup: withBacklog(10), steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			n, err := s.Clear(ctx, "mail", queue.ClearOptions{})
			if err == nil && n != 10 {
				return fmt.Errorf("cleared %d of 10", n)
			}
			return err
		},
	}},
	{name: "run-due", cold: true, setup: withSchedule, steps: []crashStep{
		claimed(3, queue.ClaimOptions{Max: 3, Lease: queue.NoDeadline}),
		claimed(1, queue.ClaimOptions{Max: 3, Lease: queue.NoDeadline}),
	}},
	{name: "run-reprocess", cold: true, setup: withEvidence, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			return s.Reprocess(ctx, "m003", queue.ReprocessOptions{})
		},
	}},
	{name: "run-update", setup: withReached, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.Update(ctx,
				queue.AckChange{Receipt: r["m000"]},
				queue.EnqueueChange{Queue: "mail", Message: small("m010")},
				queue.EnqueueChange{Queue: "mail", Message: small("m011")},
				queue.EnqueueChange{Queue: "mail", Message: small("m012")},
				queue.ClaimChange{Queue: "mail", Options: queue.ClaimOptions{Max: 3}},
			)
			return err
		},
	}},
	{name: "run-recover", cold: true, setup: withDeadOwnerOfRuns, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			if _, err := s.Recover(ctx); err != nil {
				return err
			}
			m := small("m009") // the tenth, which seals
			m.IfExists = queue.Keep
			_, err := s.Enqueue(ctx, "mail", m)
			return err
		},
	}},
}
