//go:build unix

package fsguard

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// maxReopen bounds how often Open tries again when what it opened has just lost
// its name. Each try needs another replacement in the instant between two calls;
// the bound is for a filesystem that always says "no links".
const maxReopen = 100

// Open opens for reading.
func (d *pinned) Open(name string) (File, error) { return d.open(name, unix.O_RDONLY) }

// OpenWrite opens for reading and writing.
func (d *pinned) OpenWrite(name string) (File, error) { return d.open(name, unix.O_RDWR) }

func (d *pinned) open(name string, access int) (File, error) {
	fd, err := d.atFD(name, func(dirfd int, at string) (int, error) { return openPlain(dirfd, at, access) })
	if err != nil {
		return nil, wrap(OpOpen, name, err)
	}
	return &osFile{newDescriptor(fd, name)}, nil
}

// openPlain opens the plain file with one link at name. O_NOFOLLOW stops at a
// symlink, O_NONBLOCK at a FIFO without the other end, O_NOCTTY at a terminal;
// fstat of the descriptor, not of the name, then decides.
func openPlain(dirfd int, name string, access int) (int, error) {
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	for try := 0; ; try++ {
		fd, err := retryFD(func() (int, error) {
			return unix.Openat(dirfd, name, access|flags, 0)
		})
		if err != nil {
			return -1, explain(dirfd, name, 0, err)
		}
		info, err := fstat(fd)
		if err == nil {
			err = checkPlain(info)
		}
		if err == nil {
			// In the poller, kqueue reports regular files wrongly (go.dev/issue/19093).
			// F_SETFL changes no access mode, and no other flag is set (fcntl(2)).
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0)
		}
		if err == nil {
			return fd, nil
		}
		unix.Close(fd)
		if replaced(info) && try < maxReopen {
			continue // the name now means the file that replaced this one, or nothing
		}
		return -1, err
	}
}

// checkPlain says why a file is not a plain one with one link.
func checkPlain(info Info) error {
	switch {
	case info.Mode.Type() == fs.ModeSymlink:
		return ErrSymlink
	case !info.Mode.IsRegular():
		return ErrNotPlain
	case info.Links > 1:
		return ErrLinked
	case info.Links < 1:
		return ErrNotPlain
	}
	return nil
}

// replaced reports whether a regular file lost its last name after it was
// opened: somebody renamed another over it, as every commit does, or removed it.
func replaced(info Info) bool { return info.Mode.IsRegular() && info.Links == 0 }

// explain turns the errno of a refused open into what stands at name, if that is
// not of the type want. The errno does not tell: a symlink is ELOOP on Linux,
// EMLINK on FreeBSD, EFTYPE on NetBSD and ENOTDIR with O_DIRECTORY; a directory
// is EISDIR, a socket ENXIO or EOPNOTSUPP (open(2) of each).
func explain(dirfd int, name string, want fs.FileMode, err error) error {
	if err == unix.ENOENT {
		return err
	}
	info, lerr := lstatat(dirfd, name)
	switch {
	case lerr != nil, info.Mode.Type() == want:
		return err
	case info.Mode.Type() == fs.ModeSymlink:
		return ErrSymlink
	}
	return ErrNotPlain
}
