//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// A directory is pinned. What is done in it is done through the pin, and each
// transition first checks that its path still means it.
type directory struct {
	fs   fsguard.FS
	path string
	id   fsguard.Identity

	dir fsguard.Dir
}

func pinDirectory(fsys fsguard.FS, path string) (*directory, error) {
	if path == "" {
		return nil, fmt.Errorf("empty directory name: %w", ErrOptions)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir, err := fsys.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fsguard.ErrNotPlain) || errors.Is(err, syscall.ENOTDIR) {
		return nil, &Error{File: path, What: ErrNoDirectory, Why: "OpenOrCreate makes it", Err: err}
	}
	if err != nil {
		return nil, err
	}
	info, err := dir.Info()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &directory{fs: fsys, path: path, id: info.Identity, dir: dir}, nil
}

// admit gives the directory for one transition, if its path still means the pinned one:
// by a descriptor of its own, which the caller closes. A sync that fails is told to one
// descriptor once; another transition must not hear success on it afterwards.
func (d *directory) admit() (fsguard.Dir, error) {
	now, err := d.fs.Stat(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || now.Identity != d.id {
		return nil, &Error{File: d.path, What: ErrPathMismatch, Why: "is not the directory that was opened", Err: err}
	}
	dir, err := d.dir.OpenDir(".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	return dir, nil
}

// within runs f in the directory.
func (d *directory) within(f func(dir fsguard.Dir) error) error {
	dir, err := d.admit()
	if err != nil {
		return about(d.path, err)
	}
	return about(d.path, errors.Join(f(dir), dir.Close()))
}

// makeDirectory makes path and what is missing above it, and syncs every directory
// that an entry on the way was made in, now or by a call that was cut off.
func makeDirectory(fsys fsguard.FS, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	at := path
	var missing []string
	for {
		if _, err := fsys.Stat(at); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return err
		}
		missing = append(missing, filepath.Base(at))
		at = filepath.Dir(at)
	}
	for len(missing) > 0 {
		last := len(missing) - 1
		name := missing[last]
		missing = missing[:last]
		if err := inDirectory(fsys, at, func(d fsguard.Dir) error { return d.Mkdir(name) }); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		at = filepath.Join(at, name)
	}
	info, err := fsys.Stat(path)
	if err != nil {
		return err
	}
	return syncAbove(fsys, path, info.UID)
}

// syncAbove syncs path and the directories above it, up to the first that belongs to
// somebody else: its entries are not of our making, and on Android it may not be opened.
func syncAbove(fsys fsguard.FS, path string, owner uint32) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := fsys.Stat(at)
		if err != nil {
			return err
		}
		err = inDirectory(fsys, at, fsguard.Dir.Sync)
		if info.UID != owner && errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.UID != owner || at == filepath.Dir(at) {
			return nil
		}
	}
}

func inDirectory(fsys fsguard.FS, path string, f func(fsguard.Dir) error) error {
	dir, err := fsys.OpenRoot(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(dir)
}

// lstat tells what stands at name. Only a missing name is not there; any other error
// is one.
func lstat(dir fsguard.Dir, name string) (fsguard.Info, bool, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fsguard.Info{}, false, nil
	}
	return info, err == nil, err
}

// regular is lstat of a name at which only a plain file may stand; it may have several
// links.
func regular(dir fsguard.Dir, name string, otherwise Code) (fsguard.Info, bool, error) {
	info, there, err := lstat(dir, name)
	if there && !info.Mode.IsRegular() {
		return info, true, &Error{File: name, What: otherwise, Why: "not a plain file; move it away"}
	}
	return info, there, err
}

func notPlain(err error) bool {
	return errors.Is(err, fsguard.ErrNotPlain) || errors.Is(err, fsguard.ErrSymlink) || errors.Is(err, fsguard.ErrLinked)
}
