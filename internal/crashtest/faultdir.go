//go:build unix

package crashtest

import (
	"path"

	"example.com/holdfast/internal/fsguard"
)

// A faultDir is a directory under a Wrapper.
type faultDir struct {
	*handle
	dir fsguard.Dir
}

var _ fsguard.Dir = (*faultDir)(nil)

// openDir passes on an operation that opens a directory, to be known as at.
func (w *Wrapper) openDir(c call, at string, open func() (fsguard.Dir, error)) (fsguard.Dir, error) {
	var dir fsguard.Dir
	c.do = func() (err error) {
		dir, err = open()
		return err
	}
	c.undo = func() { _ = dir.Close() }
	if err := w.run(c); err != nil {
		return nil, err
	}
	return &faultDir{w.handle(dir, at), dir}, nil
}

// openFile is openDir for a file in d.
func (d *faultDir) openFile(op fsguard.Op, name string, open func(string) (fsguard.File, error)) (fsguard.File, error) {
	var file fsguard.File
	c := d.call(op, name, func() (err error) {
		file, err = open(name)
		return err
	})
	c.undo = func() { _ = file.Close() }
	if err := d.w.run(c); err != nil {
		return nil, err
	}
	return &faultFile{d.w.handle(file, c.path), file}, nil
}

func (d *faultDir) Lstat(name string) (info fsguard.Info, err error) {
	err = d.at(fsguard.OpLstat, name, func() (err error) {
		info, err = d.dir.Lstat(name)
		return err
	})
	return info, err
}

func (d *faultDir) ReadDir() (names []string, err error) {
	err = d.run(fsguard.OpReadDir, func() (err error) {
		names, err = d.dir.ReadDir()
		return err
	})
	if err != nil {
		names = nil
	}
	return names, err
}

func (d *faultDir) OpenDir(name string) (fsguard.Dir, error) {
	c := d.call(fsguard.OpOpenDir, name, nil)
	return d.w.openDir(c, c.path, func() (fsguard.Dir, error) { return d.dir.OpenDir(name) })
}

func (d *faultDir) Mkdir(name string) error {
	return d.at(fsguard.OpMkdir, name, func() error { return d.dir.Mkdir(name) })
}

func (d *faultDir) Create(name string) (fsguard.File, error) {
	return d.openFile(fsguard.OpCreate, name, d.dir.Create)
}

func (d *faultDir) Open(name string) (fsguard.File, error) {
	return d.openFile(fsguard.OpOpen, name, d.dir.Open)
}

func (d *faultDir) OpenWrite(name string) (fsguard.File, error) {
	return d.openFile(fsguard.OpOpen, name, d.dir.OpenWrite)
}

func (d *faultDir) WriteFile(name string, data []byte) error {
	return d.at(fsguard.OpWriteFile, name, func() error {
		if d.w.spells() {
			return writeFile(d, name, data)
		}
		return d.dir.WriteFile(name, data)
	})
}

func (w *Wrapper) spells() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plan.Spell
}

func (d *faultDir) Rename(oldName, newName string) error {
	c := d.call(fsguard.OpRename, newName, func() error { return d.dir.Rename(oldName, newName) })
	c.name, c.from = oldName+" to "+newName, path.Join(d.path, oldName)
	return d.w.run(c)
}

func (d *faultDir) Move(oldName string, to fsguard.Dir, newName string) error {
	return d.between(fsguard.OpMove, oldName, to, newName, d.dir.Move)
}

func (d *faultDir) MoveNew(oldName string, to fsguard.Dir, newName string) error {
	return d.between(fsguard.OpMoveNew, oldName, to, newName, d.dir.MoveNew)
}

// Exchange answers what a plan has it fail with as the kernel's answer comes back.
func (d *faultDir) Exchange(a, b string) error {
	c := d.call(fsguard.OpExchange, b, func() error { return d.dir.Exchange(a, b) })
	c.name, c.from = a+" with "+b, path.Join(d.path, a)
	return d.w.run(c)
}

func (d *faultDir) Link(oldName string, to fsguard.Dir, newName string) error {
	return d.between(fsguard.OpLink, oldName, to, newName, d.dir.Link)
}

// between passes on an operation from d to another directory, which the inner
// filesystem must know without its wrapper.
func (d *faultDir) between(op fsguard.Op, oldName string, to fsguard.Dir, newName string,
	do func(string, fsguard.Dir, string) error) error {
	c := d.call(op, newName, nil)
	if t, ok := to.(*faultDir); ok {
		to, c.also, c.path = t.dir, t.handle, path.Join(t.path, newName)
	}
	c.do = func() error { return do(oldName, to, newName) }
	c.name, c.from = oldName+" to "+newName, path.Join(d.path, oldName)
	return d.w.run(c)
}

func (d *faultDir) Remove(name string) error {
	return d.at(fsguard.OpRemove, name, func() error { return d.dir.Remove(name) })
}

func (d *faultDir) RemoveDir(name string) error {
	return d.at(fsguard.OpRemoveDir, name, func() error { return d.dir.RemoveDir(name) })
}

func (d *faultDir) Sync() error { return d.syncIn(0) }

func (d *faultDir) syncIn(group int) error {
	c := d.call(fsguard.OpSyncDir, ".", d.dir.Sync)
	c.name, c.group = d.Name(), group
	return d.w.run(c)
}

func (d *faultDir) Space() (space fsguard.Space, err error) {
	err = d.run(fsguard.OpSpace, func() (err error) {
		space, err = d.dir.Space()
		return err
	})
	return space, err
}
