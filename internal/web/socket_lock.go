//go:build unix

package web

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// lockSocket takes the lock of an empty file, which it makes where there is none. Who has
// locked a file that was removed meanwhile tries again: the lock is that of the name.
func lockSocket(name string) (*os.File, error) {
	for {
		// Without blocking: a FIFO there would hold us for ever.
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		held, err := holdLock(f, name)
		if held {
			return f, nil
		}
		f.Close() // nothing was written
		if err != nil {
			return nil, err
		}
	}
}

// holdLock reports whether f is locked and still what the name means.
func holdLock(f *os.File, name string) (bool, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return false, err
	case !info.Mode().IsRegular() || info.Size() > 0:
		return false, fmt.Errorf("%s is there and is no lock of a server: %w", name, ErrAddress)
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	switch {
	case err == syscall.EWOULDBLOCK:
		return false, fmt.Errorf("%s: another server holds it: %w", name, syscall.EADDRINUSE)
	case err != nil:
		return false, &fs.PathError{Op: "flock", Path: name, Err: err}
	}
	if err := f.Chmod(0o600); err != nil { // a umask may have taken from it what the next one needs
		return false, err
	}
	now, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(now, info), err
}

// unlockSocket removes the file and then lets go of its lock.
func unlockSocket(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }
