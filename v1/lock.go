//go:build unix

package holdfast

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// How long a transfer lock is waited for, and when it is called stale. Both sides of
// the protocol use the same numbers.
const (
	lockTries     = 180
	lockMinDelay  = 25 * time.Millisecond
	lockMaxDelay  = 250 * time.Millisecond
	lockFactor    = 1.1
	lockPatience  = 45 * time.Second
	lockStaleness = 30 * time.Second
)

// A Lock tells of one transfer lock.
type Lock struct {
	File    string        // its name in the queue directory
	Owner   string        // the owner's token; empty: not to be read
	Created time.Time     // when the owner says, else the file's modification time
	Age     time.Duration // since then, by this system's clock
}

// Stale reports whether the lock is older than 30 s. That proves nothing about its
// holder.
func (l Lock) Stale() bool { return l.Age > lockStaleness }

// A transferLock is held by this process.
type transferLock struct {
	dir  fsguard.Dir
	name string
	text []byte
	file fsguard.File // open until the release, which must not need a descriptor
	id   fsguard.Identity
}

// acquire makes the lock file of n, or waits until it can, for so long since began.
// Nothing that another process left is ever removed.
func (s *Store) acquire(ctx context.Context, dir fsguard.Dir, n names, began time.Time) (*transferLock, error) {
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lock, err := s.tryAcquire(dir, n)
		if lock != nil || err != nil && !errors.Is(err, errBusy) {
			return lock, err
		}
		waited := s.opts.now().Sub(began)
		if try >= lockTries || waited >= lockPatience {
			return nil, s.gaveUp(dir, n, nil)
		}
		if err := s.opts.sleep(ctx, min(lockDelay(try), lockPatience-waited)); err != nil {
			return nil, s.gaveUp(dir, n, err)
		}
	}
}

// gaveUp says what was waited for; why is the context's error, or nil when the time was
// over.
func (s *Store) gaveUp(dir fsguard.Dir, n names, why error) error {
	held, err := s.holds(dir, n)
	if err != nil {
		return errors.Join(why, err)
	}
	return &LockError{What: ErrLockTimeout, Dir: s.queue.path, Lock: held, Err: why}
}

// holds tells what keeps the lock of n from being had. A .reclaim beside it comes first:
// while that stands nobody gets the lock.
func (s *Store) holds(dir fsguard.Dir, n names) (Lock, error) {
	info, reclaimed, err := lstat(dir, n.lock+reclaimSuffix)
	if err != nil {
		return Lock{}, err
	}
	held, err := s.lockAt(dir, n.lock)
	if errors.Is(err, fs.ErrNotExist) {
		held, err = Lock{File: n.lock}, nil // let go just now, or never there
		if reclaimed {
			held = s.reclaim(n.lock, info)
		}
	}
	if reclaimed {
		held.File = n.lock + reclaimSuffix
	}
	return held, err
}

// lockDelay is the pause after the try-th failure.
func lockDelay(try int) time.Duration {
	ms := math.Round(float64(lockMinDelay.Milliseconds()) * math.Pow(lockFactor, float64(try)))
	return min(lockMaxDelay, time.Duration(ms)*time.Millisecond)
}

// sleep waits on the real clock.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errBusy is returned inside when the lock is held and not stale.
var errBusy = errors.New("busy")

// tryAcquire makes the lock file, or says errBusy, or that it is stale.
func (s *Store) tryAcquire(dir fsguard.Dir, n names) (*transferLock, error) {
	if _, there, err := lstat(dir, n.lock+reclaimSuffix); err != nil || there {
		return nil, cmp.Or(err, errBusy)
	}
	now := s.opts.now()
	file, err := dir.Create(n.lock)
	if errors.Is(err, fs.ErrExist) {
		return nil, s.judge(dir, n)
	}
	if err != nil {
		return nil, err
	}
	lock := &transferLock{dir: dir, name: n.lock, file: file}
	lock.text, _ = newRecord(now)
	if _, err := file.WriteAt(lock.text, 0); err != nil {
		// Ours by the descriptor: its text is not whole. Left behind it would go stale.
		return nil, errors.Join(err, removeIf(dir, n.lock, file), file.Close())
	}
	info, err := file.Info()
	if err != nil {
		return nil, errors.Join(err, removeIf(dir, n.lock, file), file.Close())
	}
	lock.id = info.Identity
	if info.Links == 0 {
		return nil, errors.Join(errBusy, file.Close()) // somebody took it away at once
	}
	return lock, nil
}

// judge looks at a lock that stands: busy, stale, or no lock at all.
func (s *Store) judge(dir fsguard.Dir, n names) error {
	first, err := s.lockAt(dir, n.lock)
	if errors.Is(err, fs.ErrNotExist) {
		return errBusy // let go just now
	}
	if err != nil {
		return err
	}
	if !first.Stale() {
		return errBusy
	}
	// A lock that changed hands meanwhile is not the stale one that was read.
	again, err := s.lockAt(dir, n.lock)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (again.Owner != first.Owner || !again.Created.Equal(first.Created)) {
		return errBusy
	}
	if err != nil {
		return err
	}
	return &LockError{What: ErrLockStale, Dir: s.queue.path, Lock: again}
}

// lockAt reads the lock at name.
func (s *Store) lockAt(dir fsguard.Dir, name string) (Lock, error) {
	text, info, err := readLock(dir, name)
	if err != nil {
		return Lock{}, err
	}
	l := Lock{File: name}
	l.Owner, l.Created = parseRecord(text)
	if l.Created.IsZero() {
		l.Created = time.Unix(0, info.MtimeNanos)
	}
	return s.aged(l), nil
}

func (s *Store) aged(l Lock) Lock {
	l.Age = s.opts.now().Sub(l.Created)
	return l
}

func readLock(dir fsguard.Dir, name string) ([]byte, fsguard.Info, error) {
	file, err := dir.Open(name)
	if err != nil {
		if notPlain(err) {
			err = &Error{File: name, What: ErrNotFile, Why: "a transfer lock is a plain file", Err: err}
		}
		return nil, fsguard.Info{}, err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return nil, info, err
	}
	text, err := fsguard.ReadAll(file, maxRecordBytes)
	if errors.Is(err, fsguard.ErrTooLong) {
		text, err = nil, nil // nobody's record: its age is its file's
	}
	return text, info, err
}

// release removes the lock file if it is still this one. A lock that was taken away
// meanwhile means that somebody else may have worked on the entry at the same time.
func (l *transferLock) release() (err error) {
	defer func() { err = errors.Join(err, l.file.Close()) }()
	there, ok, err := lstat(l.dir, l.name)
	if err != nil {
		return err
	}
	text := []byte(nil)
	if ok && there.Identity == l.id {
		if text, err = fsguard.ReadAll(l.file, maxRecordBytes); err != nil && !errors.Is(err, fsguard.ErrTooLong) {
			return err
		}
	}
	if !bytes.Equal(text, l.text) {
		return &Error{File: l.name, What: ErrPathMismatch, Why: "the transfer lock was taken away while it was held"}
	}
	return l.dir.Remove(l.name)
}

// removeIf removes name if it still is the open file.
func removeIf(dir fsguard.Dir, name string, file fsguard.File) error {
	ours, err := file.Info()
	if err != nil {
		return err
	}
	there, ok, err := lstat(dir, name)
	if err != nil || !ok || there.Identity != ours.Identity {
		return err
	}
	return dir.Remove(name)
}
