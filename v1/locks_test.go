//go:build unix

package holdfast

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// A store lists the locks of its directory, and removes the one that is named: the entry
// is to be had again.
func TestLocksOfAStore(t *testing.T) {
	x := newLockScene(t, func(now time.Time) time.Time { return now.Add(-time.Hour) })
	unitIs(t, "load", x.load(t.Context()), ErrLockStale, x.d.queue, "1h0m0s")
	locks, err := x.s.Locks()
	unitOK(t, err)
	if len(locks) != 1 || locks[0].ID != "a" || locks[0].File != namesOf("a").lock || !locks[0].Stale() || locks[0].Owner != "token-of-another" {
		t.Fatalf("locks: %+v", locks)
	}
	before := x.d.tree(t)
	for _, name := range []string{"a.json", "../a.json", lockPrefix + "0" + lockSuffix} {
		_, err := x.s.RemoveLock(name)
		unitIs(t, name, err, ErrInvalidPath)
	}
	_, err = x.s.RemoveLock(namesOf("b").lock)
	unitIs(t, "a lock that does not stand", err, ErrNotFound)
	unitUnchanged(t, before, x.d.tree(t))
	removed, err := x.s.RemoveLock(locks[0].File)
	if err != nil || removed.Owner != "token-of-another" {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	unitOK(t, x.load(t.Context()))
	if locks, err := x.s.Locks(); err != nil || len(locks) > 0 {
		t.Errorf("locks: %+v, %v", locks, err)
	}
}

// A wait that the context ends says what was waited for, and by whom it is held.
func TestEndedWaitTellsTheLock(t *testing.T) {
	x := newLockScene(t, lockForever)
	ended := errors.New("that will do")
	ctx, cancel := context.WithCancelCause(t.Context())
	x.s.opts.sleep = func(context.Context, time.Duration) error {
		cancel(ended)
		return ctx.Err()
	}
	err := x.load(ctx)
	unitIs(t, "load", err, ErrLockTimeout, x.lock, "token-of-another")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not %v", err, context.Canceled)
	}
}

// What nobody holds comes at once, and the others are waited for together.
func TestBatchWaitsForLocksLast(t *testing.T) {
	for _, free := range []bool{false, true} {
		x := newLockScene(t, lockForever)
		for _, id := range []string{"b", "c"} {
			unitPut(t, x.d.at(id+".json"), `1`)
		}
		unitPut(t, x.d.at(namesOf("b").lock), trialRecord(t, lockForever(x.now()), nil))
		began, atFirst := x.now(), ""
		pause := x.s.opts.sleep
		x.s.opts.sleep = func(ctx context.Context, d time.Duration) error {
			if atFirst == "" {
				atFirst = unitNames(t, x.d.queue)
				if free {
					unitOK(t, os.Remove(x.lock))
				}
			}
			return pause(ctx, d)
		}
		b, err := x.s.LoadPending(t.Context(), nil)
		var ids []string
		for _, c := range b.Claims {
			ids = append(ids, c.ID)
			unitOK(t, c.Close())
		}
		want := []string{"c"}
		if free {
			want = []string{"a", "c"}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("free %v: loaded %q, want %q", free, ids, want)
		}
		unitIs(t, "batch", err, ErrLockTimeout, "b.json", x.d.at(namesOf("b").lock))
		if !strings.Contains(atFirst, "c.processing") {
			t.Errorf("free %v: at the first pause there was %q", free, atFirst)
		}
		if took := x.now().Sub(began); took > lockPatience {
			t.Errorf("free %v: waited %v, want at most %v", free, took, lockPatience)
		}
	}
}

// A full page leaves held IDs unwaited for, and names them.
func TestBatchPageNamesHeldLocks(t *testing.T) {
	x := newLockScene(t, lockForever)
	unitPut(t, x.d.at("b.json"), `1`)
	b, err := x.s.LoadPending(t.Context(), &BatchOptions{Limit: 1})
	if len(b.Claims) != 1 || b.Claims[0].ID != "b" {
		t.Fatalf("batch %+v", b)
	}
	unitOK(t, b.Claims[0].Close())
	unitIs(t, "batch", err, ErrLockTimeout, "a.json")
	if len(x.slept) > 0 {
		t.Errorf("%d pauses, want none", len(x.slept))
	}
}

// A store that is open when its directory is handed over changes nothing in it any more.
func TestOpenStoreSeesTheMarker(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		unitEnqueue(t, s, "a", `1`)
		unitEnqueue(t, s, "b", `2`)
		c := unitLoad(t, s, "a", "1")
		unitPut(t, d.at(markerFile), `{}`)
		before, ctx := d.tree(t), t.Context()
		_, err := s.Enqueue(ctx, "c", []byte(`3`))
		unitIs(t, "enqueue", err, ErrImported)
		_, err = s.Load(ctx, "b", nil)
		unitIs(t, "load", err, ErrImported)
		_, err = s.LoadPending(ctx, nil)
		unitIs(t, "batch", err, ErrImported)
		unitIs(t, "ack", s.Ack(ctx, c), ErrImported)
		unitIs(t, "fail", s.FailID(ctx, "b"), ErrImported)
		unitUnchanged(t, before, d.tree(t))
		unitOK(t, os.Remove(d.at(markerFile)), s.Ack(ctx, c))
	})
}

// An entry that the npm package wrote and nobody can claim is reported, not passed over.
func TestBatchNamesEntriesThatCannotBeClaimed(t *testing.T) {
	s, d := newUnitStore(t, unitWay{Auto, HardLink})
	long := strings.Repeat("x", maxIDBytes+1)
	unitPut(t, d.at(long+pendingSuffix), `1`)
	before := d.tree(t)
	b, err := s.LoadPending(t.Context(), nil)
	if err != nil || len(b.Claims) > 0 || len(b.Skipped) != 1 || b.Skipped[0].ID != long || !errors.Is(b.Skipped[0].Err, ErrInvalidPath) {
		t.Errorf("got %+v, %v", b, err)
	}
	if b, err = s.LoadPending(t.Context(), &BatchOptions{After: long}); err != nil || len(b.Skipped) > 0 {
		t.Errorf("after it: %+v, %v", b, err)
	}
	unitUnchanged(t, before, d.tree(t))
}
