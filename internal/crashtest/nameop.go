//go:build unix

package crashtest

import (
	"iter"
	"slices"

	"example.com/holdfast/internal/fsguard"
)

// A nameOp is one change of a directory's names. A move to another directory is two
// of them, an opArrive there and an opLeave here.
//
// Most operations survive or not whatever becomes of the others. One that rests on
// others is in effect only where they are. That is how a file that moves keeps a
// name in every image:
//
//   - an opLeave rests on its opArrive, and on what gave the target directory its
//     path;
//   - the removal of a directory rests on every opLeave in it: if a file is not yet
//     where it moved to, it is still in the directory, which comes back;
//   - whatever is done later to the name that an opLeave or such a removal freed
//     rests on that, or it would take the place of what may come back there.
//
// Choices stay one digit per operation: those that are not in effect are found when
// the image is made, see [Disk.void], for no order of the directories lets each be
// chosen knowing all it rests on.
//
// An operation rests on earlier ones only, so nothing rests on itself.
type nameOp struct {
	kind fsguard.Op
	name string
	to   string   // the new name, of a rename; the second one of an exchange
	node *inode   // the inode that is named, moved or removed; of an exchange, that goes to to
	keep []string // every name that node had in this directory just after
	fate fate

	other *inode   // of an exchange, the one that goes from to to name
	stays []string // what keep is of node

	// What it rests on. A sync that makes it durable does the same for rests, for it is
	// the same journal, but not for under, which gave the target directory its path:
	// that would hide that nobody synced the directory above.
	rests, under []*nameOp

	guard string // what is done later to this name rests on this operation
}

// The kinds that fsguard has no Op for. A symlink is made where links are imitated.
const (
	opArrive  fsguard.Op = "move to"
	opLeave   fsguard.Op = "move from"
	opSymlink fsguard.Op = "symlink"
)

func (o *nameOp) String() string {
	switch o.kind {
	case fsguard.OpRename:
		return "rename " + o.name + " to " + o.to
	case fsguard.OpExchange:
		return "exchange " + o.name + " with " + o.to
	}
	return string(o.kind) + " " + o.name
}

// apply does o to names, which may lack what earlier operations did.
func (o *nameOp) apply(names map[string]*inode) {
	switch o.kind {
	case fsguard.OpRemove, fsguard.OpRemoveDir:
		delete(names, o.name)
	case fsguard.OpRename, opLeave:
		delete(names, o.name)
		if o.kind == fsguard.OpRename {
			names[o.to] = o.node
		}
		strip(names, o.node, o.keep)
	case fsguard.OpExchange:
		names[o.name], names[o.to] = o.other, o.node
		strip(names, o.node, o.keep)
		strip(names, o.other, o.stays)
	default:
		names[o.name] = o.node
	}
}

// strip takes from n the names that an earlier, partly lost chain of operations gave it.
func strip(names map[string]*inode, n *inode, keep []string) {
	for name, node := range names {
		if node == n && !slices.Contains(keep, name) {
			delete(names, name)
		}
	}
}

// settle makes o durable, with what it rests on.
func (o *nameOp) settle() {
	if o.fate == settled {
		return
	}
	o.fate = settled
	for _, r := range o.rests {
		r.settle()
	}
}

// durable reports whether o is in effect in every image. One that was synced is not
// as long as the path to its target is not.
func (o *nameOp) durable() bool {
	unsure := func(r *nameOp) bool { return !r.durable() }
	return o.fate == settled && !slices.ContainsFunc(o.rests, unsure) && !slices.ContainsFunc(o.under, unsure)
}

// change makes a change of names visible, and durable at once if its fate is
// settled. The caller keeps the link counts.
func (n *inode) change(o *nameOp) {
	if o.kind == fsguard.OpRename || o.kind == opLeave {
		if o.kind == fsguard.OpRename {
			o.keep = []string{o.to}
		}
		for name, node := range n.names {
			if node == o.node && name != o.name {
				o.keep = append(o.keep, name)
			}
		}
	}
	if o.kind == fsguard.OpExchange {
		o.keep, o.stays = []string{o.to}, []string{o.name}
		for name, node := range n.names {
			switch {
			case name == o.name || name == o.to:
			case node == o.node:
				o.keep = append(o.keep, name)
			case node == o.other:
				o.stays = append(o.stays, name)
			}
		}
	}
	o.rests = append(o.rests, n.guards(o.name, o.to)...)
	if o.fate == settled {
		o.fate = free
		o.settle()
	}
	o.apply(n.names)
	n.ops = append(n.ops, o)
	n.fold()
}

// guards lists the operations in n that guard one of the names, all that guard any
// if none is given, and may not be in effect.
func (n *inode) guards(names ...string) (list []*nameOp) {
	for _, o := range n.ops {
		if o.guard != "" && (len(names) == 0 || slices.Contains(names, o.guard)) && !o.durable() {
			list = append(list, o)
		}
	}
	return list
}

// emptied readies o, which removes or replaces what stands at name in its directory.
func (o *nameOp) emptied(gone *inode, name string) *nameOp {
	if gone != nil {
		if rests := gone.guards(); len(rests) > 0 {
			o.rests, o.guard = append(o.rests, rests...), name
		}
	}
	return o
}

// pathTo lists the operations that gave dir its path and may not be in effect.
func (d *Disk) pathTo(dir *inode) (list []*nameOp) {
	trail := d.root.trail(dir)
	for i, n := range trail[:max(len(trail)-1, 0)] {
		for _, o := range n.ops {
			if (o.node == trail[i+1] || o.other == trail[i+1]) && !o.durable() {
				list = append(list, o)
			}
		}
	}
	return list
}

// trail lists the directories from n down to dir, none if dir is not below n.
func (n *inode) trail(dir *inode) []*inode {
	switch {
	case n == nil:
		return nil
	case n == dir:
		return []*inode{n}
	}
	for _, child := range n.names {
		if below := child.trail(dir); below != nil {
			return append([]*inode{n}, below...)
		}
	}
	return nil
}

// fates goes through the operations of n and tells of each whether it survives under
// a choice, taken alone.
func (n *inode) fates(choice string) iter.Seq2[*nameOp, bool] {
	return func(yield func(*nameOp, bool) bool) {
		for _, o := range n.ops {
			survives := o.fate == settled
			if !survives && choice != "" {
				survives, choice = choice[0] == '1', choice[1:]
			}
			if !yield(o, survives) {
				return
			}
		}
	}
}
