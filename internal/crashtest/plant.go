//go:build unix

package crashtest

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// The methods here are the hand of a test: they reach past permissions, need no
// process, and what they do is durable at once. They panic when they are asked
// for the impossible, for that is a mistake in the test.

// MkdirAll makes the directory at p and those above it, mode 0700.
func (d *Disk) MkdirAll(p string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.root
	for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+p), "/"), "/") {
		if part == "" {
			continue
		}
		next := at.names[part]
		if next == nil {
			next = d.newInode(fs.ModeDir|0o700, d.conf.uid)
			d.attach(at, part, next, fsguard.OpMkdir, settled)
		}
		at = next
	}
}

// WriteRaw makes the file at p hold data, in place if there is one: corruption.
func (d *Disk) WriteRaw(p string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, name := d.parent(p)
	n := dir.names[name]
	if n == nil {
		n = d.newInode(0o600, d.conf.uid)
		d.attach(dir, name, n, fsguard.OpCreate, settled)
	}
	d.used += uint64(len(data)) - uint64(len(n.data))
	n.data = slices.Clone(data)
	n.settle()
	d.modify(n)
}

// Replace puts a new file with data at p, another inode than the one before.
func (d *Disk) Replace(p string, data []byte) {
	if !d.Exists(p) {
		d.WriteRaw(p, data)
		return
	}
	d.WriteRaw(p+".replace", data) // both exist for a moment, so that the numbers differ
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, name := d.parent(p)
	d.move(dir, name+".replace", dir, name, settled)
}

// ReadRaw returns what processes see in the file at p.
func (d *Disk) ReadRaw(p string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.at(p).data)
}

// Exists reports whether anything stands at p. A symlink at its end is not followed.
func (d *Disk) Exists(p string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, err := d.resolve(path.Dir(p), d.conf.uid, 0)
	return err == nil && dir.names[path.Base(p)] != nil
}

// Remove removes what stands at p, with all that is below it.
func (d *Disk) Remove(p string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, name := d.parent(p)
	d.removeAll(dir, name)
}

func (d *Disk) removeAll(dir *inode, name string) {
	n := dir.names[name]
	if n == nil {
		panic("crashtest: nothing at " + name)
	}
	for child := range n.names {
		d.removeAll(n, child)
	}
	d.detach(dir, name, fsguard.OpRemove, settled)
}

// Symlink makes a symbolic link at p.
func (d *Disk) Symlink(target, p string) { d.plant(p, fs.ModeSymlink|0o777).target = target }

// Fifo makes a FIFO at p.
func (d *Disk) Fifo(p string) { d.plant(p, fs.ModeNamedPipe|0o600) }

// HardLink gives the file at oldPath a second name.
func (d *Disk) HardLink(oldPath, newPath string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, name := d.parent(newPath)
	d.attach(dir, name, d.at(oldPath), fsguard.OpCreate, settled)
}

// Chmod sets the permission bits of what stands at p; Chown its owner.
func (d *Disk) Chmod(p string, perm fs.FileMode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.at(p)
	n.mode = n.mode.Type() | perm.Perm()
	d.touch(n)
}

func (d *Disk) Chown(p string, uid uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.at(p)
	n.uid = uid
	d.touch(n)
}

// SetMtime gives what stands at p another mtime, as utimes(2) does.
func (d *Disk) SetMtime(p string, nanos int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.at(p)
	d.touch(n)
	n.mtime = nanos
}

func (d *Disk) plant(p string, mode fs.FileMode) *inode {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, name := d.parent(p)
	if dir.names[name] != nil {
		panic(fmt.Sprintf("crashtest: %s: %v", p, syscall.EEXIST))
	}
	n := d.newInode(mode, d.conf.uid)
	d.attach(dir, name, n, fsguard.OpCreate, settled)
	return n
}

// parent finds the directory that p stands in.
func (d *Disk) parent(p string) (*inode, string) {
	dir := d.walk(path.Dir(p))
	if !dir.mode.IsDir() {
		panic("crashtest: no directory at " + path.Dir(p))
	}
	return dir, path.Base(p)
}

// at finds what stands at p.
func (d *Disk) at(p string) *inode {
	dir, name := d.parent(p)
	n := dir.names[name]
	if n == nil {
		panic("crashtest: nothing at " + p)
	}
	return n
}

// walk finds the directory at p by plain names, past all permissions.
func (d *Disk) walk(p string) *inode {
	at := d.root
	for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+p), "/"), "/") {
		if part == "" {
			continue
		}
		next := at.names[part]
		if next == nil {
			panic("crashtest: nothing at " + p)
		}
		at = next
	}
	return at
}
