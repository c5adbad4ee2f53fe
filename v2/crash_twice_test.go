//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
)

// A death is a moment at which a process dies in a step and leaves something to recover.
type death struct {
	name   string
	at     int  // the last operation of the step that happens
	beside bool // the commit point
}

// deathsIn are the moments between the owner record and its blanking, of those operations:
// the two beside the commit point, or all.
func deathsIn(events []crashtest.Event, all bool) (list []death) {
	rename := slices.IndexFunc(events, func(e crashtest.Event) bool {
		return isCommitPoint(e.Op, e.Path)
	})
	if rename < 0 {
		return nil
	}
	owned := false
	for _, e := range events {
		record := e.Op == fsguard.OpWrite && path.Base(e.Path) == lockFile
		switch {
		case e.N == 0:
			continue
		case record && owned:
			return list // it is blanked: there is nothing to recover any more
		case record:
			owned = true
		}
		switch d := (death{name: fmt.Sprintf("after operation %d", e.N), at: e.N}); {
		case e.N == events[rename].N-1:
			list = append(list, death{"before the commit point", e.N, true})
		case e.N == events[rename].N:
			list = append(list, death{"committed, not synced", e.N, true})
		case all && owned:
			list = append(list, d)
		}
	}
	return list
}

// sameOptions gives a process that draws the same tokens each time, so that what is left at
// two moments can be the same.
func sameOptions(fs fsguard.FS, process byte) *Options {
	o := crashOptions(fs)
	o.rand = rand.NewChaCha8([32]byte{process})
	return o
}

// dying runs the scenario on a copy of the disk, up to and with step number n, in which the
// process dies after operation at; 0 is never. It gives what that did, and the disk.
func (c crashScenario) dying(t *testing.T, start *crashtest.Disk, n, at int, j *crashtest.Journal) (*crashtest.Disk, []crashtest.Event) {
	t.Helper()
	ctx := context.Background()
	d := start.Clone()
	p := d.Process()
	defer p.Kill()
	w := crashtest.Wrap(p, crashtest.Plan{})
	s, err := Open(ctx, crashDir, sameOptions(w, 1))
	mustDo(t, err)
	defer s.Close()
	r := receipts{}
	r.load(s)
	for i, step := range c.steps[:n+1] {
		j.Begin(stepKey(i), nil)
		if i == n {
			waitIdle(s)
			plan := crashtest.Plan{}
			if at > 0 {
				plan = crashtest.StopAfter(at)
			}
			w.Arm(plan)
		}
		if err := step(ctx, s, r); i < n || at == 0 {
			mustDo(t, err)
			j.Ack(stepKey(i), nil)
		} else if !errors.Is(err, crashtest.ErrStopped) {
			t.Fatalf("the process that died: %v", err)
		}
	}
	waitIdle(s)
	return d, w.Events()
}

// recovering lets a process recover what is on a copy of the disk, and die after so many
// operations of that. It reports whether there was something, and whether it died.
func recovering(t *testing.T, start *crashtest.Disk, at int) (d *crashtest.Disk, found, died bool) {
	t.Helper()
	ctx := context.Background()
	d = start.Clone()
	p := d.Process()
	defer p.Kill()
	w := crashtest.Wrap(p, crashtest.Plan{})
	s, err := Open(ctx, crashDir, sameOptions(w, 2))
	mustDo(t, err)
	defer s.Close()
	w.Arm(crashtest.StopAfter(at))
	got, err := s.Recover(ctx)
	waitIdle(s)
	died = w.Fired()
	switch {
	case err == nil:
		found = got.Owner != nil
	case !died || !errors.Is(err, crashtest.ErrStopped):
		t.Fatalf("recover: %v", err)
	}
	return d, found, died
}

// A second crash, at each operation of the recovery from the first, which came where there
// is something to recover: right before the commit point of each step, and right after it.
func TestCrashTwice(t *testing.T) {
	for _, c := range explored() {
		if raceDetector() && c.name != "enqueue" {
			continue // each recovers by the same code: explored without it
		}
		if ofRuns(c) && c.name != "run-seal" && c.name != "run-claim" {
			continue // a recovery publishes references to runs, and reads none
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			looks := c.looks(t)
			start := crashtest.NewDisk()
			c.make(t, start)
			start.Settle()
			every := testrun.Thorough() && !raceDetector() && (c.name == "ack" || c.name == "recover")
			points, cuts, checks := 0, 0, 0
			for n := range c.steps {
				_, events := c.dying(t, start, n, 0, &crashtest.Journal{})
				for _, at := range deathsIn(events, every && c.name == "ack") {
					j := &crashtest.Journal{}
					dead, _ := c.dying(t, start, n, at.at, j)
					k, m := c.cutRecovery(t, fmt.Sprintf("step %d, %s", n, at.name), dead, j, looks, every && at.beside)
					points, cuts, checks = points+1, cuts+k, checks+m
				}
			}
			if points < 2*len(c.steps) {
				t.Errorf("%d deaths in %d steps: the test shows little", points, len(c.steps))
			}
			t.Logf("%d deaths, %d second crashes, %d checks", points, cuts, checks)
		})
	}
}

// cutRecovery lets the recovery of the disk die after each of its operations, and checks
// what is left when the power then goes: two images, or every loss alone, and the disk as
// SIGKILL leaves it. It tells how many operations there were, and how many checks.
func (c crashScenario) cutRecovery(t *testing.T, at string, dead *crashtest.Disk, j *crashtest.Journal, looks []string, every bool) (cuts, checks int) {
	t.Helper()
	met := map[string]bool{} // images that were checked
	for {
		d, found, died := recovering(t, dead, cuts+1)
		if !died {
			if !found || cuts < 6 {
				t.Fatalf("%s: a recovery of %d operations that found %v: the test shows nothing", at, cuts, found)
			}
			return cuts, checks
		}
		cuts++
		cut := fmt.Sprintf("%s, operation %d of the recovery", at, cuts)
		images := 0
		for lost := range d.Images(1, 0) { // the first two have lost all, and nothing
			if images++; images > 2 && !every {
				break
			}
			if key := contentOf(lost); !met[key] {
				met[key] = true
				c.mustBeWhole(t, cut+", image "+lost.Desc(), lost, journalOf(j), looks)
				checks++
			}
		}
		if every {
			then := journalOf(j)
			only := c
			only.quiet = true // to work on would sync
			only.mustBeWhole(t, cut+", live", d, then, looks)
			checks++
			for lost := range d.Images(1, 0) { // the power goes after what that one has said
				c.mustBeWhole(t, cut+", live, image "+lost.Desc(), lost, then, looks)
				checks++
				break
			}
		}
	}
}

// journalOf gives another journal of the same: what was begun and what was acknowledged.
func journalOf(j *crashtest.Journal) *crashtest.Journal {
	out := &crashtest.Journal{}
	for _, e := range j.Entries() {
		if e.State == crashtest.Begun {
			out.Begin(e.Key, e.Value)
		} else {
			out.Ack(e.Key, e.Value)
		}
	}
	return out
}

// contentOf tells an image from others.
func contentOf(d *crashtest.Disk) string {
	var b strings.Builder
	for line := range strings.Lines(d.Tree()) {
		name, _, file := strings.Cut(line, " ")
		fmt.Fprintln(&b, name)
		if file {
			fmt.Fprintf(&b, "%q\n", d.ReadRaw(name))
		}
	}
	return b.String()
}

// mustBeWhole checks a disk.
func (c crashScenario) mustBeWhole(t *testing.T, at string, d *crashtest.Disk, j *crashtest.Journal, looks []string) {
	t.Helper()
	p := d.Process()
	defer p.Kill()
	if err := c.check(p, j, looks); err != nil {
		t.Fatalf("%s: %v\nthe disk:\n%s", at, err, d.Tree())
	}
}
