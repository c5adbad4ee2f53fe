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
	if errors.Is(err, unix.ENOTDIR) {
		if info, serr := fstatat(unix.AT_FDCWD, path, 0); serr == nil && !info.Mode.IsDir() {
			err = ErrNotPlain
		}
	}
	if err != nil {
		return nil, wrap(OpOpenRoot, path, err)
	}
	dir, err := pin(root, path)
	return dir, wrap(OpOpenRoot, path, err)
}

// Stat follows path.
func (osFS) Stat(path string) (Info, error) {
	info, err := fstatat(unix.AT_FDCWD, path, 0)
	return info, wrap(OpStat, path, err)
}

// maxSyncs bounds how many syncs run at once: each that waits for the disk takes a
// thread, and a process has only so many.
const maxSyncs = 32

// SyncAll syncs the targets on the caller's goroutine and on up to maxSyncs - 1 more.
// Nothing orders the syncs among themselves.
func (osFS) SyncAll(targets ...Syncer) error {
	errs := make([]error, len(targets))
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(targets) {
				return
			}
			errs[i] = targets[i].Sync()
		}
	}
	var wg sync.WaitGroup
	for range min(len(targets), maxSyncs) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return errors.Join(errs...)
}
