//go:build unix

package crashtest

import (
	"io/fs"
	"maps"
	"slices"

	"example.com/holdfast/internal/fsguard"
)

// An inode is a file, a directory or something odd that a test planted. It has
// two lives: what processes see now, and what the platter is known to hold.
type inode struct {
	birth  uint64 // unique for ever, unlike num
	num    uint64
	mode   fs.FileMode
	uid    uint32
	ctime  int64
	mtime  int64
	links  int // names that processes see
	opens  int // descriptors
	locks  map[*desc]fsguard.LockMode
	target string // of a symlink

	// A plain file. The slices are never changed in place, so that images and
	// clones may share them.
	data   []byte  // what processes read
	base   []byte  // what the platter holds below writes
	writes []write // since then, oldest first

	// A directory.
	names  map[string]*inode // what processes see
	ground map[string]*inode // what the platter holds below ops
	ops    []*nameOp         // since then, oldest first
}

// A fate says whether a write or name operation is durable.
type fate uint8

const (
	free    fate = iota // not yet synced
	settled             // synced, kept in the list only because of one before it or one that it rests on
	doomed              // covered by a sync that failed: no later sync makes it durable
)

// A write is one change of a file's content.
type write struct {
	off  int
	data []byte
	fate fate
}

// over returns content with w written over it. content is not changed.
func (w write) over(content []byte) []byte {
	out := make([]byte, max(len(content), w.off+len(w.data)))
	copy(out, content)
	copy(out[w.off:], w.data)
	return out
}

// put makes a change of content visible, and durable at once if f is settled.
func (n *inode) put(off int, data []byte, f fate) {
	w := write{off: off, data: slices.Clone(data), fate: f}
	n.data = w.over(n.data)
	n.writes = append(n.writes, w)
	n.fold()
}

// sync makes durable all that no failed sync has covered.
func (n *inode) sync() { n.mark(settled) }

// failSync is a sync that failed: all that was not yet durable is doomed.
func (n *inode) failSync() { n.mark(doomed) }

func (n *inode) mark(f fate) {
	for i := range n.writes {
		if n.writes[i].fate == free {
			n.writes[i].fate = f
		}
	}
	for _, o := range n.ops {
		switch {
		case o.fate != free:
		case f == settled:
			o.settle()
		default:
			o.fate = f
		}
	}
	n.fold()
}

// fold moves what is durable, up to the first that is not, into base and ground.
func (n *inode) fold() {
	for len(n.writes) > 0 && n.writes[0].fate == settled {
		n.base = n.writes[0].over(n.base)
		n.writes = n.writes[1:]
	}
	for len(n.ops) > 0 && n.ops[0].durable() {
		n.ops[0].apply(n.ground)
		n.ops = n.ops[1:]
	}
}

// settle makes everything visible durable, whatever failed before.
func (n *inode) settle() {
	n.base, n.writes = n.data, nil
	n.ground, n.ops = maps.Clone(n.names), nil
}

// info is what fstat tells.
func (n *inode) info(sizeLies bool) fsguard.Info {
	i := fsguard.Info{
		Identity:   fsguard.Identity{Dev: device, Ino: n.num},
		Mode:       n.mode,
		Links:      uint64(n.links),
		UID:        n.uid,
		CtimeNanos: n.ctime,
		MtimeNanos: n.mtime,
	}
	if n.mode.IsDir() {
		for _, child := range n.names {
			if child.mode.IsDir() {
				i.Links++
			}
		}
		if n.links > 0 {
			i.Links++ // its own "."
		}
	} else if !sizeLies {
		i.Size = int64(len(n.data))
	}
	return i
}

// allowed reports whether uid may use n in every way in want: 4 read, 2 write,
// 1 search. Root gets no privilege.
func (n *inode) allowed(uid uint32, want fs.FileMode) bool {
	perm := n.mode.Perm()
	if n.uid == uid {
		perm >>= 6
	}
	return perm&want == want
}
