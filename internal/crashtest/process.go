//go:build unix

package crashtest

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// ErrKilled is what every call of a killed process gets, and a Lock that waited in
// it.
var ErrKilled = errors.New("the process was killed")

// A Process is one process on a simulated disk: an fsguard.FS with descriptors
// and flocks of its own.
type Process struct {
	d    *Disk
	uid  uint32
	dead bool
	open map[*desc]bool
}

var _ fsguard.FS = (*Process)(nil)

// Process starts a process of the user that the disk belongs to.
func (d *Disk) Process() *Process { return d.ProcessOf(d.conf.uid) }

// ProcessOf starts a process of another user.
func (d *Disk) ProcessOf(uid uint32) *Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &Process{d: d, uid: uid, open: map[*desc]bool{}}
	d.procs[p] = true
	return p
}

// Kill is SIGKILL: the descriptors are closed, the locks released, and every call
// from now on, or waiting in Lock, gets ErrKilled. What was written stays visible.
func (p *Process) Kill() {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.kill()
}

func (p *Process) kill() {
	p.dead = true
	for s := range p.open {
		s.shut()
	}
	delete(p.d.procs, p)
	p.d.wake.Broadcast()
}

// Open counts the descriptors that the process holds.
func (p *Process) Open() int {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	return len(p.open)
}

// do runs body under the disk's lock, if the process lives, and names its error.
func (p *Process) do(op fsguard.Op, name string, body func() error) error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	err := ErrKilled
	if !p.dead {
		err = body()
	}
	if err != nil {
		return &fsguard.Error{Op: op, Name: name, Err: err}
	}
	return nil
}

// OpenRoot implements fsguard.FS. A path is taken from the disk's root.
func (p *Process) OpenRoot(path string) (fsguard.Dir, error) {
	var dir *simDir
	err := p.do(fsguard.OpOpenRoot, path, func() error {
		n, err := p.d.resolve(path, p.uid, 0)
		if err != nil {
			return err
		}
		if !n.mode.IsDir() {
			return fsguard.ErrNotPlain
		}
		if !n.allowed(p.uid, 4) {
			return syscall.EACCES
		}
		dir = &simDir{p.describe(n, path, false)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return dir, nil
}

// Stat implements fsguard.FS.
func (p *Process) Stat(path string) (info fsguard.Info, err error) {
	err = p.do(fsguard.OpStat, path, func() error {
		n, err := p.d.resolve(path, p.uid, 0)
		if err != nil {
			return err
		}
		info = n.info(p.d.conf.sizeLies)
		return nil
	})
	return info, err
}

// SyncAll syncs the targets one after the other, in their order, so that a run is
// the same every time. That one was synced before another proves nothing: until
// its turn, each is free to survive.
func (p *Process) SyncAll(targets ...fsguard.Syncer) error {
	var errs []error
	for _, t := range targets {
		errs = append(errs, t.Sync())
	}
	return errors.Join(errs...)
}

// Watch answers that this disk sends no events. Whoever must not depend on them has
// a poll.
func (p *Process) Watch(dir, name string) (fsguard.Watch, error) {
	return nil, p.do(fsguard.OpWatch, dir, func() error { return errors.ErrUnsupported })
}

// resolve follows path from the root, symlinks included.
func (d *Disk) resolve(path string, uid uint32, depth int) (*inode, error) {
	if depth > 40 {
		return nil, syscall.ELOOP
	}
	if path == "" {
		return nil, syscall.ENOENT
	}
	at, above := d.root, []*inode(nil)
	parts := strings.Split(path, "/")
	for i, part := range parts {
		switch {
		case part == "" || part == ".":
			continue
		case !at.mode.IsDir():
			return nil, syscall.ENOTDIR
		case !at.allowed(uid, 1):
			return nil, syscall.EACCES
		case part == "..":
			if len(above) > 0 {
				at, above = above[len(above)-1], above[:len(above)-1]
			}
			continue
		}
		next := at.names[part]
		if next == nil {
			return nil, syscall.ENOENT
		}
		if next.mode&fs.ModeSymlink != 0 {
			target := next.target
			if !strings.HasPrefix(target, "/") {
				target = strings.Join(parts[:i], "/") + "/" + target
			}
			return d.resolve(target+"/"+strings.Join(parts[i+1:], "/"), uid, depth+1)
		}
		at, above = next, append(above, at)
	}
	return at, nil
}
