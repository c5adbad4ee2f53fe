//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// One hold of the lock takes a bounded number of entries, after a sync of the parent;
// between two of them others work.
func TestCollectInSteps(t *testing.T) {
	d, s, w := collectScene(t, withGarbage)
	other := beside(t, d)
	told := 0
	r, err := s.Collect(t.Context(), CollectOptions{StepEntries: 2, Progress: func(r CollectReport) {
		told++
		if r.Holds != int64(told) || r.Looked > r.Total || r.Done != (r.Looked == r.Total) {
			t.Errorf("told %+v after %d holds", r, told)
		}
		mustEnqueue(t, other, "mail", small(fmt.Sprint("between-", told)))
		if told == 2 { // what becomes an orphan meanwhile is of the next collection
			mustDo(t, ackOf(other, "between-1"))
		}
	}})
	if err != nil || r.Objects != garbage || r.Temps != 1 || int(r.Holds) != told || told < 4 {
		t.Errorf("collect: %+v, %v; told %d times", r, err, told)
	}
	holds := removals(w)
	if len(holds) != 3 {
		t.Errorf("removed in %d holds, want 3", len(holds))
	}
	for _, h := range holds {
		if len(h) > 2*2 { // the file and its directory
			t.Errorf("%d removals in one hold: %v", len(h), h)
		}
	}
	mustBeClean(t, s, 1, 0)
}

// The bytes of one hold are bounded too.
func TestCollectHoldsAreBounded(t *testing.T) {
	s, dir := newTestStore(t, nil)
	for i := range 3 {
		at := filepath.Join(dir, namespaceDir, objectsDir, token{byte(i + 1)}.String())
		mustDo(t, os.Mkdir(at, 0o700), os.WriteFile(filepath.Join(at, payloadFile), nil, 0o600))
		mustDo(t, os.Truncate(filepath.Join(at, payloadFile), maxRemovedBytes-1))
	}
	var before, most int64
	r, err := s.Collect(t.Context(), CollectOptions{Progress: func(r CollectReport) {
		most, before = max(most, r.Bytes-before), r.Bytes
	}})
	if err != nil || r.Objects != 3 || most != 2*(maxRemovedBytes-1) {
		t.Errorf("collect: %+v, %v; at most %d bytes in one hold", r, err, most)
	}
}

// So are the runs that are read in one: the next hold goes on behind them.
func TestCollectReadsRunsInSteps(t *testing.T) {
	defer func(was int64) { maxMarkedBytes = was }(maxMarkedBytes)
	maxMarkedBytes = 1
	_, s, w := collectScene(t, withGarbage)
	runs := len(s.cached.st.queue("mail").runs)
	r, err := s.Collect(t.Context(), CollectOptions{})
	if err != nil || r.Objects != garbage || r.Holds != int64(runs+1) {
		t.Errorf("collect: %+v, %v; want %d holds\n%s", r, err, runs+1, w.Trace())
	}
	mustBeClean(t, s, 0, 0)
}

// Before anything is removed in a hold the parent is synced; where that fails nothing is.
func TestCollectSyncsTheParentFirst(t *testing.T) {
	_, s, w := collectScene(t, withGarbage)
	parent := func(op fsguard.Op, path string) bool {
		return op == fsguard.OpSyncDir && strings.Contains(path, namespaceDir)
	}
	w.Arm(crashtest.FailMatching(parent, unix.EIO, 0))
	r, err := s.Collect(t.Context(), CollectOptions{})
	if !errors.Is(err, unix.EIO) || r.Objects+r.Temps > 0 || len(removals(w)) > 0 {
		t.Errorf("the parent's sync failed: %+v, %v", r, err)
	}
	w.Arm(crashtest.Plan{})
	_, err = s.Collect(t.Context(), CollectOptions{StepEntries: 2})
	mustDo(t, err)
	synced := false
	for _, e := range w.Events() {
		switch {
		case e.Op == fsguard.OpLock && strings.HasSuffix(e.Path, lockFile):
			synced = false
		case parent(e.Op, e.Path):
			synced = true
		case (e.Op == fsguard.OpRemove || e.Op == fsguard.OpRemoveDir) && !synced:
			t.Fatalf("%v before the parent was synced in this hold", e)
		}
	}
}

// A state that is seen but was never synced, as somebody may have put it there by hand: what
// only the one before it names goes after that can no longer come back.
func TestCollectAfterALostSync(t *testing.T) {
	d, s, _ := collectScene(t, withThree)
	s.Close()
	d.Settle()
	p := d.Process()
	liar, err := Open(context.Background(), crashDir, crashOptions(unsyncedDirs{p}))
	mustDo(t, err)
	liar.noExchange = true // else the commit is durable without that sync
	_, err = liar.Clear(t.Context(), "mail", queue.ClearOptions{})
	mustDo(t, err, liar.Close())

	other := beside(t, d)
	r, err := other.Collect(t.Context(), CollectOptions{})
	if err != nil || r.Objects != 1 {
		t.Fatalf("collect: %+v, %v", r, err)
	}
	for image := range d.Images(200, 1) {
		after, err := Open(context.Background(), crashDir, crashOptions(image.Process()))
		mustDo(t, err)
		if v, err := after.Verify(t.Context(), VerifyOptions{}); err != nil || !v.OK {
			t.Errorf("%s: %+v, %v", image.Story(), v, err)
		}
		after.Close()
	}
}

// unsyncedDirs is a filesystem on which the syncs of directories do nothing.
type unsyncedDirs struct{ fsguard.FS }

func (f unsyncedDirs) OpenRoot(path string) (fsguard.Dir, error) {
	d, err := f.FS.OpenRoot(path)
	return lyingDir{d}, err
}

type lyingDir struct{ fsguard.Dir }

func (d lyingDir) OpenDir(name string) (fsguard.Dir, error) {
	in, err := d.Dir.OpenDir(name)
	return lyingDir{in}, err
}

func (d lyingDir) Sync() error { return nil }

// Whoever reads by path defers a collection, in whatever process; nothing is removed under
// him. Who has an object open reads it to its end.
func TestCollectIsDeferred(t *testing.T) {
	d, s, w := collectScene(t, withGarbage)
	other := beside(t, d)
	var reader fsguard.Dir
	mustDo(t, other.look(t.Context(), func(v *view) (err error) {
		reader, err = v.pins.shareObjects()
		return err
	}))
	var second fsguard.Dir
	mustDo(t, other.look(t.Context(), func(v *view) (err error) {
		second, err = v.pins.shareObjects()
		return err
	}))
	mustDo(t, second.Close())
	r, err := s.Collect(t.Context(), CollectOptions{})
	if !errors.Is(err, ErrDeferred) || !r.Deferred || r.Done || r.Objects+r.Temps > 0 || len(removals(w)) > 0 {
		t.Errorf("beside a reader: %+v, %v", r, err)
	}
	mustDo(t, reader.Close())
	if r, err := s.Collect(t.Context(), CollectOptions{StepEntries: 1, Progress: func(r CollectReport) {
		if r.Objects == 2 {
			mustDo(t, other.look(t.Context(), func(v *view) (err error) {
				reader, err = v.pins.shareObjects()
				return err
			}))
		}
	}}); !errors.Is(err, ErrDeferred) || r.Objects != 2 {
		t.Errorf("a reader came in between: %+v, %v", r, err)
	}
	mustDo(t, reader.Close())
	if r, err := s.Collect(t.Context(), CollectOptions{}); err != nil || r.Objects != garbage-2 {
		t.Errorf("after it: %+v, %v", r, err)
	}
	mustBeClean(t, s, 0, 0)
}

// A collection and a look that does not wait for the lock: what the state that it reads
// names stays until it is done.
func TestCollectIsDeferredByAGlance(t *testing.T) {
	d, s, _ := collectScene(t, withThree)
	look, err := OpenReadOnly(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	defer look.Close()
	mustDo(t, look.glance(func(v *view) error {
		if _, err := s.Clear(t.Context(), "mail", queue.ClearOptions{}); err != nil {
			return err
		}
		if r, err := s.Collect(t.Context(), CollectOptions{}); !errors.Is(err, ErrDeferred) {
			t.Errorf("collect: %+v, %v", r, err)
		}
		return v.draft.st.refs(func(_, id string, r *ref) bool {
			if _, damage, err := v.load(r); damage != "" || err != nil {
				t.Errorf("%s: %s, %v", id, damage, err)
			}
			return true
		})
	}))
	if r, err := s.Collect(t.Context(), CollectOptions{}); err != nil || r.Objects != 1 {
		t.Errorf("after it: %+v, %v", r, err)
	}
}

// A look that a collection at work overtakes is taken again: what it read names may be gone.
func TestGlanceOvertakenByACollection(t *testing.T) {
	d, s, _ := collectScene(t, withThree)
	look, err := OpenReadOnly(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	defer look.Close()
	objects, err := d.Process().OpenRoot(inCrash(objectsDir))
	mustDo(t, err)
	defer objects.Close()
	mustDo(t, objects.Lock(fsguard.Exclusive)) // as a collector has it for one hold
	looks := 0
	mustDo(t, look.glance(func(v *view) error {
		damaged := 0
		if looks++; looks == 1 {
			if err := objects.Unlock(); err != nil {
				return err
			}
			if _, err := s.Clear(t.Context(), "mail", queue.ClearOptions{}); err != nil {
				return err
			}
			if _, err := s.Collect(t.Context(), CollectOptions{}); err != nil {
				return err
			}
		}
		err := v.draft.st.refs(func(_, _ string, r *ref) bool {
			if _, damage, _ := v.load(r); damage != "" {
				damaged++
			}
			return true
		})
		if damaged > 0 && looks > 1 {
			t.Errorf("%d payloads are gone in look %d", damaged, looks)
		}
		return err
	}))
	if looks != 2 {
		t.Errorf("%d looks, want 2", looks)
	}
}

// Its hold of the lock is nobody else's: what another call of the same commit has dropped is
// named by the committed state until that commit.
func TestCollectGoesAlone(t *testing.T) {
	d, s, w := collectScene(t, withThree)
	held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 3})
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpExchange }, unix.EIO, 1))
	errs := together(t, d, s,
		func() error {
			_, err := s.Clear(t.Context(), "mail", queue.ClearOptions{Leased: true})
			return err
		},
		func() error {
			r, err := s.Collect(t.Context(), CollectOptions{StepEntries: 1})
			if err == nil && r.Objects > 0 {
				err = fmt.Errorf("freed: %+v", r)
			}
			return err
		})
	if !errors.Is(errs[0], unix.EIO) || errs[1] != nil {
		t.Fatalf("clear %v, collect %v", errs[0], errs[1])
	}
	for _, x := range held {
		shown, err := s.Show(t.Context(), "mail", x.Receipt.ID)
		if err != nil || string(shown[0].Payload) != string(x.Payload) {
			t.Errorf("%s: %+v, %v", x.Receipt.ID, shown, err)
		}
	}
}

// What another handle has made ahead is an orphan, until its commit names it. That a run of
// messages was sealed over it since, which no hold has read yet, keeps it too.
func TestCollectOfARunSealedMeanwhile(t *testing.T) {
	other, _, d := producing(t)
	s := beside(t, d)
	ahead := other.pool.ready
	r, err := s.Collect(t.Context(), CollectOptions{StepEntries: 1, Progress: func(r CollectReport) {
		if r.Holds > 1 {
			return
		}
		for _, id := range []string{"c", "d", "e", "f", "g"} {
			mustEnqueue(t, other, "mail", small(id))
		}
	}})
	if runs := len(other.cached.st.queue("mail").runs); err != nil || r.Objects != 0 || runs != 1 || ahead == nil {
		t.Errorf("collect: %+v, %v; %d runs, %+v made ahead", r, err, runs, ahead)
	}
	if v, err := s.Verify(t.Context(), VerifyOptions{}); err != nil || !v.OK {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// Evidence in runs counts as any other.
func TestCollectEvidence(t *testing.T) {
	d, s, _ := collectScene(t, func(t testing.TB, d *crashtest.Disk, s *Store) {
		withFailedRun(t, d, s)
		mustDo(t, s.Purge(t.Context(), "d", queue.PurgeOptions{}))
	})
	want := mustLook(t, s)
	mustDo(t, collectAll(beside(t, d), want))
}
