//go:build unix

package fsguard

import "golang.org/x/sys/unix"

// Paths returns the operating system's filesystem by plain path names: what [OS] does,
// with the same results and refusals, but no call takes a directory's descriptor to find
// a name in it. It keeps no state.
//
// A Dir is pinned by a descriptor here too, which is synced, locked and asked about. A
// name in it is reached by the path that the directory was opened by, after a look
// whether that path still means the pinned directory, and ErrMoved if it does not. So a
// directory that is moved is not followed, and one that others replace in the instant
// between a look and a call can be mistaken: only OS is safe from that. A relative path
// is relative to what the process's directory is at each call.
func Paths() FS { return pathFS{} }

// A pathFS differs in its directories alone: the other calls take paths anyway.
type pathFS struct{ osFS }

// OpenRoot pins the directory at path, as the one of OS does.
func (pathFS) OpenRoot(path string) (Dir, error) {
	if path == "" {
		return nil, wrap(OpOpenRoot, path, unix.ENOENT) // as open(2) would say
	}
	d, err := openRoot(path)
	if err != nil {
		return nil, wrap(OpOpenRoot, path, rootError(path, err))
	}
	return d, nil
}

func openRoot(path string) (*pathDir, error) {
	fd, err := retryFD(func() (int, error) {
		return unix.Openat(unix.AT_FDCWD, path+"/.", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return pinPath(fd, path, path, false)
}
