//go:build unix

package crashtest

import (
	"io/fs"
	"math"
	"os"
	"sync"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// device is the device number of every simulated disk: a disk keeps its own
// through a crash.
const device = 0x5d

// rootNumber is the inode number of the root directory.
const rootNumber = 2

// A Disk is a filesystem in memory that knows what is durable. All of its methods
// may be called concurrently, as may those of its processes.
type Disk struct {
	mu   sync.Mutex
	wake *sync.Cond // a lock was released or a process killed

	root    *inode
	births  uint64
	numbers map[uint64]bool // inode numbers in use
	clock   int64           // ctime: one step per change
	used    uint64          // bytes of all files
	procs   map[*Process]bool
	waiting int // calls of Lock
	conf    conf

	linked []*inode // of a clone: all directories with operations, if any rests on another

	desc  string
	story func() string // both of an image
}

// conf is how the disk behaves; images and clones keep it.
type conf struct {
	space     fsguard.Space // Free is not used
	capacity  uint64
	readOnly  bool
	lockErr   error
	dirErr    error // of every directory sync
	sizeLies  bool
	forgiving bool
	uid       uint32
	now       int64 // the wall clock

	linkErr, moveNewErr, exchangeErr error
	linksAreSymlinks                 bool
}

// NewDisk returns an empty disk with much free space. Its root directory and the
// processes on it belong to the caller's user.
func NewDisk() *Disk {
	uid := uint32(os.Geteuid())
	// It says that it is one of the filesystems whose model it is.
	d := blank(conf{space: fsguard.Space{Type: "ext4"}, capacity: math.MaxInt64, uid: uid})
	d.root = d.newInode(fs.ModeDir|0o700, uid)
	d.root.links = 1
	return d
}

func blank(c conf) *Disk {
	d := &Disk{numbers: map[uint64]bool{}, procs: map[*Process]bool{}, conf: c}
	d.wake = sync.NewCond(&d.mu)
	return d
}

// newInode makes an inode that no name shows yet. Callers hold d.mu.
func (d *Disk) newInode(mode fs.FileMode, uid uint32) *inode {
	d.births++
	n := &inode{birth: d.births, num: d.freeNumber(), mode: mode, uid: uid, locks: map[*desc]fsguard.LockMode{}}
	d.numbers[n.num] = true
	if mode.IsDir() {
		n.names, n.ground = map[string]*inode{}, map[string]*inode{}
	}
	d.modify(n)
	return n
}

func (d *Disk) freeNumber() uint64 {
	num := uint64(rootNumber)
	for d.numbers[num] {
		num++
	}
	return num
}

// touch gives n a new ctime.
func (d *Disk) touch(n *inode) {
	d.clock++
	n.ctime = d.clock
}

// modify gives n a new ctime, and an mtime of now: its content has changed, or its
// names if it is a directory.
func (d *Disk) modify(n *inode) {
	d.touch(n)
	n.mtime = d.conf.now
}

// release frees n's number and bytes once no name and no descriptor holds it.
func (d *Disk) release(n *inode) {
	if n.links == 0 && n.opens == 0 && d.numbers[n.num] {
		delete(d.numbers, n.num)
		d.used -= uint64(len(n.data))
	}
}

func (d *Disk) freeBytes() uint64 {
	if d.used >= d.conf.capacity {
		return 0
	}
	return d.conf.capacity - d.used
}

// attach names n in dir. The kind is what the operation is remembered as.
func (d *Disk) attach(dir *inode, name string, n *inode, kind fsguard.Op, f fate) {
	n.links++
	dir.change(&nameOp{kind: kind, name: name, node: n, fate: f})
	d.touch(n)
	d.modify(dir)
}

// detach removes a name from dir.
func (d *Disk) detach(dir *inode, name string, kind fsguard.Op, f fate) {
	n := dir.names[name]
	n.links--
	o := &nameOp{kind: kind, name: name, node: n, fate: f}
	dir.change(o.emptied(n, name))
	d.touch(n)
	d.modify(dir)
	d.release(n)
}

// move renames, within one directory or to another, and releases what it replaced.
func (d *Disk) move(dir *inode, from string, toDir *inode, to string, f fate) {
	n, replaced := dir.names[from], toDir.names[to]
	if n == replaced {
		return // as rename(2): two links of one file, nothing happens
	}
	if replaced != nil {
		replaced.links--
		d.touch(replaced)
	}
	if dir == toDir {
		o := &nameOp{kind: fsguard.OpRename, name: from, to: to, node: n, fate: f}
		dir.change(o.emptied(replaced, to))
	} else {
		arrive := &nameOp{kind: opArrive, name: to, node: n, fate: f}
		path := d.pathTo(toDir)
		toDir.change(arrive)
		dir.change(&nameOp{
			kind: opLeave, name: from, node: n, fate: f,
			rests: []*nameOp{arrive}, under: path, guard: from,
		})
		d.modify(toDir)
	}
	d.touch(n)
	d.modify(dir)
	if replaced != nil {
		d.release(replaced)
	}
}

// exchange swaps two names of one directory: one operation on both.
func (d *Disk) exchange(dir *inode, a, b string, f fate) {
	n, other := dir.names[a], dir.names[b]
	if n == other {
		return // as renameat2(2): two links of one file, nothing happens
	}
	dir.change(&nameOp{kind: fsguard.OpExchange, name: a, to: b, node: n, other: other, fate: f})
	d.touch(n)
	d.touch(other)
	d.modify(dir)
}

// grow writes data at off, as much as there is room for, and returns how much
// that was.
func (d *Disk) grow(n *inode, off int, data []byte, f fate) (int, error) {
	more := off + len(data) - len(n.data)
	if more > 0 && uint64(more) > d.freeBytes() {
		room := len(n.data) + int(d.freeBytes()) - off
		if room <= 0 {
			return 0, syscall.ENOSPC
		}
		written, _ := d.grow(n, off, data[:room], f)
		return written, syscall.ENOSPC
	}
	if len(data) == 0 {
		return 0, nil
	}
	d.used += uint64(max(more, 0))
	n.put(off, data, f)
	d.modify(n)
	return len(data), nil
}

// Settle is a clean shutdown: every process ends and all that is visible becomes
// durable.
func (d *Disk) Settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.procs {
		p.kill()
	}
	for _, n := range d.reachable() {
		n.settle()
	}
}
