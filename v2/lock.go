//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A tenure is the transfer lock, held.
type tenure struct {
	pins  *pins
	mode  fsguard.LockMode
	found queue.Owner // the record that stood in the lock when it was obtained
	stale bool        // there was one

	owner   queue.Owner // ours
	written bool        // ours stands in the lock
	keep    bool        // leave whatever record stands there
}

// acquire waits in the kernel for the transfer lock. The turnstile, a lock on
// format.json held only while waiting for the other, lets one wait inside at a time:
// whoever has just released finds the next one there and waits behind it, and new
// readers cannot keep a writer out. Among those before the turnstile the kernel
// chooses; it promises no order.
func acquire(p *pins, mode fsguard.LockMode) (*tenure, error) {
	if err := p.format.Lock(fsguard.Exclusive); err != nil {
		return nil, lockError(err)
	}
	err := p.lock.Lock(mode)
	if e := p.format.Unlock(); err == nil && e != nil {
		err = errors.Join(e, p.lock.Unlock())
	}
	if err != nil {
		return nil, lockError(err)
	}
	return admitted(p, mode)
}

// acquireFree is acquire where nothing has to be waited for; nil: somebody holds the lock
// or waits for it, and so has the turn.
func acquireFree(p *pins, mode fsguard.LockMode) (*tenure, error) {
	free, err := p.format.TryLock(fsguard.Exclusive)
	if err != nil || !free {
		return nil, lockError(err)
	}
	free, err = p.lock.TryLock(mode)
	if e := p.format.Unlock(); free && e != nil {
		return nil, errors.Join(e, p.lock.Unlock())
	}
	if err != nil || !free {
		return nil, lockError(err)
	}
	return admitted(p, mode)
}

func admitted(p *pins, mode fsguard.LockMode) (*tenure, error) {
	t := &tenure{pins: p, mode: mode}
	if err := t.admit(); err != nil {
		return nil, errors.Join(err, p.lock.Unlock())
	}
	return t, nil
}

// admit checks that the path still names the locked file, and reads the record.
func (t *tenure) admit() error {
	info, err := t.pins.space.Lstat(lockFile)
	if err := same(lockFile, info, err, t.pins.lockID); err != nil {
		return err
	}
	if err := admitPlain(lockFile, info); err != nil {
		return err
	}
	var buf [recordSize + 1]byte // one byte more shows a file that is too long
	n, err := t.pins.lock.ReadAt(buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n > recordSize {
		// Blanking could never make it blank again: it would stay stale for ever.
		return &CorruptError{File: lockFile, Offset: recordSize, Reason: "longer than the record's 512 bytes; no program of this format makes it so"}
	}
	owner, blank := decodeRecord(buf[:n])
	t.found, t.stale = owner, !blank
	return nil
}

// sign writes our owner record. Nothing of a transition may reach the disk before
// it: if we die from here on, the next owner finds it and stops.
func (t *tenure) sign(owner queue.Owner) error {
	t.owner = owner
	t.written = true // even when the write fails: some of it may be there
	_, err := t.pins.lock.WriteAt(encodeRecord(owner), 0)
	return err
}

// leaveUncertain marks the record, so that every process sees that a commit may or
// may not have happened. The record stays when the lock is released.
func (t *tenure) leaveUncertain() error {
	t.keep = true
	if t.owner.Token == "" {
		return nil // a dead owner's record that nobody can read stands there, and stays
	}
	t.owner.Uncertain = true
	_, err := t.pins.lock.WriteAt(encodeRecord(t.owner), 0)
	return err
}

// release blanks our record and lets the next one in. It reports whether a record
// of ours may still stand there although nothing is open.
func (t *tenure) release() (left bool) {
	if t.written && !t.keep {
		_, err := t.pins.lock.WriteAt([]byte(blankRecord), 0)
		left = err != nil
	}
	// The lock also goes when the descriptor is closed; an unlock that fails must
	// not keep it, so the pins are given up then.
	if err := t.pins.lock.Unlock(); err != nil {
		t.pins.spent = true
	}
	return left
}

// newOwner describes this process.
func newOwner(tok token, now instant) queue.Owner {
	return queue.Owner{Token: tok.String(), PID: os.Getpid(), Host: hostname(), Boot: now.BootID, Since: now.Wall.UTC()}
}

// hostname is asked for once: every commit names it.
var hostname = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		return "" // for people only; it decides nothing
	}
	return host
})

func lockError(err error) error {
	if isAny(err, lockUnsupported...) {
		return fmt.Errorf("%w: file locks (flock) do not work here: %w", err, ErrFilesystem)
	}
	return err
}
