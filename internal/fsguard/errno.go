//go:build unix

package fsguard

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// wrap returns err as an *Error, or nil. Package os has put its own operation and
// name around many errors; they are taken off so that the message says each once.
func wrap(op Op, name string, err error) error {
	for {
		switch e := err.(type) {
		case nil:
			return nil
		case *Error:
			return e
		case *fs.PathError:
			err = e.Err
		case *os.LinkError:
			err = e.Err
		case *os.SyscallError:
			err = e.Err
		default:
			return &Error{Op: op, Name: name, Err: err}
		}
	}
}

// retry calls f again while a signal interrupts it. The Go runtime installs its
// handlers with SA_RESTART, but not every call restarts (signal(7)).
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// retryFD is retry for a call that opens a descriptor.
func retryFD(f func() (int, error)) (fd int, err error) {
	err = retry(func() error {
		fd, err = f()
		return err
	})
	return fd, err
}
