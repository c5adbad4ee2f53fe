//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// recordedRuns are the operations of every scenario of the crash tests, and of what else
// has rows of its own.
func recordedRuns(t *testing.T) []opRun {
	// The same tokens whatever ran before: a collection goes by the names of objects.
	defer processes.Store(processes.Swap(1 << 40))
	runs := slices.Concat(createRuns(t), scenarioRuns(t), holderRuns(t), crowdedRuns(t), reserveRuns(t), refusedRuns(t), uncertainRuns(t), restoreRuns(t))
	for _, r := range runs {
		if len(r.ops) == 0 {
			t.Fatalf("%s does nothing", r.name)
		}
	}
	return runs
}

// createRuns are Create, and ResumeCreate after it was cut off and of a whole store.
func createRuns(t *testing.T) (runs []opRun) {
	add := func(d *crashtest.Disk, name string, make func(context.Context, string, *Options) (*Store, error), want error) {
		r := recordOn(d)
		run := r.whole(name, func() {
			s, err := make(context.Background(), crashDir, crashOptions(r.w))
			if !errors.Is(err, want) {
				t.Fatalf("%s: %v, want %v", name, err, want)
			}
			if s != nil {
				mustDo(t, s.Close())
			}
		})
		run.kind = aCreation
		runs = append(runs, run)
	}
	fresh := func() *crashtest.Disk {
		d := crashtest.NewDisk()
		d.MkdirAll("/data")
		return d
	}
	add(fresh(), "create", Create, nil)
	cut := fresh()
	p := cut.Process()
	if _, err := Create(t.Context(), crashDir, crashOptions(crashtest.Wrap(p, crashtest.StopAfter(12)))); err == nil {
		t.Fatal("the creation was not interrupted")
	}
	p.Kill()
	add(cut, "resume", ResumeCreate, nil)
	whole := fresh()
	crashScenario{}.make(t, whole)
	add(whole, "resume of a whole store", ResumeCreate, ErrExists)
	return runs
}

// scenarioRuns are the steps of TestCrash. Opening and the first look are the same in all
// but one, and are told once.
func scenarioRuns(t *testing.T) (runs []opRun) {
	opened := map[string]bool{}
	for _, c := range crashScenarios {
		d := crashtest.NewDisk()
		c.make(t, d)
		r := recordOn(d)
		var s *Store
		open := r.whole("open, in every scenario", func() {
			var err error
			s, err = Open(t.Context(), crashDir, crashOptions(r.w))
			mustDo(t, err)
		})
		open.kind = anOpening
		have := receipts{}
		name := "look, in every scenario"
		if lookAtDisk(d).record != blankOne {
			name = c.name + ", the first look"
		}
		looks := r.held(name, func() { have.load(s) })
		for _, run := range append([]opRun{open}, looks...) {
			if text := fmt.Sprint(run.listed()); !opened[text] {
				opened[text] = true
				runs = append(runs, run)
			}
		}
		for i, step := range c.steps {
			runs = append(runs, r.held(fmt.Sprintf("%s %d", c.name, i+1), func() { mustDo(t, step(context.Background(), s, have)) })...)
		}
		mustDo(t, s.Close())
	}
	return runs
}

// holderRuns are the calls of TestHolderCrash.
func holderRuns(t *testing.T) []opRun {
	d := crashtest.NewDisk()
	sc := holderScenario()
	sc.Setup(t, d)
	r := recordOn(d)
	runs := r.held("holder", func() { sc.Run(r.w, &crashtest.Journal{}) })
	if len(runs) != 3 {
		t.Fatalf("%d runs", len(runs))
	}
	runs = runs[1:] // the first is the opening, but for its sync
	runs[0].ops = runs[0].ops[1:]
	runs[0].name, runs[1].name = "a holder is made", "holders are swept"
	return runs
}

// crowdedRuns are an ack that finds no room for its spare, gives up the others, and is made.
func crowdedRuns(t *testing.T) []opRun {
	d := crashtest.NewDisk()
	crashScenario{setup: withClaims}.make(t, d)
	r := recordOn(d)
	s, err := Open(t.Context(), crashDir, crashOptions(r.w))
	mustDo(t, err)
	have := receipts{}
	have.load(s)
	d.Remove(inCrash(spareName(s.seen.revision + 1)))
	d.SetFree(0)
	runs := r.held("ack without room for a spare", func() { mustDo(t, s.Ack(t.Context(), have["a"])) })
	mustDo(t, s.Close())
	return runs
}

// reserveRuns are an ack that gives the reserve up, and the enqueue that brings it back.
func reserveRuns(t *testing.T) []opRun {
	d := crashtest.NewDisk()
	c := crashScenario{setup: withClaims, plain: true}
	c.make(t, d)
	r := recordOn(d)
	o := crashOptions(r.w)
	o.MinFreeBytes, o.plain = -1, true
	s, err := Open(t.Context(), crashDir, o)
	mustDo(t, err)
	have := receipts{}
	have.load(s)
	d.SetFree(0)
	runs := r.held("ack on a full disk", func() { mustDo(t, s.Ack(t.Context(), have["a"])) })
	d.SetFree(1 << 30)
	runs = append(runs, r.held("enqueue after a full disk", func() { mustEnqueue(t, s, "mail", small("more")) })...)
	mustDo(t, s.Close())
	return runs
}

// refusedRuns are an ack whose exchange is refused, and the one after it.
func refusedRuns(t *testing.T) []opRun {
	d := crashtest.NewDisk()
	crashScenario{setup: withClaims, stops: true}.make(t, d)
	r := recordOn(d)
	s, err := Open(t.Context(), crashDir, crashOptions(r.w))
	mustDo(t, err)
	have := receipts{}
	have.load(s)
	runs := r.held("ack whose exchange is refused", func() { mustDo(t, s.Ack(t.Context(), have["a"])) })
	runs = append(runs, r.held("ack after that", func() { mustDo(t, s.Ack(t.Context(), have["b"])) })...)
	mustDo(t, s.Close())
	return runs
}

// restoreRuns are Restore, of a copy with two runs and two objects.
func restoreRuns(t *testing.T) []opRun {
	d := crashtest.NewDisk()
	copiedOnDisk(t, d)
	r := recordOn(d)
	run := r.whole("restore", func() { mustDo(t, restoreOnDisk(crashOptions(r.w))) })
	run.kind = aRestoration
	return []opRun{run}
}

// uncertainRuns are what begins with a sync after the rename that fails.
func uncertainRuns(t *testing.T) (runs []opRun) {
	disk := func(setup func(testing.TB, *crashtest.Disk, *Store)) (*opRecorder, *Store) {
		d := crashtest.NewDisk()
		crashScenario{setup: setup}.make(t, d)
		r := recordOn(d)
		s, err := Open(t.Context(), crashDir, crashOptions(r.w))
		mustDo(t, err)
		loseSpares(s)
		r.fail, r.err = lastSync(), unix.EIO
		return r, s
	}
	r, s := disk(withThree)
	var uncertain *queue.UncertainError
	runs = append(runs, r.held("enqueue whose last sync fails", func() {
		if _, err := s.Enqueue(t.Context(), "mail", small("x")); !errors.As(err, &uncertain) {
			t.Fatal(err)
		}
	})...)
	r.fail = nil
	resolve := func(name string, kind opKind) {
		resolved := r.held(name, func() {
			if yes, err := s.Resolve(t.Context(), uncertain); !yes || err != nil {
				t.Fatal(yes, err)
			}
		})
		for i := range resolved {
			resolved[i].kind = kind
		}
		runs = append(runs, resolved...)
	}
	resolve("resolve", aResolving)
	resolve("resolve, again", aResolved)
	mustDo(t, s.Close())

	r, s = disk(withDeadOwner)
	runs = append(runs, r.held("recover whose last sync fails", func() {
		if _, err := s.Recover(t.Context()); !errors.Is(err, unix.EIO) {
			t.Fatal(err)
		}
	})...)
	r.fail = nil
	runs = append(runs, r.held("recover, again", func() { mustDo(t, second(s.Recover(t.Context()))) })...)
	mustDo(t, s.Close())
	return runs
}
