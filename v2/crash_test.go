//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
)

// smaller bounds an exploration where it would take too long.
func smaller(o crashtest.Options) crashtest.Options {
	if raceDetector() || testing.Short() {
		o.MaxImages, o.AfterCheck, o.SecondCrash = min(o.MaxImages, 4), -1, 0
	}
	return fewer(o)
}

// fewer takes a sample of the points under the race detector: from one to the next the same
// goroutines run the same code. All are explored without it.
func fewer(o crashtest.Options) crashtest.Options {
	if raceDetector() {
		o.Every = 9
	}
	return o
}

// explored are the scenarios of an exploration: all of them, but a sample under the race
// detector. They go through the same goroutines, whatever the transition.
func explored() (list []crashScenario) {
	for _, c := range crashScenarios {
		switch c.name {
		case "enqueue", "claim", "ack", "update", "recover", "run-seal", "run-claim":
			list = append(list, c)
		default:
			if !raceDetector() {
				list = append(list, c)
			}
		}
	}
	return list
}

// ofRuns reports whether c is one of runScenarios, or takes as long.
func ofRuns(c crashScenario) bool { return strings.HasPrefix(c.name, "run-") || c.name == "collect" }

// Every transition, cut off before and after each of its operations: by SIGKILL, and
// by the loss of power in every way that the disk may come back.
func TestCrash(t *testing.T) {
	for _, c := range explored() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := crashtest.Options{MaxImages: 200, AfterCheck: 3}
			if ofRuns(c) { // a run is one more object, and those are explored beside it
				o.MaxImages = 48
			}
			crashtest.Explore(t, c.scenario(t), smaller(o))
		})
	}
}

// Where names cannot be exchanged, or no longer: some of the transitions again.
func TestCrashPlain(t *testing.T) {
	for _, c := range crashScenarios {
		switch c.name {
		case "enqueue", "claim", "recover":
			if !testrun.Thorough() {
				continue
			}
		case "ack":
		default:
			continue
		}
		for how, set := range map[string]func(*crashScenario){
			"plain": func(c *crashScenario) { c.plain = true }, "no longer": func(c *crashScenario) { c.stops = true },
		} {
			c := c
			set(&c)
			t.Run(c.name+", "+how, func(t *testing.T) {
				t.Parallel()
				crashtest.Explore(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 40, AfterCheck: 3}))
				if c.name == "ack" && !raceDetector() {
					crashtest.ExploreErrors(t, c.scenario(t), crashtest.Options{MaxImages: 2, AfterCheck: -1, Uneven: true, Errnos: []syscall.Errno{syscall.EIO, syscall.ENOSPC}})
				}
			})
		}
	}
}

// The commit that makes the spare that is not there.
func TestCrashSpareGone(t *testing.T) {
	c := crashScenario{name: "spare-gone", setup: func(t testing.TB, d *crashtest.Disk, s *Store) {
		withClaims(t, d, s)
		for n := range uint64(spares) {
			d.Remove(inCrash(spareName(n)))
		}
	}, steps: []crashStep{
		func(ctx context.Context, s *Store, r receipts) error { return s.Ack(ctx, r["a"]) },
	}}
	crashtest.Explore(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 100, AfterCheck: 3}))
	crashtest.ExploreErrors(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 2, AfterCheck: -1, Uneven: true}))
}

// As many commits as there are spares, twice: each waits for its turn, and the names are
// synced in time.
func TestCrashTurns(t *testing.T) {
	c := crashScenario{name: "turns", setup: withThree}
	for n := range 2*spares + 1 {
		c.steps = append(c.steps, func(ctx context.Context, s *Store, r receipts) error {
			return s.SetFailedNamespace(ctx, "mail", fmt.Sprint("x", n))
		})
	}
	crashtest.Explore(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 100, AfterCheck: 3}))
}

// A commit whose text has outgrown the spares, behind some whose exchanges are not durable.
func TestCrashGrow(t *testing.T) {
	change := func(n int) crashStep {
		return func(ctx context.Context, s *Store, r receipts) error {
			return s.SetFailedNamespace(ctx, "mail", fmt.Sprint("x", n))
		}
	}
	c := crashScenario{name: "grow", setup: withThree, steps: []crashStep{change(1), change(2), change(3),
		func(ctx context.Context, s *Store, r receipts) error {
			s.opts.block = -1 // all inline
			_, err := s.EnqueueBatch(ctx, "mail", smalls(60))
			return err
		}, change(4), change(5)}}
	crashtest.Explore(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 60, AfterCheck: 3}))
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
				crashtest.Explore(t, c.scenario(t), fewer(crashtest.Options{MaxImages: 4, AfterCheck: 16}))
			})
		}
	}
}

// Every transition with an error of the disk at each operation, reads included, before and
// after it took effect. The process lives on and tries again.
func TestFault(t *testing.T) {
	for _, c := range explored() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := crashtest.Options{MaxImages: 2, AfterCheck: -1, Uneven: true}
			switch {
			case raceDetector():
				o.Errnos = []syscall.Errno{syscall.EIO} // the others are explored without it
				o.MaxImages = 1
			case ofRuns(c):
				o.Errnos = []syscall.Errno{syscall.EIO} // TestRunReadFaults has the others where a run is read
				o.MaxImages = 1
			case testrun.Thorough() && (c.name == "enqueue" || c.name == "recover"):
				o.Errnos = crashtest.EveryErrno // no code asks for these: a few scenarios stand for all
			}
			crashtest.ExploreErrors(t, c.scenario(t), fewer(o))
		})
	}
}

// The same, where the process ends with the uncertainty and leaves it to the next.
func TestFaultLeft(t *testing.T) {
	for _, c := range crashScenarios {
		switch c.name {
		case "enqueue", "claim", "ack", "recover", "run-seal":
			if raceDetector() {
				continue // explored without it
			}
			c.leave = true
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				o := crashtest.Options{MaxImages: 2, AfterCheck: 2, Uneven: true, Errnos: []syscall.Errno{syscall.EIO, syscall.ENOSPC}}
				if ofRuns(c) {
					o.Errnos = o.Errnos[:1]
				}
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
		t.Run(sc.Name+"-faults", func(t *testing.T) {
			t.Parallel()
			if raceDetector() {
				t.Skip("a creation is one goroutine's: explored without the race detector")
			}
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
	return checkCreatedIn(t, crashDir, fs, j)
}

func checkCreatedIn(t testing.TB, dir string, fs fsguard.FS, j *crashtest.Journal) error {
	ctx := context.Background()
	s, err := Open(ctx, dir, crashOptions(fs))
	if _, acked := j.Last("create", crashtest.Acked); acked && err != nil {
		return fmt.Errorf("a created store: %w", err)
	}
	switch {
	case errors.Is(err, ErrNoStore):
		s, err = Create(ctx, dir, crashOptions(fs))
	case errors.Is(err, ErrInterruptedInit):
		if _, err := Create(ctx, dir, crashOptions(fs)); !errors.Is(err, ErrInterruptedInit) {
			return fmt.Errorf("create over an interrupted creation: %v", err)
		}
		s, err = ResumeCreate(ctx, dir, crashOptions(fs))
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

// What the tests above have explored, one line for each scenario: TestCrash and its
// likes run before it. Left alone it has nothing to tell.
func TestCrashesExplored(t *testing.T) {
	explored := crashtest.Explored()
	if len(explored) == 0 || replaying() {
		t.Skip("run it with the explorations: go test -v -run '^Test(Crash|Fault)' ./v2")
	}
	t.Logf("explored by this run:\n%s", crashtest.Table(explored))
	for _, e := range explored {
		if e.Crashes.Points > 0 && e.Crashes.Images < e.Crashes.Points {
			t.Errorf("%s: %d crash points and only %d images", e.Name, e.Crashes.Points, e.Crashes.Images)
		}
	}
}
