//go:build linux

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/mount"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

func init() { roles["create and die at"] = createAndDieAt }

// The power is cut on real filesystems. A process works on a store and kills itself at
// operation k; right then the image under the filesystem is copied, without an unmount
// and without a sync, and the copy is mounted: its journal is replayed, and what is found is
// compared with what the process had said.
//
// That shows that the filesystem, as it is in this kernel, makes durable what the protocol
// takes for durable, by the syncs that it does: a missing one is caught here
// (TestPlantedPowerCut). Each point has one outcome here, the one that this filesystem gives:
// what else a filesystem may do is TestCrash's. That a flush passes through the disk's own
// cache is not shown: package mount says why.
func TestPowerCut(t *testing.T) {
	kinds := firstOf(mount.Ext4, mount.Writeback, mount.XFS, mount.Btrfs)
	onEach(t, kinds, func(t *testing.T, k mount.Kind) {
		for _, f := range firstOf(fatalStepsNamed("ack", "enqueue", "claim")...) {
			t.Run(f.name, func(t *testing.T) {
				template, base, next := prepared(t, f)
				newCutter(t, k, template).all(t, "die at", []string{jsonOf(next)}, func(dir, said string) string {
					return foundAfter(t, base.Clone(), dir, next, ending{said: said})
				})
			})
		}
		if brief() {
			return
		}
		t.Run("create", func(t *testing.T) {
			newCutter(t, k, "").all(t, "create and die at", nil, func(dir, said string) string {
				return createdAfter(t, dir, said)
			})
		})
	})
}

// A cutter cuts the power of one filesystem again and again.
type cutter struct{ before *mount.Device }

// newCutter makes the filesystem, with a copy of a store in it unless template is empty.
func newCutter(t *testing.T, k mount.Kind, template string) cutter {
	d := mount.NewPlace(t).Format(k)
	if template != "" {
		m := d.Mount()
		placeStore(t, template, filepath.Join(m.Dir, "store"))
		m.Unmount() // which syncs
	}
	return cutter{d}
}

// all cuts it at each operation of a process in a role, which is given the directory,
// after, the operation's number, and args, and once after its answer.
func (c cutter) all(t *testing.T, role string, args []string, check func(dir, said string) (found string)) {
	counts := map[string]int{}
	for k, answered := 1, false; !answered; k++ {
		d := c.before.Copy()
		m := d.Mount()
		p := start(t, role, slices.Concat([]string{filepath.Join(m.Dir, "store"), "after", fmt.Sprint(k)}, args)...)
		lines, err := p.Rest()
		cut := d.Copy()
		answered = err == nil && k >= 8 && slices.Equal(lines, []string{"answered"})
		if !answered && (killedBy(err) != syscall.SIGKILL || len(lines) > 0) {
			t.Fatalf("operation %d: %v, %q", k, err, lines)
		}
		m.Unmount()
		d.Remove()

		m = cut.Mount()
		said := saidNothing
		if answered {
			said = saidDone
		}
		found := check(filepath.Join(m.Dir, "store"), said)
		m.Unmount()
		cut.Remove()
		if t.Failed() {
			t.Fatalf("after operation %d", k)
		}
		counts[found]++
	}
	t.Logf("%d cuts: %v", sum(counts), counts)
}

func sum(counts map[string]int) (n int) {
	for c := range maps.Values(counts) {
		n += c
	}
	return n
}

// What a process had said about its call when its filesystem ended.
const (
	saidNothing   = "no answer"
	saidDone      = "done"
	saidRefused   = "refused"
	saidUncertain = "uncertain"
)

// An ending is how a process, or its filesystem, ended in a call.
type ending struct {
	said      string
	uncertain *queue.UncertainError
	orphans   int64 // that other calls may have left
}

// foundAfter opens the store in dir, in which next was under way, recovers it, compares it
// with what was said, and makes the same call again.
func foundAfter(t *testing.T, m *history.Model, dir string, next history.Step, e ending) string {
	t.Helper()
	var o *Options
	set := ownHolders(&o)
	defer set.die()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := recoverAfterCut(t, s)
	m, happened := settled(t, m, s, fatalQueues, &next)
	if e.said == saidDone && !happened || e.said == saidRefused && happened {
		t.Errorf("%s, and happened is %v", e.said, happened)
	}
	if e.uncertain != nil {
		committed, err := s.Resolve(t.Context(), e.uncertain)
		if committed != happened && !errors.Is(err, ErrUnresolved) {
			t.Errorf("resolve: %v, %v, and happened is %v", committed, err, happened)
		}
	}
	if next.Op == history.Enqueue && !happened {
		e.orphans++ // its own
	}
	if r.Orphans > e.orphans {
		t.Errorf("%d orphans after %s, want at most %d", r.Orphans, next.Op, e.orphans)
	}
	callAgain(t, m, s, next)
	if happened {
		return e.said + ", there"
	}
	return e.said + ", absent"
}

// recoverAfterCut brings a store back into use after the power was cut. Nobody syncs the
// lock's record, so a leftover may lie there under a blank one.
func recoverAfterCut(t *testing.T, s *Store) Report {
	t.Helper()
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Verify(t.Context(), VerifyOptions{})
	if err != nil || !r.OK || r.Settled != st.Settled {
		t.Fatalf("verify: %+v %v, status settled %v", r, err, st.Settled)
	}
	if r.Settled && r.Temps == 0 {
		return r
	}
	if _, err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err = s.Verify(t.Context(), VerifyOptions{}); err != nil || !r.OK || !r.Settled || r.Temps != 0 {
		t.Fatalf("verify after the recovery: %+v %v", r, err)
	}
	return r
}

// createAndDieAt takes a directory for a store, before or after, and the number of the
// operation of its creation at which to die.
func createAndDieAt(args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	plan := crashtest.StopBefore(n)
	if args[1] == "after" {
		plan = crashtest.StopAfter(n)
	}
	plan.OnStop = crashtest.KillSelf
	s, err := Create(context.Background(), args[0], &Options{fs: crashtest.Wrap(fsguard.OS(), plan)})
	if err != nil {
		return err
	}
	fmt.Println("answered")
	return s.Close()
}

// createdAfter opens what is left of a creation, finishing it where that is due, and uses
// it.
func createdAfter(t *testing.T, dir, said string) (found string) {
	t.Helper()
	ctx := t.Context()
	found = "whole"
	s, err := Open(ctx, dir, nil)
	switch {
	case said == saidDone && err != nil:
		t.Fatalf("%s, and %v", said, err)
	case errors.Is(err, ErrNoStore):
		found = "none"
		s, err = Create(ctx, dir, nil)
	case errors.Is(err, ErrInterruptedInit):
		found = "interrupted"
		if _, err := Create(ctx, dir, nil); !errors.Is(err, ErrInterruptedInit) {
			t.Errorf("create over an interrupted creation: %v", err)
		}
		s, err = ResumeCreate(ctx, dir, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustVerify(t, dir)
	mustEnqueue(t, s, "mail", small("a"))
	if d := mustClaim(t, s, "mail", queue.ClaimOptions{WithoutHolder: true}); len(d) != 1 {
		t.Errorf("claimed %d, want 1", len(d))
	}
	return said + ", " + found
}
