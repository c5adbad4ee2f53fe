//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
)

func init() { roles["die in"] = dieIn }

// killedIn are the scenarios of the crash tests in whose steps a real process dies: what
// TestKillAtEveryOperation has no step for. Their set-ups need no simulated disk.
var killedIn = []string{
	"load", "release", "release-delay", "replace", "clear", "purge", "set", "pause",
	"failed-namespace", "reap-named", "claim-fair", "import", "import-close", "import-abandon",
	"run-seal", "run-claim", "run-load", "run-replace", "run-clear", "run-reprocess", "run-update",
	"run-failed-seal", "run-failed-settle", "run-failed-taken", "collect",
}

// notKilledIn are the scenarios in which no real process dies, and why.
var notKilledIn = map[string]string{
	"enqueue-batch":      "the enqueue of TestKillAtEveryOperation is one of several",
	"claim-damaged":      "a claim whose payload was damaged on a simulated disk",
	"recover-by-consent": "a recover whose dead owner was put on a simulated disk",
	"extend-reaped":      "an extend of what was claimed by a simulated process of another clock",
	"run-claim-both":     "a run-claim of two runs at once",
	"run-due":            "a run-claim of what was sealed by a simulated process of another clock",
	"run-recover":        "a recover whose dead owner was put on a simulated disk",
}

// In the steps of every scenario real processes die: here, or in the step of that name of
// TestKillAtEveryOperation.
func TestKilledScenarios(t *testing.T) {
	for _, c := range crashScenarios {
		n := 0
		if slices.Contains(killedIn, c.name) {
			n++
		}
		if slices.ContainsFunc(fatalSteps, func(f fatalStep) bool { return f.name == c.name }) {
			n++
		}
		if notKilledIn[c.name] != "" {
			n++
		}
		if n != 1 {
			t.Errorf("scenario %s: in %d of killedIn, fatalSteps and notKilledIn, want one", c.name, n)
		}
	}
	for _, name := range slices.Concat(killedIn, slices.Collect(maps.Keys(notKilledIn))) {
		if _, err := crashScenarioOf(name); err != nil {
			t.Error(err)
		}
	}
}

func crashScenarioOf(name string) (crashScenario, error) {
	for _, c := range crashScenarios {
		if c.name == name {
			return c, nil
		}
	}
	return crashScenario{}, fmt.Errorf("no scenario %q", name)
}

// killStride is how many operations on the next death is. Each takes a process.
func killStride() int {
	switch {
	case raceDetector() || testing.Short():
		return 9
	case testrun.Thorough():
		return 2
	}
	return 6
}

func realOptions() *Options {
	return &Options{clock: crashClock, holders: &holderSet{}, block: 2}
}

// A real process is killed after every second operation of every other transition, creation
// among them. To die before an operation is to die after the one before it.
func TestKillInEveryTransition(t *testing.T) {
	for i, name := range killedIn {
		if raceDetector() && i > 0 {
			break // a process that is killed reports no race
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := crashScenarioOf(name)
			mustDo(t, err)
			template := filepath.Join(t.TempDir(), "store")
			looks := []string{inReal(t, template, true, func(s *Store) { c.setup(t, nil, s) })}
			for i := range c.steps {
				next := copyStore(t, template)
				looks = append(looks, inReal(t, next, false, c.stepIn(t, i)))
				c.killedInStep(t, i, template, looks[i], looks[i+1])
				template = next
			}
		})
	}
	for _, name := range []string{"create", "resume"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k += killStride() {
				dir := filepath.Join(t.TempDir(), "store")
				if name == "resume" {
					if !diesIn(t, "create", dir, 12, 0) {
						t.Fatal("the creation was not interrupted")
					}
				}
				dies := diesIn(t, name, dir, k, 0)
				j := &crashtest.Journal{}
				if !dies {
					j.Ack("create", nil)
				}
				if err := checkCreatedIn(t, dir, fsguard.OS(), j); err != nil {
					t.Errorf("killed in %s after operation %d: %v", name, k, err)
				}
				if !dies {
					break
				}
			}
		})
	}
}

// stepIn makes a step with the receipts of what is leased.
func (c crashScenario) stepIn(t *testing.T, i int) func(*Store) {
	return func(s *Store) {
		r := receipts{}
		if !c.cold {
			r.load(s)
		}
		mustDo(t, c.steps[i](t.Context(), s, r))
	}
}

// killedInStep lets a process die after operations of a step, each time in another copy
// of the store. It looks as before the step or as after it, and no later death takes back
// what an earlier one left there. Where it looks as before, the step works.
func (c crashScenario) killedInStep(t *testing.T, i int, template, before, after string) {
	t.Helper()
	if before == after {
		t.Fatalf("step %d cannot be seen:\n%s", i, after)
	}
	happened := false
	for k := 1; ; k += killStride() {
		dir := copyStore(t, template)
		if !diesIn(t, c.name, dir, k, i) {
			break
		}
		got := inReal(t, dir, false, func(*Store) {})
		switch {
		case got != before && got != after:
			t.Fatalf("killed in step %d after operation %d: found\n%swant\n%sor\n%s", i, k, got, before, after)
		case happened && got == before:
			t.Errorf("killed in step %d after operation %d: gone, although a death earlier on left it there", i, k)
		}
		happened = got == after
		if happened {
			continue
		}
		if again := inReal(t, dir, false, c.stepIn(t, i)); again != after {
			t.Errorf("killed in step %d after operation %d, and called again: found\n%swant\n%s", i, k, again, after)
		}
	}
}

// inReal opens the store, or creates it, brings it back into use where somebody died in it,
// works on it, and tells what it looks like then.
func inReal(t *testing.T, dir string, fresh bool, work func(*Store)) string {
	t.Helper()
	open := Open
	if fresh {
		open = Create
	}
	o := realOptions()
	s, err := open(t.Context(), dir, o)
	mustDo(t, err)
	defer o.holders.die()
	defer s.Close()
	afterDeath(t, s, 0)
	work(s)
	got := mustLook(t, s)
	mustDo(t, s.Close())
	mustVerify(t, dir)
	return got
}

// diesIn starts a process that does it and dies after operation k. It is false if there
// are not so many.
func diesIn(t *testing.T, what, dir string, k, step int) bool {
	t.Helper()
	lines, err := start(t, "die in", what, dir, strconv.Itoa(k), strconv.Itoa(step)).Rest()
	if err == nil && len(lines) == 1 && k > 8 {
		return false
	}
	if killedBy(err) != syscall.SIGKILL || len(lines) > 0 {
		t.Fatalf("%s, to die after operation %d: %v, %q", what, k, err, lines)
	}
	return true
}

// dieIn takes a scenario, create or resume, a directory, the operation after which to die,
// and which step of the scenario it is one of.
func dieIn(args []string) error {
	ctx := context.Background()
	k, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	step, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	plan := crashtest.StopAfter(k)
	plan.OnStop = crashtest.KillSelf
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	o := realOptions()
	o.fs = w
	switch args[0] {
	case "create", "resume":
		plan.Spell = true
		w.Arm(plan)
		make := Create
		if args[0] == "resume" {
			make = ResumeCreate
		}
		if _, err := make(ctx, args[1], o); err != nil {
			return err
		}
	default:
		c, err := crashScenarioOf(args[0])
		if err != nil {
			return err
		}
		s, err := Open(ctx, args[1], o)
		if err != nil {
			return err
		}
		r := receipts{}
		if !c.cold && !r.load(s) {
			return fmt.Errorf("the receipts of %s", args[1])
		}
		w.Arm(plan)
		if err := c.steps[step](ctx, s, r); err != nil {
			return err
		}
	}
	fmt.Println("answered")
	return nil
}
