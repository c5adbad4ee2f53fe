//go:build unix

package holdfast

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// Whatever a transition changes, it changes under the transfer lock held alone and with
// its owner's record in it; so does a look that resolves what was left open.
func TestChangesAreMadeAlone(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  Settings
		dead bool // an owner has died
		do   func(t *testing.T, s *Store) error
	}{
		{"enqueue", Settings{OnDeadOwner: Stop}, false, func(t *testing.T, s *Store) error { return second(s.Enqueue(t.Context(), "mail", small("a"))) }},
		{"look by consent", Settings{OnDeadOwner: AutoRecover}, true, func(t *testing.T, s *Store) error {
			return second(s.Status(t.Context(), queue.StatusOptions{}))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, s, w := onDisk(t)
			mustDo(t, s.Set(t.Context(), tt.set))
			if tt.dead {
				d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
			}
			lock, err := simSpace(t, d).Open(lockFile)
			mustDo(t, err)
			seen := map[fsguard.Op]bool{}
			w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
				switch op {
				case fsguard.OpCreate, fsguard.OpMkdir, fsguard.OpWrite, fsguard.OpSync, fsguard.OpSyncData, fsguard.OpSyncDir, fsguard.OpRename, fsguard.OpExchange, fsguard.OpRemove:
				default:
					return false
				}
				seen[op] = true
				if free, err := lock.TryLock(fsguard.Shared); err != nil || free {
					t.Errorf("%s of %s: another gets the lock: %v, %v", op, path, free, err)
					_ = lock.Unlock() // or what is tested waits for ever
				}
				var buf [recordSize]byte
				_, err := lock.ReadAt(buf[:], 0)
				if _, blank := decodeRecord(buf[:]); err != nil || blank && path != filepath.Join(namespaceDir, lockFile) {
					t.Errorf("%s of %s without an owner's record: %v", op, path, err)
				}
				return false
			}, nil, 0))
			mustDo(t, tt.do(t, s))
			if !seen[fsguard.OpRename] && !seen[fsguard.OpExchange] || !seen[fsguard.OpSyncDir] {
				t.Errorf("saw only %v", seen)
			}
		})
	}
}

// A failed unlock keeps nobody out.
func TestFailedUnlock(t *testing.T) {
	d, s, w := onDisk(t)
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		return op == fsguard.OpUnlock && path == filepath.Join(namespaceDir, lockFile)
	}, syscall.EIO, 1))
	mustEnqueue(t, s, "mail", small("a"))
	waitIdle(s)
	lock, err := simSpace(t, d).Open(lockFile)
	mustDo(t, err)
	if free, err := lock.TryLock(fsguard.Exclusive); err != nil || !free {
		t.Errorf("the lock is still held: %v, %v", free, err)
	}
}

// lockWrite matches writes of the record, the n-th of them.
func lockWrite(n int) func(op fsguard.Op, path string) bool {
	return func(op fsguard.Op, path string) bool {
		if op == fsguard.OpWrite && path == filepath.Join(namespaceDir, lockFile) {
			n--
			return n == 0
		}
		return false
	}
}

// A record of ours that could not be blanked is made up for by the next call of the
// same store; another's in its place is another's.
func TestRecordThatCouldNotBeBlanked(t *testing.T) {
	for _, others := range []bool{false, true} {
		d, s, w := onDisk(t)
		w.Arm(crashtest.FailMatching(lockWrite(2), syscall.EIO, 1))
		mustEnqueue(t, s, "mail", small("a"))
		w.Arm(crashtest.Plan{})
		waitIdle(s)
		if others {
			d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
		}
		_, err := s.Enqueue(t.Context(), "mail", small("b"))
		if others != errors.Is(err, ErrStaleLock) || !others && err != nil {
			t.Errorf("another's record %v: %v", others, err)
		}
	}
}

// An operation that took effect and failed, before the commit, leaves nothing in the next
// call's way: a record whose writing failed may be there, and is blanked all the same.
func TestRecordThatWasWrittenInSpiteOfTheError(t *testing.T) {
	_, s, w := onDisk(t)
	for n := 1; ; n++ {
		w.Arm(crashtest.FailAfter(n, syscall.EIO))
		_, err := s.Enqueue(t.Context(), "mail", queue.Message{Payload: []byte("1")})
		w.Arm(crashtest.Plan{})
		if err == nil || errors.Is(err, queue.ErrUncertain) {
			if n == 1 {
				t.Fatalf("no operation failed: %v", err)
			}
			return
		}
		if _, err := s.Enqueue(t.Context(), "mail", queue.Message{Payload: []byte("1")}); err != nil {
			t.Fatalf("after the failure of operation %d: %v", n, err)
		}
	}
}

// What another owner left is not taken for our own uncertain commit, of before.
func TestAnothersDeathAfterOurUncertainty(t *testing.T) {
	d, s, w := onDisk(t)
	w.Arm(crashtest.FailMatching(lastSync(), syscall.EIO, 1))
	if _, err := s.Enqueue(t.Context(), "mail", small("a")); !errors.Is(err, queue.ErrUncertain) {
		t.Fatal(err)
	}
	d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
	if _, err := s.Enqueue(t.Context(), "mail", small("b")); !errors.Is(err, ErrStaleLock) {
		t.Errorf("under another's record: %v, want ErrStaleLock", err)
	}
}

// A recovery that ends uncertain leaves the dead owner's record, marked, and the same
// store's next call resolves it.
func TestUncertainRecovery(t *testing.T) {
	d, s, w := onDisk(t)
	dead := newOwner(token{7}, crashClock.at)
	d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(dead))
	w.Arm(crashtest.FailMatching(lastSync(), syscall.EIO, 1))
	if _, err := s.Recover(t.Context()); !errors.Is(err, queue.ErrUncertain) && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	w.Arm(crashtest.Plan{})
	other, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	defer other.Close()
	st, err := other.Status(t.Context(), queue.StatusOptions{})
	if err != nil || st.Owner == nil || st.Owner.Token != dead.Token || !st.Owner.Uncertain {
		t.Errorf("another process sees %+v, %v; want the dead owner's record, uncertain", st.Owner, err)
	}
	mustEnqueue(t, s, "mail", small("a"))
}

// A recovery that failed before its commit leaves what it found: the record, and with it
// the need to recover.
func TestFailedRecovery(t *testing.T) {
	d, s, w := onDisk(t)
	dead := newOwner(token{7}, crashClock.at)
	d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(dead))
	w.Arm(crashtest.FailMatching(isStateSync, syscall.EIO, 1))
	if _, err := s.Recover(t.Context()); !errors.Is(err, syscall.EIO) || errors.Is(err, queue.ErrUncertain) {
		t.Fatal(err)
	}
	var stale *StaleLockError
	if _, err := s.Enqueue(t.Context(), "mail", small("a")); !errors.As(err, &stale) || stale.Owner.Token != dead.Token {
		t.Errorf("after it: %v, want the dead owner's record", err)
	}
	if _, err := s.Recover(t.Context()); err != nil {
		t.Errorf("the next try: %v", err)
	}
}
