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
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// Wherever a reference stands, inline or in a run, what it names stays, and all else goes.
func TestCollect(t *testing.T) {
	_, s, w := collectScene(t, withGarbage)
	before := mustLook(t, s)
	names := objectNames(t, w, crashDir)
	mustBeClean(t, s, garbage, 1)

	want := CollectReport{
		Done: true, Revision: s.cached.st.revision, Objects: garbage, Bytes: 3 * int64(len(small("m000").Payload)), Temps: 1, TempBytes: int64(len("half")),
		Named: int64(len(names)) - garbage, Looked: int64(len(names)) + 1, Total: int64(len(names)) + 1, Holds: 2, Kept: []CollectKept{},
	}
	got, err := s.Collect(t.Context(), CollectOptions{})
	if fmt.Sprint(got) != fmt.Sprint(want) || err != nil {
		t.Errorf("collect: %+v, %v\nwant %+v", got, err, want)
	}
	mustBeClean(t, s, 0, 0)
	if after := mustLook(t, s); after != before {
		t.Errorf("found\n%swant\n%s", after, before)
	}
	want.Objects, want.Bytes, want.Temps, want.TempBytes = 0, 0, 0, 0
	want.Looked, want.Total = want.Named, want.Named
	got, err = s.Collect(t.Context(), CollectOptions{})
	if fmt.Sprint(got) != fmt.Sprint(want) || err != nil {
		t.Errorf("collect again: %+v, %v\nwant %+v", got, err, want)
	}
}

// Messages that share an object keep it until the last of them is gone.
func TestCollectSharedObject(t *testing.T) {
	_, s, _ := collectScene(t, withThree)
	for left := 3; left >= 0; left-- {
		r, err := s.Collect(t.Context(), CollectOptions{})
		if want := int64(1); err != nil || left > 0 && r.Objects != 0 || left == 0 && r.Objects != want {
			t.Fatalf("with %d messages left: %+v, %v", left, r, err)
		}
		for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{}) {
			mustDo(t, s.Ack(t.Context(), d.Receipt))
		}
	}
}

// A dry run tells the same and changes nothing, through a handle that can change nothing.
func TestCollectDryRun(t *testing.T) {
	d, s, w := collectScene(t, withGarbage)
	look, err := OpenReadOnly(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	defer look.Close()
	before := objectNames(t, w, crashDir)
	w.Arm(crashtest.Plan{})
	told, err := look.Collect(t.Context(), CollectOptions{DryRun: true})
	mustDo(t, err)
	if after := objectNames(t, w, crashDir); !slices.Equal(after, before) || w.Count(fsguard.OpRemove, fsguard.OpRemoveDir, fsguard.OpWrite, fsguard.OpSyncDir) > 0 {
		t.Errorf("a dry run left %q of %q\n%s", after, before, w.Trace())
	}
	if _, err := look.Collect(t.Context(), CollectOptions{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("collect of a store opened for looking: %v", err)
	}
	done, err := s.Collect(t.Context(), CollectOptions{})
	if told.DryRun = false; err != nil || fmt.Sprint(told) != fmt.Sprint(done) {
		t.Errorf("told %+v\ndone %+v, %v", told, done, err)
	}
}

func TestCollectRefuses(t *testing.T) {
	_, s, w := collectScene(t, withGarbage)
	for _, n := range []int{-1, mostStepEntries + 1} {
		if _, err := s.Collect(t.Context(), CollectOptions{StepEntries: n}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("steps of %d: %v", n, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Collect(ctx, CollectOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	mustDo(t, s.Close())
	if _, err := s.Collect(t.Context(), CollectOptions{}); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if n := len(removals(w)); n > 0 {
		t.Errorf("%d removals", n)
	}
}

// A dead owner's record, or an uncertain commit of another process, stops a collection: what
// is committed is not known. One of its own is resolved first, as by any call.
func TestCollectWaitsForTheOperator(t *testing.T) {
	d, s, w := collectScene(t, withGarbage)
	lock := d.ReadRaw(inCrash(lockFile))
	d.WriteRaw(inCrash(lockFile), encodeRecord(newOwner(token{7}, crashClock.at)))
	for _, dry := range []bool{false, true} {
		if _, err := s.Collect(t.Context(), CollectOptions{DryRun: dry}); !errors.Is(err, ErrStaleLock) {
			t.Errorf("under a dead owner's record, dry %v: %v", dry, err)
		}
	}
	d.WriteRaw(inCrash(lockFile), lock)
	other := beside(t, d)

	loseSpares(s)
	w.Arm(crashtest.FailMatching(lastSync(), unix.EIO, 1))
	if err := ackOf(s, "m010"); !errors.Is(err, queue.ErrUncertain) {
		t.Fatalf("the commit: %v", err)
	}
	w.Arm(crashtest.Plan{})
	if _, err := other.Collect(t.Context(), CollectOptions{}); !errors.Is(err, ErrStaleLock) {
		t.Errorf("beside an uncertain commit: %v", err)
	}
	before := s.seen.revision
	r, err := s.Collect(t.Context(), CollectOptions{})
	if err != nil || r.Revision <= before+1 || r.Objects != garbage {
		t.Errorf("after an uncertain commit at revision %d: %+v, %v", before+1, r, err)
	}
	mustBeClean(t, s, 0, 0)
}

// ackOf claims a message of mail and acks it.
func ackOf(s *Store, id string) error {
	d, err := s.Load(context.Background(), "mail", id, queue.LoadOptions{})
	if err != nil {
		return err
	}
	return s.Ack(context.Background(), d.Receipt)
}

// A run that cannot be read stops the collection: nobody knows what it names.
func TestCollectStopsAtAnUnreadableRun(t *testing.T) {
	for _, evidence := range []bool{false, true} {
		t.Run(fmt.Sprint("of the failed ", evidence), func(t *testing.T) {
			setup := withGarbage
			if evidence {
				setup = func(t testing.TB, d *crashtest.Disk, s *Store) { withFailedRun(t, d, s) }
			}
			d, s, w := collectScene(t, setup)
			name := token{}
			if evidence {
				name = s.cached.st.failed[0].runs[0].name
			} else {
				name = s.cached.st.queue("mail").runs[0].name
			}
			d.WriteRaw(inCrash(runPath(name)), []byte("damaged"))
			before := objectNames(t, w, crashDir)
			other := beside(t, d)
			r, err := other.Collect(t.Context(), CollectOptions{})
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.File != runPath(name) || r.Objects > 0 {
				t.Errorf("collect: %+v, %v", r, err)
			}
			if after := objectNames(t, w, crashDir); !slices.Equal(after, before) {
				t.Errorf("objects %q, want %q", after, before)
			}
		})
	}
}

// It takes no room: neither a full disk nor one without a reserve is in its way.
func TestCollectOnAFullDisk(t *testing.T) {
	d, s, w := collectScene(t, withGarbage)
	d.SetFree(0)
	r, err := s.Collect(t.Context(), CollectOptions{})
	if err != nil || r.Objects != garbage {
		t.Errorf("collect: %+v, %v", r, err)
	}
	if n := w.Count(fsguard.OpWrite, fsguard.OpCreate, fsguard.OpRename, fsguard.OpExchange, fsguard.OpAllocate); n > 0 {
		t.Errorf("%d operations that may need room\n%s", n, w.Trace())
	}
}
