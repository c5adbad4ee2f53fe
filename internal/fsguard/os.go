//go:build unix

package fsguard

import (
	"errors"
	"os"
	"sync"

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

// SyncAll syncs the first target on the caller's goroutine and each further one
// on its own. Nothing orders the syncs among themselves.
func (osFS) SyncAll(targets ...Syncer) error {
	errs := make([]error, len(targets))
	var wg sync.WaitGroup
	for i := 1; i < len(targets); i++ {
		wg.Go(func() { errs[i] = targets[i].Sync() })
	}
	if len(targets) > 0 {
		errs[0] = targets[0].Sync()
	}
	wg.Wait()
	return errors.Join(errs...)
}
