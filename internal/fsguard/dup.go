//go:build unix

package fsguard

import (
	"os"

	"golang.org/x/sys/unix"
)

// Dup duplicates the descriptor. A flock belongs to the open file description, which
// both share and a child that inherits one shares too: the kernel releases it when
// the last of them is closed, or at an LOCK_UN on any (flock(2)). F_DUPFD_CLOEXEC
// sets close-on-exec in the same call (fcntl(2)), so that no child that another
// goroutine starts meanwhile inherits the duplicate by accident.
func (f *osFile) Dup() (*os.File, error) {
	var dup int
	err := f.control(func(fd int) (err error) {
		dup, err = retryFD(func() (int, error) {
			return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		})
		return err
	})
	if err != nil {
		return nil, wrap(OpDup, f.name, err)
	}
	return os.NewFile(uintptr(dup), f.name), nil
}
