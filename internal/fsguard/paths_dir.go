//go:build unix

package fsguard

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// A pathDir is a directory of Paths.
type pathDir struct{ pinned }

// pinPath makes a Dir of the directory that was opened as fd, or closes it.
func pinPath(fd int, name, path string, nofollow bool) (*pathDir, error) {
	d := &pathDir{pinned{descriptor: newDescriptor(fd, name), path: path, nofollow: nofollow}}
	info, err := d.Info()
	if err != nil {
		d.file.Close()
		return nil, err
	}
	d.identity = info.Identity
	return d, nil
}

// OpenDir opens name with O_NOFOLLOW and O_DIRECTORY.
func (d *pathDir) OpenDir(name string) (Dir, error) {
	open := d.again
	if name != "." {
		open = func() (*pathDir, error) {
			fd, err := d.atFD(name, openDirectory)
			if err != nil {
				return nil, err
			}
			return pinPath(fd, name, join(d.path, name), true)
		}
	}
	sub, err := open()
	if err != nil {
		return nil, wrap(OpOpenDir, name, err)
	}
	return sub, nil
}

// again opens another description of the same directory. What was opened tells whether
// the path still means it.
func (d *pathDir) again() (*pathDir, error) {
	var same *pathDir
	err := d.control(func(int) (err error) { // the identity stays taken meanwhile
		if same, err = openRoot(d.path); err != nil {
			return cmp.Or(d.inPlace(), err)
		}
		if same.identity != d.identity {
			err = ErrMoved
		} else if d.nofollow {
			err = d.inPlace() // what was opened may be where a symlink leads
		}
		if err != nil {
			same.file.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	same.name, same.nofollow = ".", d.nofollow
	return same, nil
}

// ReadDir lists through a description of its own, because the position in a
// directory belongs to the description and calls may be concurrent.
func (d *pathDir) ReadDir() ([]string, error) {
	list, err := d.again()
	if err != nil {
		return nil, wrap(OpReadDir, d.name, err)
	}
	defer list.Close()
	names, err := list.file.Readdirnames(-1)
	if err != nil {
		return nil, wrap(OpReadDir, d.name, err)
	}
	slices.Sort(names)
	return names, nil
}

// WriteFile does what the one of OS does, with the same temp names. renameio without
// a root would clean the path, and "link/.." is not ".".
func (d *pathDir) WriteFile(name string, data []byte) error {
	return wrap(OpWriteFile, name, d.at(name, func(dirfd int, at string) error {
		fd, temp, err := d.createTemp(name)
		if err != nil {
			return err
		}
		f := &osFile{newDescriptor(fd, temp)}
		_, err = f.file.Write(data)
		if err == nil {
			err = f.file.Sync()
		}
		if cerr := f.file.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = replaceFile(dirfd, temp, at)
		}
		if err != nil {
			_ = unix.Unlinkat(dirfd, temp, 0) // not there if the rename did happen
		}
		return err
	}))
}

// createTemp makes a file of a name that nothing has.
func (d *pathDir) createTemp(name string) (fd int, temp string, err error) {
	prefix := join(d.path, "."+name)
	for range 10_000 {
		temp = prefix + strconv.FormatInt(rand.Int64(), 10)
		if fd, err = createFile(unix.AT_FDCWD, temp); err != unix.EEXIST {
			break
		}
	}
	return fd, temp, err
}

// replaceFile renames, and says fs.ErrExist of a directory in the way, for which
// systems have different errnos.
func replaceFile(dirfd int, temp, name string) error {
	err := unix.Renameat(dirfd, temp, dirfd, name)
	if err != nil {
		if info, lerr := lstatat(dirfd, name); lerr == nil && info.Mode.IsDir() {
			return unix.EEXIST
		}
	}
	return err
}
