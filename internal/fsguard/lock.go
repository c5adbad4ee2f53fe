//go:build unix

package fsguard

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Lock waits in the kernel, tying up one thread, until flock(2) gives the lock.
// The lock belongs to the open file description: two descriptions on one file
// exclude each other in one process too, and the kernel releases it with the
// last descriptor, which the death of the process closes.
//
// Changing the mode of a held lock is not atomic: the kernel may drop the lock
// first and give it to another (flock(2)).
//
// Calls on other files, and on this one, go on while Lock waits. Close does not
// end the wait: it returns at once, and the Lock, when it is its turn, returns
// fs.ErrClosed and the lock is given up. A filesystem without flock answers ENOSYS,
// ENOTSUP, EINVAL or ENOLCK, which is returned as it is.
func (d *descriptor) Lock(mode LockMode) error {
	return wrap(OpLock, d.name, d.flock(how(mode)))
}

// TryLock is Lock that never waits.
func (d *descriptor) TryLock(mode LockMode) (bool, error) {
	err := d.flock(how(mode) | unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, wrap(OpLock, d.name, err)
}

// Unlock gives up the lock. It is no error if none is held.
func (d *descriptor) Unlock() error {
	return wrap(OpUnlock, d.name, d.flock(unix.LOCK_UN))
}

func (d *descriptor) flock(how int) error {
	return d.control(func(fd int) error {
		err := retry(func() error { return unix.Flock(fd, how) })
		if err == nil && d.closed.Load() {
			// Closed while this waited: the lock goes with the descriptor as soon
			// as control returns, so nobody may be told that it is held.
			return fs.ErrClosed
		}
		return err
	})
}

func how(mode LockMode) int {
	if mode == Exclusive {
		return unix.LOCK_EX
	}
	return unix.LOCK_SH
}
