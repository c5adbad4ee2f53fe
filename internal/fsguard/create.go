//go:build unix

package fsguard

import "golang.org/x/sys/unix"

// The modes of everything that is made, whatever the umask. The kernel creates
// with these bits less the umask's (umask(2)), so never with more, and what the
// umask took is given back on the spot.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// Mkdir makes the directory name. On an error other than fs.ErrExist an empty
// directory may stand there.
func (d *pinned) Mkdir(name string) error {
	return wrap(OpMkdir, name, d.at(name, makeDirectory))
}

func makeDirectory(dirfd int, name string) error {
	if err := retry(func() error { return unix.Mkdirat(dirfd, name, dirMode) }); err != nil {
		return err
	}
	info, err := lstatat(dirfd, name)
	if err == nil && info.Mode.Perm() != dirMode {
		// Flags 0 is the old system call. os.Root.Chmod asks for
		// AT_SYMLINK_NOFOLLOW, which is fchmodat2 and death on Android. The
		// directory cannot be opened for fchmod: it may lack every permission.
		err = retry(func() error { return unix.Fchmodat(dirfd, name, dirMode, 0) })
	}
	if err != nil {
		_ = unix.Unlinkat(dirfd, name, unix.AT_REMOVEDIR)
	}
	return err
}

// Create makes the file name with O_EXCL, which also refuses a symlink,
// dangling or not (open(2)). On an error other than fs.ErrExist an empty file may
// stand there.
func (d *pinned) Create(name string) (File, error) {
	fd, err := d.atFD(name, createFile)
	if err != nil {
		return nil, wrap(OpCreate, name, err)
	}
	return &osFile{newDescriptor(fd, name)}, nil
}

func createFile(dirfd int, name string) (int, error) {
	fd, err := retryFD(func() (int, error) {
		const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
		return unix.Openat(dirfd, name, flags, fileMode)
	})
	if err != nil {
		return -1, err
	}
	info, err := fstat(fd)
	if err == nil && info.Mode.Perm() != fileMode {
		err = retry(func() error { return unix.Fchmod(fd, fileMode) })
	}
	if err != nil {
		unix.Close(fd)
		_ = unix.Unlinkat(dirfd, name, 0)
		return -1, err
	}
	return fd, nil
}
