//go:build unix

package crashtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Where operations rest on others, what becomes of one directory depends on the
// choices of the others, those that the image does not show included. So every
// combination of the choices of all directories is tried, and those that leave the
// same names are one. The contents of what they show are chosen then.

// void returns the operations that are not in effect under l, because of their own
// loss or of that of another which they rest on. It is nil if none rests on another.
func (d *Disk) void(l loss) map[*nameOp]bool {
	if d.linked == nil {
		return nil
	}
	void, known := map[*nameOp]bool{}, map[*nameOp]bool{}
	for _, n := range d.linked {
		for o, survives := range n.fates(l[n.birth]) {
			void[o] = !survives
		}
	}
	var lost func(o *nameOp) bool
	lost = func(o *nameOp) bool {
		if !known[o] {
			known[o] = true
			void[o] = void[o] || slices.ContainsFunc(o.rests, lost) || slices.ContainsFunc(o.under, lost)
		}
		return void[o]
	}
	for _, n := range d.linked {
		for _, o := range n.ops {
			lost(o)
		}
	}
	return void
}

// expandLinked is expand for a disk in which operations rest on others.
func (x *expander) expandLinked(d *Disk) {
	total := 0
	for _, n := range d.linked {
		total += n.uncertain()
	}
	if total > most {
		x.yield(nil)
		return
	}
	// In ascending order the first of those that look alike is the one in which the
	// fewest operations survive: none that is void does.
	seen := map[string]bool{}
	for bits := range 1 << total {
		text := fmt.Sprintf("%0*b", total, bits)
		for _, n := range d.linked {
			if count := n.uncertain(); count > 0 {
				x.l[n.birth], text = text[:count], text[count:]
			}
		}
		key, files := d.shown(x.l)
		if seen[key] {
			continue
		}
		seen[key] = true
		if !x.expand(files, 0) {
			return
		}
	}
}

// shown tells what names there are under l, equal for equal ones, and lists the
// files in them whose content is uncertain.
func (d *Disk) shown(l loss) (key string, files []*inode) {
	void := d.void(l)
	var b strings.Builder
	for queue, at := []*inode{d.root}, 0; at < len(queue); at++ {
		n := queue[at]
		names := n.namesUnder(l[n.birth], void)
		fmt.Fprintf(&b, "%d:%s\n", n.birth, signature(names))
		for _, name := range slices.Sorted(maps.Keys(names)) {
			switch child := names[name]; {
			case child.mode.IsDir():
				queue = append(queue, child) // it has one name
			case child.uncertain() > 0 && !slices.Contains(files, child):
				files = append(files, child)
			}
		}
	}
	return b.String(), files
}

// reduceLinked is reduce for a disk in which operations rest on others: no choice of
// a directory is left out.
func (d *Disk) reduceLinked(l loss) (out loss, key string) {
	out = loss{}
	for _, n := range d.linked {
		if n.uncertain() > 0 {
			out[n.birth] = l[n.birth]
		}
	}
	key, files := d.shown(out)
	for _, n := range files {
		out[n.birth] = l[n.birth]
		key += fmt.Sprintf("%d=%s\n", n.birth, l[n.birth])
	}
	return out, key
}
