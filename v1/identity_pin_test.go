//go:build unix

package holdfast

import (
	"context"
	"errors"
	"path"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// pinScene is a claim of s whose transfer lock another program holds. While the
// settlement waits, meanwhile runs; then the entry is gone, a newer one with the same bytes
// is claimed under the lowest free inode number, and the lock is free.
func pinScene(t *testing.T, route Route, meanwhile func(c *Claim)) (identityScene, *Claim) {
	t.Helper()
	s := identityStore(t, route, crashState{claimed: genA})
	c := mustLoad(t, s.Store, genA)
	lock := namesOf(crashID).lock
	text, _ := newRecord(s.opts.now())
	s.disk.WriteRaw(inQueue(lock), text)
	waited := false
	s.opts.sleep = func(context.Context, time.Duration) error {
		if waited {
			t.Fatal("the lock is free, and is waited for")
		}
		waited = true
		meanwhile(c)
		if err := errors.Join(s.queue.dir.Remove("a.processing"), s.queue.dir.Remove(lock)); err != nil {
			t.Fatal(err)
		}
		s.disk.WriteRaw(inQueue("a.processing"), []byte(genA))
		return nil
	}
	return s, c
}

// A claim that is closed, or settled by another goroutine, while an Ack or a Fail of it
// waits for the lock keeps its descriptor until that is over: the newer claim, which would
// have its inode number, is left alone.
func TestPinOutlastsTheWait(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		for name, end := range map[string]func(c *Claim){
			"closed":  func(c *Claim) { _ = c.Close() },
			"settled": func(c *Claim) { _ = c.settling(func() error { return nil }) },
		} {
			for settlement, settle := range map[string]func(*Store, *Claim) error{
				"ack":  func(s *Store, c *Claim) error { return s.Ack(t.Context(), c) },
				"fail": func(s *Store, c *Claim) error { return s.Fail(t.Context(), c) },
			} {
				s, c := pinScene(t, route, end)
				if err := settle(s.Store, c); !errors.Is(err, ErrPathMismatch) {
					t.Errorf("%s, %s: got %v, want %v", name, settlement, err, ErrPathMismatch)
				}
				s.is(t, crashState{claimed: genA})
				if err := s.Ack(t.Context(), c); !errors.Is(err, ErrSettled) {
					t.Errorf("%s, %s, again: got %v, want %v", name, settlement, err, ErrSettled)
				}
				if open := c.file; open != nil {
					t.Errorf("%s, %s: the descriptor is still open", name, settlement)
				}
			}
		}
	})
}

// When no descriptor is to be had any more, the lock is given up all the same: nobody died.
func TestLockIsReleasedWithoutDescriptors(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{claimed: genA})
		c := mustLoad(t, s.Store, genA)
		held := false
		w := crashtest.Wrap(s.w, crashtest.FailMatching(func(op fsguard.Op, at string) bool {
			if op == fsguard.OpCreate && isLock(path.Base(at)) {
				held = true
				return false
			}
			return held && (op == fsguard.OpOpen || op == fsguard.OpOpenDir || op == fsguard.OpCreate)
		}, syscall.EMFILE, 0))
		o := mustOpen(t, w, route)
		if err := o.FailID(t.Context(), crashID); err != nil && !errors.Is(err, syscall.EMFILE) {
			t.Errorf("got %v", err)
		}
		if !held {
			t.Error("no lock was taken")
		}
		held = false
		if locks, err := s.Locks(); err != nil || len(locks) > 0 {
			t.Errorf("left: %+v, %v", locks, err)
		}
		_ = c.Close()
	})
}

// A temporary file that somebody cleaned away was never enqueued, and the answer says so.
func TestEnqueueOfACleanedTemp(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{})
		w := crashtest.Wrap(s.w, crashtest.FailMatching(func(op fsguard.Op, at string) bool {
			if op == fsguard.OpRename {
				names, err := s.queue.dir.ReadDir()
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					if isTemp(name) {
						if err := s.queue.dir.Remove(name); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			return false
		}, nil, 0))
		id, err := mustOpen(t, w, route).Enqueue(t.Context(), crashID, []byte(genA))
		if id != "" || !errors.Is(err, ErrChanged) || errors.Is(err, ErrUncertain) {
			t.Errorf("got %q, %v; want %v", id, err, ErrChanged)
		}
		s.is(t, crashState{})
	})
}

// A load that meets a quarantine between its two names waits for it, and finds nothing.
func TestLoadBesideAQuarantine(t *testing.T) {
	s := identityStore(t, HardLink, crashState{claimed: genA})
	o := s.other(t, HardLink)
	first := true
	w := crashtest.Wrap(s.w, crashtest.FailMatching(func(op fsguard.Op, at string) bool {
		// The claim is about to be read, without the lock.
		if op == fsguard.OpOpen && path.Base(at) == "a.processing" && first {
			first = false
			if err := o.queue.dir.Link("a.processing", o.fail.dir, "a.json"); err != nil {
				t.Fatal(err)
			}
		}
		return false
	}, nil, 0))
	c, err := mustOpen(t, w, HardLink).Load(t.Context(), crashID, nil)
	if c != nil || !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, %v; want %v", c, err, ErrNotFound)
	}
	s.is(t, crashState{failed: genA})
}
