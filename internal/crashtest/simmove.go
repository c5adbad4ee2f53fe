//go:build unix

package crashtest

import (
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// Move moves between directories of one disk, of whatever process. A directory can
// only be renamed in its own directory: to another it is EXDEV, as on overlayfs.
func (s *simDir) Move(oldName string, to fsguard.Dir, newName string) error {
	return s.do(fsguard.OpMove, oldName+" to "+newName, func() error {
		return s.move(oldName, to, newName, false)
	})
}

// MoveNew is Move that replaces nothing.
func (s *simDir) MoveNew(oldName string, to fsguard.Dir, newName string) error {
	return s.do(fsguard.OpMoveNew, oldName+" to "+newName, func() error {
		return s.move(oldName, to, newName, true)
	})
}

// Exchange swaps two names of this directory, of whatever kind what they mean is.
func (s *simDir) Exchange(a, b string) error {
	return s.do(fsguard.OpExchange, a+" with "+b, func() error {
		for _, name := range []string{a, b} {
			if err := fsguard.CheckName(name); err != nil {
				return err
			}
		}
		if err := s.p.d.conf.exchangeErr; err != nil {
			return fsguard.ExchangeError(err)
		}
		for _, name := range []string{a, b} {
			if _, err := s.find(name); err != nil {
				return err
			}
		}
		if err := s.changeable(); err != nil {
			return err
		}
		s.p.d.exchange(s.n, a, b, free)
		return nil
	})
}

// Link gives a file a second name. Where links are imitated (see
// Disk.SetLinksAreSymlinks) it makes symlinks and answers nil.
func (s *simDir) Link(oldName string, to fsguard.Dir, newName string) error {
	return s.do(fsguard.OpLink, oldName+" to "+newName, func() error {
		return s.link(oldName, to, newName)
	})
}

// pair looks up both names of an operation from s to another directory. The second
// inode is nil if nothing stands there.
func (s *simDir) pair(oldName string, to fsguard.Dir, newName string, refused error) (t *simDir, n, there *inode, err error) {
	for _, name := range []string{oldName, newName} {
		if err := fsguard.CheckName(name); err != nil {
			return nil, nil, nil, err
		}
	}
	t, ok := to.(*simDir)
	switch {
	case refused != nil:
		return nil, nil, nil, refused
	case !ok:
		return nil, nil, nil, fsguard.ErrForeign
	case t.p.d != s.p.d:
		return nil, nil, nil, syscall.EXDEV
	case t.closed:
		return nil, nil, nil, errClosed
	}
	if n, err = s.find(oldName); err == nil {
		there, err = t.look(newName)
	}
	return t, n, there, err
}

func (s *simDir) move(oldName string, to fsguard.Dir, newName string, fresh bool) error {
	var refused error
	if fresh {
		refused = s.p.d.conf.moveNewErr
	}
	t, n, there, err := s.pair(oldName, to, newName, refused)
	switch {
	case err != nil:
		return err
	case fresh && there != nil:
		return syscall.EEXIST
	case there.trail(s.n) != nil:
		return syscall.ENOTEMPTY // n itself is in there
	case n.mode.IsDir() && s.n != t.n:
		return syscall.EXDEV
	}
	return s.replace(oldName, t, newName, n, there)
}

// replace moves n over there, which may be nil, if the kernel would.
func (s *simDir) replace(oldName string, t *simDir, newName string, n, there *inode) error {
	for _, dir := range []*simDir{s, t} {
		if err := dir.changeable(); err != nil {
			return err
		}
	}
	switch {
	case t.n.links == 0:
		return syscall.ENOENT // the directory itself is gone
	case there == nil || there == n:
	case n.mode.IsDir() && !there.mode.IsDir():
		return syscall.ENOTDIR
	case !n.mode.IsDir() && there.mode.IsDir():
		return syscall.EISDIR
	case len(there.names) > 0:
		return syscall.ENOTEMPTY
	}
	s.p.d.move(s.n, oldName, t.n, newName, free)
	return nil
}

func (s *simDir) link(oldName string, to fsguard.Dir, newName string) error {
	t, n, there, err := s.pair(oldName, to, newName, s.p.d.conf.linkErr)
	switch {
	case err != nil:
		return err
	case there != nil:
		return syscall.EEXIST
	}
	if err := t.changeable(); err != nil {
		return err
	}
	switch {
	case t.n.links == 0:
		return syscall.ENOENT
	case n.mode.IsDir():
		return syscall.EPERM
	case s.p.d.conf.linksAreSymlinks:
		return s.imitate(oldName, n, t, newName)
	}
	s.p.d.attach(t.n, newName, n, fsguard.OpLink, free)
	return nil
}

// imitate is link(2) as proot does it where the kernel refuses it: the file goes to
// a hidden name, and both names become symlinks to that.
func (s *simDir) imitate(oldName string, n *inode, t *simDir, newName string) error {
	d := s.p.d
	target := n.target // of a name that has become a symlink before
	if n.mode&fs.ModeSymlink == 0 {
		hidden := ".l2s." + oldName
		for i := 2; s.n.names[hidden] != nil; i++ {
			hidden = fmt.Sprintf(".l2s.%s.%d", oldName, i)
		}
		if err := s.changeable(); err != nil {
			return err
		}
		target = path.Join(d.paths()[s.n], hidden)
		d.move(s.n, oldName, s.n, hidden, free)
		d.symlink(target, s.n, oldName, s.p.uid)
	}
	d.symlink(target, t.n, newName, s.p.uid)
	return nil
}

// symlink makes a symlink, as a process does.
func (d *Disk) symlink(target string, dir *inode, name string, uid uint32) {
	n := d.newInode(fs.ModeSymlink|0o777, uid)
	n.target = target
	d.attach(dir, name, n, opSymlink, free)
}
