//go:build unix

package crashtest

import (
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// A simDir is a pinned directory of a simulated process.
type simDir struct{ *desc }

var _ fsguard.Dir = (*simDir)(nil)

// look finds what stands at name; nil and no error if nothing does.
func (s *simDir) look(name string) (*inode, error) {
	if err := fsguard.CheckName(name); err != nil {
		return nil, err
	}
	switch {
	case len(name) > 255:
		return nil, syscall.ENAMETOOLONG
	case !s.n.allowed(s.p.uid, 1):
		return nil, syscall.EACCES
	}
	return s.n.names[name], nil
}

// find is look for a name that must be there.
func (s *simDir) find(name string) (*inode, error) {
	n, err := s.look(name)
	if err == nil && n == nil {
		err = syscall.ENOENT
	}
	return n, err
}

// changeable says why no name in s can be changed, or nil.
func (s *simDir) changeable() error {
	switch {
	case s.p.d.conf.readOnly:
		return syscall.EROFS
	case !s.n.allowed(s.p.uid, 3):
		return syscall.EACCES
	}
	return nil
}

func (s *simDir) Lstat(name string) (info fsguard.Info, err error) {
	err = s.do(fsguard.OpLstat, name, func() error {
		n, err := s.find(name)
		if err == nil {
			info = n.info(s.p.d.conf.sizeLies)
		}
		return err
	})
	return info, err
}

func (s *simDir) ReadDir() (names []string, err error) {
	err = s.do(fsguard.OpReadDir, s.name, func() error {
		if s.n.links == 0 {
			return syscall.ENOENT // fsguard opens "." anew for each listing
		}
		names = slices.Sorted(maps.Keys(s.n.names))
		return nil
	})
	return names, err
}

func (s *simDir) OpenDir(name string) (fsguard.Dir, error) {
	var dir *simDir
	err := s.do(fsguard.OpOpenDir, name, func() error {
		n := s.n
		if name != "." {
			var err error
			if n, err = s.find(name); err != nil {
				return err
			}
		}
		switch {
		case n.mode&fs.ModeSymlink != 0:
			return fsguard.ErrSymlink
		case !n.mode.IsDir():
			return fsguard.ErrNotPlain
		case !n.allowed(s.p.uid, 4):
			return syscall.EACCES
		}
		dir = &simDir{s.p.describe(n, name, false)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return dir, nil
}

// make adds an inode of the mode at name, which must be unused.
func (s *simDir) make(op fsguard.Op, name string, mode fs.FileMode) (*inode, error) {
	there, err := s.look(name)
	if err != nil {
		return nil, err
	}
	if there != nil {
		return nil, syscall.EEXIST
	}
	if err := s.changeable(); err != nil {
		return nil, err
	}
	switch {
	case s.n.links == 0:
		return nil, syscall.ENOENT // the directory itself is gone
	case s.p.d.freeBytes() == 0:
		return nil, syscall.ENOSPC
	}
	n := s.p.d.newInode(mode, s.p.uid)
	s.p.d.attach(s.n, name, n, op, free)
	return n, nil
}

func (s *simDir) Mkdir(name string) error {
	return s.do(fsguard.OpMkdir, name, func() error {
		_, err := s.make(fsguard.OpMkdir, name, fs.ModeDir|0o700)
		return err
	})
}

func (s *simDir) Create(name string) (fsguard.File, error) {
	var file *simFile
	err := s.do(fsguard.OpCreate, name, func() error {
		n, err := s.make(fsguard.OpCreate, name, 0o600)
		if err == nil {
			file = &simFile{s.p.describe(n, name, true)}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (s *simDir) Open(name string) (fsguard.File, error)      { return s.open(name, false) }
func (s *simDir) OpenWrite(name string) (fsguard.File, error) { return s.open(name, true) }

func (s *simDir) open(name string, write bool) (fsguard.File, error) {
	var file *simFile
	err := s.do(fsguard.OpOpen, name, func() error {
		n, err := s.find(name)
		if err != nil {
			return err
		}
		want := fs.FileMode(4)
		if write {
			want |= 2
		}
		switch {
		case n.mode&fs.ModeSymlink != 0:
			return fsguard.ErrSymlink
		case !n.mode.IsRegular():
			return fsguard.ErrNotPlain
		case !n.allowed(s.p.uid, want):
			return syscall.EACCES
		case write && s.p.d.conf.readOnly:
			return syscall.EROFS
		case n.links != 1:
			return fsguard.ErrLinked
		}
		file = &simFile{s.p.describe(n, name, write)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (s *simDir) WriteFile(name string, data []byte) error { return writeFile(s, name, data) }

func (s *simDir) Rename(oldName, newName string) error {
	return s.do(fsguard.OpRename, oldName+" to "+newName, func() error {
		n, err := s.find(oldName)
		if err != nil {
			return err
		}
		target, err := s.look(newName)
		if err != nil {
			return err
		}
		return s.replace(oldName, s, newName, n, target)
	})
}

func (s *simDir) Remove(name string) error    { return s.remove(fsguard.OpRemove, name) }
func (s *simDir) RemoveDir(name string) error { return s.remove(fsguard.OpRemoveDir, name) }

func (s *simDir) remove(op fsguard.Op, name string) error {
	return s.do(op, name, func() error {
		n, err := s.find(name)
		if err != nil {
			return err
		}
		if err := s.changeable(); err != nil {
			return err
		}
		switch {
		case op == fsguard.OpRemove && n.mode.IsDir():
			return syscall.EISDIR
		case op == fsguard.OpRemoveDir && !n.mode.IsDir():
			return syscall.ENOTDIR
		case len(n.names) > 0:
			return syscall.ENOTEMPTY
		}
		s.p.d.detach(s.n, name, op, free)
		return nil
	})
}

func (s *simDir) Sync() error {
	return s.do(fsguard.OpSyncDir, s.name, func() error {
		if err := s.p.d.conf.dirErr; err != nil {
			return err
		}
		s.n.sync()
		return nil
	})
}

func (s *simDir) Space() (space fsguard.Space, err error) {
	err = s.do(fsguard.OpSpace, s.name, func() error {
		space = s.p.d.conf.space
		space.Free = s.p.d.freeBytes()
		return nil
	})
	return space, err
}
