//go:build unix

package fsguard

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// OS returns the operating system's filesystem. It keeps no state.
func OS() FS { return osFS{} }

type osFS struct{}

// OpenRoot pins the directory at path. The path is given "/." at its end, so that
// the kernel refuses anything but a directory before opening it: a FIFO there
// does not block.
func (osFS) OpenRoot(path string) (Dir, error) {
	if path == "" {
		return nil, wrap(OpOpenRoot, path, unix.ENOENT) // as open(2) would say
	}
	root, err := os.OpenRoot(path + "/.")
	if err != nil {
		return nil, wrap(OpOpenRoot, path, rootError(path, err))
	}
	dir, err := pin(root, path)
	return dir, wrap(OpOpenRoot, path, err)
}

// rootError tells something that is no directory from a path that leads through it.
func rootError(path string, err error) error {
	if errors.Is(err, unix.ENOTDIR) {
		if info, serr := fstatat(unix.AT_FDCWD, path, 0); serr == nil && !info.Mode.IsDir() {
			return ErrNotPlain
		}
	}
	return err
}

// Stat follows path.
func (osFS) Stat(path string) (Info, error) {
	info, err := fstatat(unix.AT_FDCWD, path, 0)
	return info, wrap(OpStat, path, err)
}

// maxSyncs bounds how many syncs run at once: each that waits for the disk takes a
// thread, and a process has only so many.
const maxSyncs = 32

// SyncAll syncs the first target on the caller's goroutine and the others on that one
// and up to maxSyncs - 1 more. Nothing orders the syncs among themselves.
func (osFS) SyncAll(targets ...Syncer) error {
	if len(targets) == 0 {
		return nil
	}
	errs := make([]error, len(targets))
	var last atomic.Int64 // the target that was taken last
	work := func() {
		for i := last.Add(1); i < int64(len(targets)); i = last.Add(1) {
			errs[i] = targets[i].Sync()
		}
	}
	var wg sync.WaitGroup
	for range min(len(targets), maxSyncs) - 1 {
		wg.Go(work)
	}
	errs[0] = targets[0].Sync()
	work()
	wg.Wait()
	return errors.Join(errs...)
}
