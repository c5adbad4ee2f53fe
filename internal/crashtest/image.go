//go:build unix

package crashtest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"example.com/holdfast/internal/fsguard"
)

// A loss is the choice of each uncertain inode, by birth. An inode that it does
// not name loses all that is not durable.
type loss map[uint64]string

// String is the description of an image: "4:011,7:h12", or "-" when nothing was
// uncertain.
func (l loss) String() string {
	var parts []string
	for _, birth := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, fmt.Sprintf("%d:%s", birth, l[birth]))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ",")
}

func parseLoss(desc string) (loss, error) {
	l := loss{}
	if desc == "-" {
		return l, nil
	}
	for part := range strings.SplitSeq(desc, ",") {
		left, choice, ok := strings.Cut(part, ":")
		birth, err := strconv.ParseUint(left, 10, 64)
		if err != nil || !ok || choice == "" {
			return nil, fmt.Errorf("crashtest: bad image description %q", desc)
		}
		l[birth] = choice
	}
	return l, nil
}

// Desc is the description of an image that [Disk.Image] takes; "" for a disk that
// is none.
func (d *Disk) Desc() string { return d.desc }

// Story tells in words what the image lost and what survived, line by line.
func (d *Disk) Story() string {
	if d.story == nil {
		return ""
	}
	return d.story()
}

// Image makes the image that desc describes, of the disk as it is now.
func (d *Disk) Image(desc string) (*Disk, error) {
	l, err := parseLoss(desc)
	if err != nil {
		return nil, err
	}
	return d.Clone().after(l), nil
}

// Clone copies the disk, with what is not durable, without processes.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copy(func(n *inode) (map[string]*inode, []byte) { return n.names, n.data }, true)
}

// after is the disk that a power loss leaves. d must be a clone that nobody else
// uses.
func (d *Disk) after(l loss) *Disk {
	void := d.void(l)
	img := d.copy(func(n *inode) (map[string]*inode, []byte) {
		return n.namesUnder(l[n.birth], void), n.contentUnder(l[n.birth])
	}, false)
	img.desc, img.story = l.String(), func() string { return d.tell(l) }
	return img
}

// copy makes a disk in which each inode has the names and the content that see
// returns, and with unsettled also what is not durable.
func (d *Disk) copy(see func(*inode) (map[string]*inode, []byte), unsettled bool) *Disk {
	out := blank(d.conf)
	out.births, out.clock, out.desc, out.story = d.births, d.clock, d.desc, d.story
	made, ops := map[*inode]*inode{}, map[*nameOp]*nameOp{}
	var twin func(n *inode) *inode
	twins := func(names map[string]*inode) map[string]*inode {
		if names == nil {
			return nil
		}
		m := make(map[string]*inode, len(names))
		for name, n := range names {
			m[name] = twin(n)
		}
		return m
	}
	twin = func(n *inode) *inode {
		if t := made[n]; t != nil {
			return t
		}
		t := &inode{
			birth: n.birth, num: n.num, mode: n.mode, uid: n.uid, ctime: n.ctime, mtime: n.mtime, target: n.target,
		}
		made[n] = t
		names, data := see(n)
		t.names, t.data = twins(names), data
		if unsettled {
			t.base, t.writes = n.base, slices.Clone(n.writes)
			t.ground = twins(n.ground)
			for _, o := range n.ops {
				c := *o
				c.node, ops[o] = twin(o.node), &c
				if o.other != nil {
					c.other = twin(o.other)
				}
				t.ops = append(t.ops, &c)
			}
		} else {
			t.settle()
		}
		return t
	}
	out.root = twin(d.root)
	for _, o := range ops {
		o.rests, o.under = copied(o.rests, ops), copied(o.under, ops)
		if len(o.rests)+len(o.under) > 0 {
			out.linked = []*inode{}
		}
	}
	if out.linked != nil {
		out.linked = slices.DeleteFunc(out.reachable(), func(n *inode) bool { return len(n.ops) == 0 })
	}
	out.adopt(made)
	return out
}

// copied is the copies of the operations that may not be in effect. One that has
// none was in a directory that is durably gone.
func copied(list []*nameOp, ops map[*nameOp]*nameOp) (out []*nameOp) {
	for _, o := range list {
		if c := ops[o]; c != nil && !o.durable() {
			out = append(out, c)
		}
	}
	return out
}

// adopt counts links and bytes and gives numbers, the newest inode first: of two
// with one number the older gets another.
func (d *Disk) adopt(made map[*inode]*inode) {
	d.root.links = 1
	for _, n := range made {
		for _, child := range n.names {
			child.links++
		}
	}
	nodes := slices.SortedFunc(maps.Values(made), func(a, b *inode) int { return int(b.birth) - int(a.birth) })
	var late []*inode
	for _, n := range nodes {
		n.locks = map[*desc]fsguard.LockMode{}
		if n.links == 0 {
			continue // only un-synced operations know it
		}
		d.used += uint64(len(n.data))
		if d.numbers[n.num] {
			late = append(late, n)
		}
		d.numbers[n.num] = true
	}
	for _, n := range late {
		n.num = d.freeNumber()
		d.numbers[n.num] = true
	}
}

// reachable lists the inodes that any image may show or any process sees by name,
// parents first.
func (d *Disk) reachable() []*inode {
	list, seen := []*inode{d.root}, map[*inode]bool{d.root: true}
	add := func(n *inode) {
		if !seen[n] {
			seen[n], list = true, append(list, n)
		}
	}
	for i := 0; i < len(list); i++ {
		n := list[i]
		for _, names := range []map[string]*inode{n.names, n.ground} {
			for _, name := range slices.Sorted(maps.Keys(names)) {
				add(names[name])
			}
		}
		for _, o := range n.ops {
			if add(o.node); o.other != nil {
				add(o.other)
			}
		}
	}
	return list
}

// tell words a loss.
func (d *Disk) tell(l loss) string {
	var b strings.Builder
	paths, void := d.paths(), d.void(l)
	for _, n := range d.reachable() {
		choice, ok := l[n.birth]
		if !n.mode.IsDir() {
			if ok {
				fmt.Fprintf(&b, "content of %s: %s\n", paths[n], tellContent(choice, n))
			}
			continue
		}
		for o, survives := range n.fates(choice) {
			word := "lost:    "
			switch {
			case o.fate == settled && !void[o], o.fate != settled && !ok:
				continue
			case o.fate == settled:
				word = "undone:  " // synced, but it rests on what is lost
			case survives && !void[o]:
				word = "survived:"
			}
			fmt.Fprintf(&b, "%s %s in %s\n", word, o, paths[n])
		}
	}
	return b.String()
}

func tellContent(choice string, n *inode) string {
	switch {
	case choice == "l":
		return "as last synced"
	case choice == "f":
		return "new"
	case choice == "z":
		return "new length, zeros where it grew"
	case choice[0] == 'm':
		return fmt.Sprintf("mixed, the new pieces being %s", choice[1:])
	case choice[0] == 'h':
		return fmt.Sprintf("torn, only the first %s of %d new bytes", choice[1:], n.unsynced())
	}
	return fmt.Sprintf("torn, all but the first %s of %d new bytes", choice[1:], n.unsynced())
}

// paths names every reachable inode by one path that it has or had.
func (d *Disk) paths() map[*inode]string {
	out := map[*inode]string{d.root: "/"}
	for _, n := range d.reachable() {
		give := func(name string, child *inode) {
			if _, ok := out[child]; !ok {
				out[child] = path.Join(out[n], name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(n.names)) {
			give(name, n.names[name])
		}
		for _, name := range slices.Sorted(maps.Keys(n.ground)) {
			give(name, n.ground[name])
		}
		for _, o := range n.ops {
			give(o.name, o.node)
		}
	}
	return out
}
