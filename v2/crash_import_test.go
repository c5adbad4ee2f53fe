//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// The scenarios of imports. Each step opens the import first, as a process does that
// goes on with one; where that is there already it makes no commit.

func importStep(f func(ctx context.Context, i *Import) error) crashStep {
	return func(ctx context.Context, s *Store, _ receipts) error {
		i, err := s.OpenImport(ctx, "mail", ImportToken(namedToken("import")))
		if err != nil {
			return err
		}
		return f(ctx, i)
	}
}

// adding is a step that brings some messages, of which so many are new.
func adding(n int, ms ...Imported) crashStep {
	return importStep(func(ctx context.Context, i *Import) error {
		got, err := i.Add(ctx, ms...)
		if err == nil && got != n && got != 0 { // 0: an uncertain try had happened
			return fmt.Errorf("added %d, want %d", got, n)
		}
		return err
	})
}

// What a v1 directory may hold: two claims, one with a newer message of its ID, a message
// that waits, and a failed one.
var (
	importFirst  = []Imported{foreign("x", ImportedClaimed), foreign("y", ImportedClaimed), foreign("x", ImportedPending)}
	importSecond = []Imported{foreign("f", ImportedFailed), foreign("z", ImportedPending)}
)

// withImport is withClaims with an import open that has brought its first messages.
func withImport(t testing.TB, d *crashtest.Disk, s *Store) {
	withClaims(t, d, s)
	mustImport(t, s, "mail", namedToken("import"), importFirst...)
}

var importScenarios = []crashScenario{
	{name: "import", setup: withThree, steps: []crashStep{
		importStep(func(context.Context, *Import) error { return nil }),
		adding(3, importFirst...),
	}},
	{name: "import-close", setup: withImport, steps: []crashStep{
		adding(2, append(importFirst[:2:2], importSecond...)...),
		importStep(func(ctx context.Context, i *Import) error { return i.Close(ctx) }),
	}},
	{name: "import-abandon", setup: withImport, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error {
			return (&Import{s: s, token: namedToken("import")}).Abandon(ctx)
		},
	}},
}

// importAll is what an importer does, from the beginning: it is run as often as it takes.
func importAll(ctx context.Context, s *Store) (closed bool, err error) {
	i, err := s.OpenImport(ctx, "mail", ImportToken(namedToken("import")))
	if err != nil || i.Closed() {
		return err == nil, err
	}
	for _, ms := range [][]Imported{importFirst, importSecond[:1]} {
		if _, err := i.Add(ctx, ms...); err != nil {
			return false, err
		}
	}
	return false, i.Close(ctx)
}

// An import that is cut off anywhere and run again from its beginning comes to the same
// end: nothing is lost, nothing comes twice, and what has gone since does not come back.
func TestCrashImportRunAgain(t *testing.T) {
	c := crashScenario{}
	d := crashtest.NewDisk()
	c.make(t, d)
	s, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	mustDo(t, second(importAll(t.Context(), s)))
	imported := mustLook(t, s)
	gone := func(ctx context.Context, s *Store) error { return second(s.Clear(ctx, "mail", queue.ClearOptions{})) }
	mustDo(t, gone(t.Context(), s))
	cleared := mustLook(t, s)
	mustDo(t, s.Close())
	if imported == cleared {
		t.Fatal("what went cannot be seen")
	}

	run := func(fs fsguard.FS, j *crashtest.Journal) {
		ctx := context.Background()
		s, err := Open(ctx, crashDir, crashOptions(fs))
		if err != nil {
			return
		}
		defer s.Close()
		for try := 0; ; try++ {
			if _, err = importAll(ctx, s); err == nil {
				break
			}
			if try == 2 {
				return
			}
		}
		j.Ack("imported", nil)
		j.Begin("clear", nil)
		if err := gone(ctx, s); err == nil {
			j.Ack("clear", nil)
		}
	}
	check := func(t testing.TB, fs fsguard.FS, j *crashtest.Journal) error {
		ctx := context.Background()
		s, err := Open(ctx, crashDir, crashOptions(fs))
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		defer s.Close()
		if _, err := s.Recover(ctx); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
		if report, err := s.Verify(ctx, VerifyOptions{}); err != nil || !report.OK {
			return fmt.Errorf("verify: %+v, %v", report, err)
		}
		_, whole := j.Last("imported", crashtest.Acked)
		closed, err := importAll(ctx, s)
		if err != nil {
			return fmt.Errorf("the import run again: %w", err)
		}
		if whole && !closed {
			return errors.New("a closed import was not remembered")
		}
		j.Ack("imported", nil)
		got, err := look(s)
		if err != nil {
			return err
		}
		_, begun := j.Last("clear")
		_, done := j.Last("clear", crashtest.Acked)
		if !(got == imported && !done || got == cleared && begun) {
			return fmt.Errorf("found\n%sand the clear was begun %v, done %v", got, begun, done)
		}
		return workOn(s, j)
	}
	sc := crashtest.Scenario{Name: "import-again", Setup: c.make, Run: run, Check: check}
	t.Run("crash", func(t *testing.T) {
		t.Parallel()
		crashtest.Explore(t, sc, smaller(crashtest.Options{MaxImages: 8, AfterCheck: 1}))
	})
	t.Run("faults", func(t *testing.T) {
		t.Parallel()
		if raceDetector() {
			return // explored without it
		}
		crashtest.ExploreErrors(t, sc, crashtest.Options{MaxImages: 1, AfterCheck: -1, Uneven: true, Errnos: []syscall.Errno{syscall.EIO, syscall.ENOSPC}})
	})
}
