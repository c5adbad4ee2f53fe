//go:build unix

package crashtest

import (
	"os"
	"path"

	"example.com/holdfast/internal/fsguard"
)

// A gateFS is a simulated process whose operations pass the scheduler, one by one.
type gateFS struct {
	c *Client
	p *Process
}

var _ fsguard.FS = (*gateFS)(nil)

func (g *gateFS) OpenRoot(name string) (dir fsguard.Dir, err error) {
	err = g.c.pass(fsguard.OpOpenRoot, name, nil, func() (err error) {
		dir, err = g.c.dir(g.p.OpenRoot(name))
		return err
	})
	return dir, err
}

func (g *gateFS) Stat(name string) (info fsguard.Info, err error) {
	err = g.c.pass(fsguard.OpStat, name, nil, func() (err error) {
		info, err = g.p.Stat(name)
		return err
	})
	return info, err
}

// SyncAll syncs one after the other: each passes the scheduler by itself.
func (g *gateFS) SyncAll(targets ...fsguard.Syncer) error { return g.p.SyncAll(targets...) }

func (g *gateFS) Watch(dir, name string) (watch fsguard.Watch, err error) {
	err = g.c.pass(fsguard.OpWatch, path.Join(dir, name), nil, func() (err error) {
		watch, err = g.p.Watch(dir, name)
		return err
	})
	return watch, err
}

// A gate is an open description of a client.
type gate struct {
	description
	c *Client
	d *desc
}

func (g *gate) do(op fsguard.Op, do func() error) error { return g.c.pass(op, g.d.name, nil, do) }

func (g *gate) Info() (info fsguard.Info, err error) {
	err = g.do(fsguard.OpInfo, func() (err error) {
		info, err = g.description.Info()
		return err
	})
	return info, err
}

// Lock waits before the gate: whoever is let through obtains it, so that among those
// who wait the scheduler chooses.
func (g *gate) Lock(mode fsguard.LockMode) (err error) {
	for held := false; !held && err == nil; {
		err = g.c.pass(fsguard.OpLock, g.d.name, func() bool { return g.d.obtainable(mode) }, func() (err error) {
			held, err = g.description.TryLock(mode)
			return err
		})
	}
	return err
}

// obtainable reports whether Lock would not wait, or would give up another lock first.
func (s *desc) obtainable(mode fsguard.LockMode) bool {
	s.p.d.mu.Lock()
	defer s.p.d.mu.Unlock()
	if _, held := s.n.locks[s]; held || s.closed || s.p.dead || s.p.d.conf.lockErr != nil {
		return true
	}
	for _, other := range s.n.locks {
		if mode == fsguard.Exclusive || other == fsguard.Exclusive {
			return false
		}
	}
	return true
}

func (g *gate) TryLock(mode fsguard.LockMode) (ok bool, err error) {
	err = g.do(fsguard.OpLock, func() (err error) {
		ok, err = g.description.TryLock(mode)
		return err
	})
	return ok, err
}

func (g *gate) Unlock() error { return g.do(fsguard.OpUnlock, g.description.Unlock) }
func (g *gate) Close() error  { return g.do(fsguard.OpClose, g.description.Close) }

// A gateDir is a directory of a client.
type gateDir struct {
	gate
	s *simDir
}

var _ fsguard.Dir = (*gateDir)(nil)

func (c *Client) dir(d fsguard.Dir, err error) (fsguard.Dir, error) {
	if err != nil {
		return nil, err
	}
	s := d.(*simDir)
	return &gateDir{gate{s, c, s.desc}, s}, nil
}

// at passes on an operation on a name in g.
func (g *gateDir) at(op fsguard.Op, name string, do func() error) error {
	return g.c.pass(op, path.Join(g.d.name, name), nil, do)
}

func (g *gateDir) Lstat(name string) (info fsguard.Info, err error) {
	err = g.at(fsguard.OpLstat, name, func() (err error) {
		info, err = g.s.Lstat(name)
		return err
	})
	return info, err
}

func (g *gateDir) ReadDir() (names []string, err error) {
	err = g.do(fsguard.OpReadDir, func() (err error) {
		names, err = g.s.ReadDir()
		return err
	})
	return names, err
}

func (g *gateDir) OpenDir(name string) (dir fsguard.Dir, err error) {
	err = g.at(fsguard.OpOpenDir, name, func() (err error) {
		dir, err = g.c.dir(g.s.OpenDir(name))
		return err
	})
	return dir, err
}

func (g *gateDir) Mkdir(name string) error {
	return g.at(fsguard.OpMkdir, name, func() error { return g.s.Mkdir(name) })
}

func (g *gateDir) open(op fsguard.Op, name string, open func(string) (fsguard.File, error)) (file fsguard.File, err error) {
	err = g.at(op, name, func() error {
		f, err := open(name)
		if err != nil {
			return err
		}
		s := f.(*simFile)
		file = &gateFile{gate{s, g.c, s.desc}, s}
		return nil
	})
	return file, err
}

func (g *gateDir) Create(name string) (fsguard.File, error) {
	return g.open(fsguard.OpCreate, name, g.s.Create)
}

func (g *gateDir) Open(name string) (fsguard.File, error) {
	return g.open(fsguard.OpOpen, name, g.s.Open)
}

func (g *gateDir) OpenWrite(name string) (fsguard.File, error) {
	return g.open(fsguard.OpOpen, name, g.s.OpenWrite)
}

func (g *gateDir) WriteFile(name string, data []byte) error { return writeFile(g, name, data) }

func (g *gateDir) Rename(oldName, newName string) error {
	return g.at(fsguard.OpRename, newName, func() error { return g.s.Rename(oldName, newName) })
}

func (g *gateDir) Move(oldName string, to fsguard.Dir, newName string) error {
	return g.between(fsguard.OpMove, oldName, to, newName, g.s.Move)
}

func (g *gateDir) MoveNew(oldName string, to fsguard.Dir, newName string) error {
	return g.between(fsguard.OpMoveNew, oldName, to, newName, g.s.MoveNew)
}

func (g *gateDir) Exchange(a, b string) error {
	return g.at(fsguard.OpExchange, b, func() error { return g.s.Exchange(a, b) })
}

func (g *gateDir) Link(oldName string, to fsguard.Dir, newName string) error {
	return g.between(fsguard.OpLink, oldName, to, newName, g.s.Link)
}

func (g *gateDir) between(op fsguard.Op, oldName string, to fsguard.Dir, newName string,
	do func(string, fsguard.Dir, string) error) error {
	if t, ok := to.(*gateDir); ok {
		to = t.s
	}
	return g.at(op, newName, func() error { return do(oldName, to, newName) })
}

func (g *gateDir) Remove(name string) error {
	return g.at(fsguard.OpRemove, name, func() error { return g.s.Remove(name) })
}

func (g *gateDir) RemoveDir(name string) error {
	return g.at(fsguard.OpRemoveDir, name, func() error { return g.s.RemoveDir(name) })
}

func (g *gateDir) Sync() error { return g.do(fsguard.OpSyncDir, g.s.Sync) }

func (g *gateDir) Space() (space fsguard.Space, err error) {
	err = g.do(fsguard.OpSpace, func() (err error) {
		space, err = g.s.Space()
		return err
	})
	return space, err
}

// A gateFile is a file of a client.
type gateFile struct {
	gate
	s *simFile
}

var _ fsguard.File = (*gateFile)(nil)

// ReadAt gives the end of the file as it is: it is no error of the operation.
func (g *gateFile) ReadAt(p []byte, off int64) (n int, err error) {
	passed := g.do(fsguard.OpRead, func() error {
		n, err = g.s.ReadAt(p, off)
		return nil
	})
	if passed != nil {
		return 0, passed
	}
	return n, err
}

func (g *gateFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = g.do(fsguard.OpWrite, func() (err error) {
		n, err = g.s.WriteAt(p, off)
		return err
	})
	return n, err
}

func (g *gateFile) Allocate(size int64) error {
	return g.do(fsguard.OpAllocate, func() error { return g.s.Allocate(size) })
}

func (g *gateFile) Sync() error { return g.do(fsguard.OpSync, g.s.Sync) }

func (g *gateFile) SyncData() error { return g.do(fsguard.OpSyncData, g.s.SyncData) }

func (g *gateFile) Dup() (dup *os.File, err error) {
	err = g.do(fsguard.OpDup, func() (err error) {
		dup, err = g.s.Dup()
		return err
	})
	return dup, err
}
