//go:build unix

package holdfast

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// A HeldLock is a transfer lock that stands, or what a program made that was taking one
// away.
type HeldLock struct {
	Lock
	ID      string // the entry that it is for; empty: none that stands
	Reclaim bool   // a .reclaim beside a lock: while it stands nobody gets that lock
}

// Locks lists the transfer locks that stand, and what stands beside one that somebody
// takes away: those of transitions that run at this moment, and those that killed processes
// left. A Stale one is worth a look; its age proves nothing.
func (s *Store) Locks() (out []HeldLock, err error) {
	err = s.queue.within(func(q fsguard.Dir) error {
		listed, ids, err := lockIDsIn(q)
		if err != nil {
			return err
		}
		out, err = s.locks(q, listed, ids)
		return err
	})
	return out, err
}

// RemoveLock removes a lock, or a .reclaim, by the file name that Locks or a LockError
// tells: the operator's act, whatever its age, for only you can know that its holder is
// gone. It tells what it removed. A holder that lives finds out after its transition and
// answers ErrPathMismatch; another may have worked on the same entry by then. A name that
// is no lock's is ErrInvalidPath; ErrNotFound: none stands. On nil it is durably gone.
func (s *Store) RemoveLock(file string) (lock HeldLock, err error) {
	if !IsLockFile(file) {
		return lock, &Error{File: file, What: ErrInvalidPath, Why: "not the name of a transfer lock"}
	}
	err = s.queue.within(func(q fsguard.Dir) error {
		var there bool
		if lock, there, err = s.heldLock(q, file); err != nil {
			return err
		}
		if !there {
			return &Error{File: file, What: ErrNotFound}
		}
		_, ids, err := lockIDsIn(q)
		if err != nil {
			return err
		}
		lock.ID = ids.of(file)
		info, _, err := lstat(q, file)
		if err != nil {
			return err
		}
		if info.Mode.IsDir() { // as the npm package makes a .reclaim
			err = q.RemoveDir(file)
		} else {
			err = q.Remove(file)
		}
		if err != nil {
			return err
		}
		return syncDir(q, s.queue.path)
	})
	return lock, err
}

// locks tells of the locks among the listed names.
func (s *Store) locks(q fsguard.Dir, listed []string, ids lockIDs) ([]HeldLock, error) {
	var out []HeldLock
	for _, name := range listed {
		if !IsLockFile(name) {
			continue
		}
		lock, there, err := s.heldLock(q, name)
		if err != nil {
			return nil, err
		}
		if there {
			lock.ID = ids.of(name)
			out = append(out, lock)
		}
	}
	return out, nil
}

// heldLock tells of the lock, or the .reclaim, at name. False: let go just now.
func (s *Store) heldLock(q fsguard.Dir, name string) (HeldLock, bool, error) {
	if strings.HasSuffix(name, reclaimSuffix) {
		info, there, err := lstat(q, name)
		return HeldLock{Lock: s.reclaim(name, info), Reclaim: true}, there, err
	}
	lock, err := s.lockAt(q, name)
	if errors.Is(err, fs.ErrNotExist) {
		return HeldLock{}, false, nil
	}
	return HeldLock{Lock: lock}, err == nil, err
}

// reclaim tells of a .reclaim, which has no record: its age is its file's.
func (s *Store) reclaim(name string, info fsguard.Info) Lock {
	return s.aged(Lock{File: name, Created: time.Unix(0, info.MtimeNanos)})
}

// lockIDs are the entries that stand, by the names of their locks.
type lockIDs map[string]string

// of tells which entry the lock, or the .reclaim, at name is for. Empty: none that stands.
func (ids lockIDs) of(name string) string { return ids[strings.TrimSuffix(name, reclaimSuffix)] }

func lockIDsOf(listed []string, retired []Record) lockIDs {
	ids := lockIDs{}
	for _, name := range listed {
		if id, _, entry := cutEntry(name); entry {
			ids[namesOf(id).lock] = id
		}
	}
	for _, r := range retired {
		ids[namesOf(r.ID).lock] = r.ID
	}
	return ids
}

// lockIDsIn looks for them in the queue directory, and gives the names in it too.
func lockIDsIn(q fsguard.Dir) ([]string, lockIDs, error) {
	listed, err := q.ReadDir()
	if err != nil {
		return nil, nil, err
	}
	retired, err := records(q)
	if err != nil {
		return nil, nil, err
	}
	return listed, lockIDsOf(listed, retired), nil
}
