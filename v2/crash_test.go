//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

func put(m queue.Message) crashStep {
	return func(ctx context.Context, s *Store, r receipts) error {
		_, err := s.Enqueue(ctx, "mail", m)
		return err
	}
}

func take(o queue.ClaimOptions) crashStep {
	return func(ctx context.Context, s *Store, r receipts) error {
		c, err := s.Claim(ctx, "mail", o)
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
var crashScenarios = slices.Concat(storeScenarios, returnScenarios, importScenarios)

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
	{name: "recover-by-consent", setup: withConsent, steps: []crashStep{
		put(queue.Message{ID: "after", Payload: []byte(`1`)}),
	}},
}

// smaller bounds an exploration where it would take too long.
func smaller(o crashtest.Options) crashtest.Options {
	if raceDetector() || testing.Short() {
		o.MaxImages, o.AfterCheck, o.SecondCrash = min(o.MaxImages, 4), -1, 0
	}
	return o
}

// Every transition, cut off before and after each of its operations: by SIGKILL, and
// by the loss of power in every way that the disk may come back.
func TestCrash(t *testing.T) {
	for _, c := range crashScenarios {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			crashtest.Explore(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 200, AfterCheck: 3}))
		})
	}
}

// The process after the crash only looks, and then the power goes: what it was shown
// must stand. A commit whose last sync never came may be shown by no one as settled.
func TestCrashThenLook(t *testing.T) {
	for _, c := range crashScenarios {
		switch c.name {
		case "enqueue", "ack":
			c.quiet = true
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				crashtest.Explore(t, c.scenario(t), crashtest.Options{MaxImages: 4, AfterCheck: 16})
			})
		}
	}
}

// A second crash, at each operation of the recovery from the first.
func TestCrashTwice(t *testing.T) {
	for _, c := range crashScenarios {
		switch c.name {
		case "enqueue", "claim", "recover":
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				crashtest.Explore(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 4, AfterCheck: 2, SecondCrash: 3}))
			})
		}
	}
}

// The same with an error of the disk at each operation, reads included, before and
// after it took effect. The process lives on and tries again.
func TestFault(t *testing.T) {
	for _, c := range crashScenarios {
		if raceDetector() && c.name != "enqueue" && c.name != "ack" {
			continue // explored without it
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := crashtest.Options{MaxImages: 2, AfterCheck: -1, Uneven: true}
			if raceDetector() {
				o.Errnos = []syscall.Errno{syscall.EIO}
			}
			crashtest.ExploreErrors(t, c.scenario(t), o)
		})
	}
}

// The same, where the process ends with the uncertainty and leaves it to the next.
func TestFaultLeft(t *testing.T) {
	for _, c := range crashScenarios {
		switch c.name {
		case "enqueue", "claim", "ack", "recover":
			if raceDetector() {
				continue // explored without it
			}
			c.leave = true
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				o := crashtest.Options{MaxImages: 2, AfterCheck: 2, Uneven: true, Errnos: []syscall.Errno{syscall.EIO, syscall.ENOSPC}}
				c.quiet = true
				crashtest.ExploreErrors(t, c.scenario(t), o)
			})
		}
	}
}

// Creation, cut off anywhere: what is found is no store, a store in the making that
// ResumeCreate finishes, or a whole one.
func TestCrashCreate(t *testing.T) {
	create := func(fs fsguard.FS, j *crashtest.Journal) {
		j.Begin("create", nil)
		s, err := Create(context.Background(), crashDir, crashOptions(fs))
		if err != nil {
			j.Fail("create", err)
			return
		}
		defer s.Close()
		j.Ack("create", nil)
	}
	setup := func(t testing.TB, d *crashtest.Disk) { d.MkdirAll("/data") }
	interrupted := func(stop int) func(t testing.TB, d *crashtest.Disk) {
		return func(t testing.TB, d *crashtest.Disk) {
			setup(t, d)
			p := d.Process()
			_, err := Create(context.Background(), crashDir, crashOptions(crashtest.Wrap(p, crashtest.StopAfter(stop))))
			if err == nil {
				t.Fatal("the creation was not interrupted")
			}
			p.Kill()
		}
	}
	resume := func(fs fsguard.FS, j *crashtest.Journal) {
		j.Begin("create", nil)
		s, err := ResumeCreate(context.Background(), crashDir, crashOptions(fs))
		if err != nil {
			j.Fail("create", err)
			return
		}
		defer s.Close()
		j.Ack("create", nil)
	}
	for _, sc := range []crashtest.Scenario{
		{Name: "create", Setup: setup, Run: create, Check: checkCreated},
		{Name: "resume", Setup: interrupted(12), Run: resume, Check: checkCreated},
	} {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			crashtest.Explore(t, sc, smaller(crashtest.Options{MaxImages: 48, AfterCheck: 6, SecondCrash: 2}))
		})
		t.Run(sc.Name+"/faults", func(t *testing.T) {
			t.Parallel()
			crashtest.ExploreErrors(t, sc, smaller(crashtest.Options{MaxImages: 4, AfterCheck: -1, Uneven: true}))
		})
	}
}

// ResumeCreate of a whole store touches nothing, whatever it cannot read. The store
// has no object, so nothing else would hold it back.
func TestFaultResumeOfAWholeStore(t *testing.T) {
	c := crashScenario{name: "resume-whole", setup: func(t testing.TB, d *crashtest.Disk, s *Store) {
		if err := s.Set(t.Context(), Settings{OnDeadOwner: AutoRecover}); err != nil {
			t.Fatal(err)
		}
	}}
	sc := c.scenario(t)
	sc.Run = func(fs fsguard.FS, j *crashtest.Journal) {
		s, err := ResumeCreate(context.Background(), crashDir, crashOptions(fs))
		switch {
		case err == nil:
			s.Close()
		case errors.Is(err, ErrExists):
			j.Ack("refused", nil)
		}
	}
	crashtest.ExploreErrors(t, sc, smaller(crashtest.Options{MaxImages: 4, AfterCheck: -1, Uneven: true}))
}

// checkCreated opens what is left of a creation, finishing it where that is due.
func checkCreated(t testing.TB, fs fsguard.FS, j *crashtest.Journal) error {
	ctx := context.Background()
	s, err := Open(ctx, crashDir, crashOptions(fs))
	if _, acked := j.Last("create", crashtest.Acked); acked && err != nil {
		return fmt.Errorf("a created store: %w", err)
	}
	switch {
	case errors.Is(err, ErrNoStore):
		s, err = Create(ctx, crashDir, crashOptions(fs))
	case errors.Is(err, ErrInterruptedInit):
		if _, err := Create(ctx, crashDir, crashOptions(fs)); !errors.Is(err, ErrInterruptedInit) {
			return fmt.Errorf("create over an interrupted creation: %v", err)
		}
		s, err = ResumeCreate(ctx, crashDir, crashOptions(fs))
	}
	if err != nil {
		return err
	}
	defer s.Close()
	j.Ack("create", nil)
	report, err := s.Verify(ctx, VerifyOptions{})
	if err != nil {
		return err
	}
	if !report.Settled {
		if _, err := s.Recover(ctx); err != nil {
			return err
		}
	} else if !report.OK {
		return fmt.Errorf("verify: %+v", report)
	}
	return workOn(s, j)
}
