//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// The names of what is synced, as a wrapper tells them. Both directories are ".".
const (
	syncDot    = "."
	syncRoot   = retirementsDir
	syncRecord = retirementsDir + "/a.json"
	syncTemp   = "temp"
)

// The sync budget of each call: what is synced, in order. In the column beside it is
// how many syncs the npm package's call makes, by its source; its move to the failed
// directory also syncs that one and every directory above it each time.
func TestSyncBudget(t *testing.T) {
	retire := []string{syncDot, syncRoot, syncRecord, syncDot, syncRecord, syncRoot}
	claim := map[Route][]string{HardLink: append([]string{syncDot}, retire...), RenameNoReplace: {syncDot}}
	migrate := &LoadOptions{Migrate: func(context.Context, string, []byte) ([]byte, error) { return []byte(genM), nil }}
	for _, route := range bothRoutes {
		s, w := countedStore(t, route)
		ctx := t.Context()
		var c *Claim
		put := func() (err error) { _, err = s.Enqueue(ctx, crashID, []byte(genA)); return err }
		load := func(o *LoadOptions) func() error {
			return func() (err error) {
				c.drop()
				c, err = s.Load(ctx, crashID, o)
				return err
			}
		}
		for _, step := range []struct {
			name string
			do   func() error
			want []string
			npm  int
		}{
			{"enqueue", put, []string{syncTemp, syncDot}, 2},
			{"enqueue over a pending one", put, []string{syncTemp, syncDot}, 2},
			{"load", load(nil), claim[route], 7},
			{"load a standing claim", load(nil), []string{syncDot}, 1},
			{"enqueue beside a claim", put, []string{syncTemp, syncDot}, 2},
			{"ack", func() error { return s.Ack(ctx, c) }, []string{syncDot, syncDot}, 2},
			{"load and migrate", load(migrate), slices.Concat(claim[route], []string{syncTemp, syncDot}), 9},
			{"migrate a standing claim", load(migrate), []string{syncDot, syncTemp, syncDot}, 3},
			{"ack by ID", func() error { return s.AckID(ctx, crashID) }, []string{syncDot, syncDot}, 2},
			{"ack of nothing", func() error { return s.AckID(ctx, crashID) }, []string{syncDot}, 1},
			{"enqueue", put, []string{syncTemp, syncDot}, 2},
			{"load", load(nil), claim[route], 7},
			{"fail", func() error { return s.Fail(ctx, c) }, []string{syncDot, syncDot}, 2},
			{"enqueue", put, []string{syncTemp, syncDot}, 2},
			{"fail a pending one over evidence", func() error {
				if err := s.FailID(ctx, crashID); err == nil {
					return fmt.Errorf("failed over other evidence")
				}
				return nil
			}, []string{syncDot, syncDot}, 2},
			{"load in a batch", func() error {
				b, err := s.LoadPending(ctx, nil)
				for _, c := range b.Claims {
					c.drop()
				}
				return err
			}, claim[route], 7},
			{"status", func() error { _, err := s.Status(ctx); return err }, nil, 0},
		} {
			w.Arm(crashtest.Plan{})
			if err := step.do(); err != nil {
				t.Fatalf("%v: %s: %v", route, step.name, err)
			}
			got := syncsOf(w)
			t.Logf("%-18v %-34s %d syncs, npm %d", route, step.name, len(got), step.npm)
			if !slices.Equal(got, step.want) {
				t.Errorf("%v: %s: synced %q, want %q\n%s", route, step.name, got, step.want, w.Trace())
			}
			if len(got) > step.npm {
				t.Errorf("%v: %s: %d syncs, more than the npm package's %d", route, step.name, len(got), step.npm)
			}
		}
		c.drop()
	}
}

// A pending entry that is set aside costs its claim and its move.
func TestSyncBudgetOfFailingAPendingEntry(t *testing.T) {
	for route, want := range map[Route]int{HardLink: 9, RenameNoReplace: 3} {
		s, w := countedStore(t, route)
		mustPut(t, s, genA)
		w.Arm(crashtest.Plan{})
		if err := s.FailID(t.Context(), crashID); err != nil {
			t.Fatal(err)
		}
		if got := w.Syncs(); got != want {
			t.Errorf("%v: %d syncs, want %d:\n%s", route, got, want, w.Trace())
		}
	}
}

// The no-replace route makes no link, nor tries one.
func TestNoReplaceRouteMakesNoLink(t *testing.T) {
	s, w := countedStore(t, RenameNoReplace)
	for range 2 {
		mustPut(t, s, genA)
		if err := s.Ack(t.Context(), mustLoad(t, s, genA)); err != nil {
			t.Fatal(err)
		}
	}
	mustPut(t, s, genA)
	if err := s.FailID(t.Context(), crashID); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(fsguard.OpLink); n != 0 {
		t.Errorf("%d links:\n%s", n, w.Trace())
	}
}

// countedStore gives a store on the real filesystem whose operations are counted.
func countedStore(t *testing.T, route Route) (*Store, *crashtest.Wrapper) {
	t.Helper()
	base := t.TempDir()
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, err := OpenOrCreate(filepath.Join(base, "q"), &Options{FailedDir: filepath.Join(base, "f"), ClaimBy: route, fs: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range w.Violations() {
			t.Error(v)
		}
	})
	return s, w
}

// syncsOf tells what was synced since the last Arm.
func syncsOf(w *crashtest.Wrapper) (out []string) {
	for _, group := range w.SyncGroups() {
		for _, name := range group {
			if strings.HasSuffix(name, tempSuffix) {
				name = syncTemp
			}
			out = append(out, name)
		}
	}
	return out
}
