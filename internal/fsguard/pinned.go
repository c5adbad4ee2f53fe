//go:build unix

package fsguard

import (
	"cmp"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// ErrMoved is returned by a Dir of Paths, for what is done to a name, when the path
// that it was opened by means another directory now, or none. If others were moving it
// meanwhile, what was asked may have been done, here or in the other.
var ErrMoved = errors.New("is no longer the directory that was pinned")

// A pinned is what the directories of both implementations share: a descriptor on the
// directory, and how a name in it is reached.
type pinned struct {
	*descriptor
	path     string   // names are reached by this path; "": through the descriptor
	nofollow bool     // the path's last component must not be a symlink
	identity Identity // what the path must mean
}

// at checks name and calls f with what the *at calls take: the directory's descriptor
// number and the name, or AT_FDCWD and the whole path.
func (d *pinned) at(name string, f func(dirfd int, name string) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return d.control(func(fd int) error {
		if d.path == "" {
			return f(fd, name)
		}
		if err := d.inPlace(); err != nil {
			return err
		}
		// Asked again, so that neither a success nor "not there" is told of another
		// directory that came in between.
		err := f(unix.AT_FDCWD, join(d.path, name))
		return cmp.Or(d.inPlace(), err)
	})
}

// atFD is at for a call that opens a descriptor.
func (d *pinned) atFD(name string, open func(dirfd int, name string) (int, error)) (int, error) {
	fd := -1
	err := d.at(name, func(dirfd int, name string) (err error) {
		fd, err = open(dirfd, name)
		return err
	})
	if err != nil && fd >= 0 {
		unix.Close(fd)
	}
	return fd, err
}

// inPlace checks that the path still means the pinned directory. What it cannot find
// out comes back as it is, but a path that leads nowhere is never fs.ErrNotExist, which
// would be taken for a name that is not there.
func (d *pinned) inPlace() error {
	flags := 0
	if d.nofollow {
		flags = unix.AT_SYMLINK_NOFOLLOW
	}
	info, err := fstatat(unix.AT_FDCWD, d.path, flags)
	switch {
	case err == unix.ENOENT, err == unix.ENOTDIR, err == unix.ELOOP:
		return ErrMoved
	case err != nil:
		return err
	case info.Identity != d.identity:
		return ErrMoved
	}
	return nil
}

// join puts name below path. It cleans nothing: "link/.." is not ".".
func join(path, name string) string {
	if path[len(path)-1] == '/' {
		return path + name
	}
	return path + "/" + name
}

// base gives a Dir of this package to another.
func (d *pinned) base() *pinned { return d }

// Lstat is fstatat with AT_SYMLINK_NOFOLLOW.
func (d *pinned) Lstat(name string) (info Info, err error) {
	err = d.at(name, func(dirfd int, at string) (err error) {
		info, err = lstatat(dirfd, at)
		return err
	})
	if err != nil {
		info = Info{}
	}
	return info, wrap(OpLstat, name, err)
}

// Sync is fsync of the directory: the names made, renamed and removed in it so
// far are durable when it returns nil (fsync(2): syncing a file does not sync its
// entry). Where a directory cannot be synced, EINVAL or ENOTSUP comes back as is.
func (d *pinned) Sync() error { return d.sync(OpSyncDir) }

// openDirectory opens the directory at name, which must not be a symlink.
func openDirectory(dirfd int, name string) (int, error) {
	fd, err := retryFD(func() (int, error) {
		return unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, explain(dirfd, name, fs.ModeDir, err)
	}
	return fd, nil
}
