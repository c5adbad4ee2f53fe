//go:build unix

package crashtest

import (
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
)

// Images gives every disk that may be found after a power loss now, each once and
// no two alike, if there are at most limit. If there are more it gives a sample:
// everything lost; everything survived; each name operation and each content lost
// alone, and surviving alone; each tear of a content alone; and then, up to limit
// in all, what the seed draws. So a sample can be larger than limit, and the same
// seed gives the same images.
//
// An image has no descriptors and no locks, and all on it is durable. The disk may
// go on changing while images are drawn: they are of the moment of the call.
func (d *Disk) Images(limit int, seed uint64) iter.Seq[*Disk] {
	d = d.Clone()
	return func(yield func(*Disk) bool) {
		losses := d.sample(limit, seed)
		if d.count(limit) <= limit {
			losses = d.everyLoss()
		}
		for l := range losses {
			if !yield(d.after(l)) {
				return
			}
		}
	}
}

// CountImages returns how many images Images(limit, seed) gives, and whether these
// are all.
func (d *Disk) CountImages(limit int, seed uint64) (count int, exhaustive bool) {
	d = d.Clone()
	if count = d.count(limit); count <= limit {
		return count, true
	}
	count = 0
	for range d.sample(limit, seed) {
		count++
	}
	return count, false
}

// count counts the possible images, but stops past limit.
func (d *Disk) count(limit int) (count int) {
	for l := range d.everyLoss() {
		if count++; l == nil || count > limit {
			return limit + 1
		}
	}
	return count
}

// everyLoss gives each loss that leaves a different disk: parents first, so that
// nothing is asked of an inode that the choices before made unreachable; but see
// expandLinked. It ends with nil if it meets too much to list.
func (d *Disk) everyLoss() iter.Seq[loss] {
	return func(yield func(loss) bool) {
		x := expander{l: loss{}, listed: map[*inode][]string{}, yield: yield}
		if d.linked != nil {
			x.expandLinked(d)
			return
		}
		x.expand([]*inode{d.root}, 0)
	}
}

// An expander walks every combination of choices.
type expander struct {
	l      loss // the choices made so far
	listed map[*inode][]string
	yield  func(loss) bool
}

// expand goes through the choices of queue[at] and, for each, of what follows.
func (x *expander) expand(queue []*inode, at int) bool {
	if at == len(queue) {
		return x.yield(maps.Clone(x.l))
	}
	n := queue[at]
	choices, ok := x.listed[n]
	if !ok {
		if choices, ok = n.choices(); !ok {
			x.yield(nil)
			return false
		}
		x.listed[n] = choices
	}
	for _, c := range choices {
		if c != "" {
			x.l[n.birth] = c
		}
		if !x.expand(withChildren(queue, n, c), at+1) {
			return false
		}
	}
	delete(x.l, n.birth)
	return true
}

// withChildren adds to queue what n shows under choice and what may matter.
func withChildren(queue []*inode, n *inode, choice string) []*inode {
	if !n.mode.IsDir() {
		return queue
	}
	out := slices.Clip(queue)
	names := n.namesUnder(choice, nil)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		child := names[name]
		if (child.mode.IsDir() || child.uncertain() > 0) && !slices.Contains(out, child) {
			out = append(out, child)
		}
	}
	return out
}

// reduce drops from l what it says of inodes that cannot be reached under it, and
// adds what it does not say of those that can. Losses that reduce to one key are one
// for a sample.
func (d *Disk) reduce(l loss) (out loss, key string) {
	if d.linked != nil {
		return d.reduceLinked(l)
	}
	out = loss{}
	queue := []*inode{d.root}
	for at := 0; at < len(queue); at++ {
		n := queue[at]
		if n.uncertain() > 0 {
			out[n.birth] = l[n.birth]
		}
		queue = withChildren(queue, n, l[n.birth])
	}
	return out, out.String()
}

// sample gives the losses that Images documents.
func (d *Disk) sample(limit int, seed uint64) iter.Seq[loss] {
	return func(yield func(loss) bool) {
		var unsure []*inode
		for _, n := range d.reachable() {
			if n.uncertain() > 0 {
				unsure = append(unsure, n)
			}
		}
		given := map[string]bool{}
		give := func(l loss) bool {
			l, key := d.reduce(l)
			if given[key] {
				return true
			}
			given[key] = true
			return yield(l)
		}
		for l := range special(unsure) {
			if !give(l) {
				return
			}
		}
		r := rand.New(rand.NewPCG(seed, 0))
		// Many draws in a row that have been given before: there are few others.
		for try, last := 0, 0; len(given) < limit && try < last+100; try++ {
			l, p := loss{}, []float64{0.2, 0.5, 0.8, 0.95}[try%4]
			for _, n := range unsure {
				l[n.birth] = n.anyChoice(r, p)
			}
			before := len(given)
			if !give(l) {
				return
			}
			if len(given) > before {
				last = try
			}
		}
	}
}

// special gives the losses that every sample has.
func special(unsure []*inode) iter.Seq[loss] {
	all := func(survive bool) loss {
		l := loss{}
		for _, n := range unsure {
			l[n.birth] = n.whole(survive)
		}
		return l
	}
	return func(yield func(loss) bool) {
		if !yield(all(false)) || !yield(all(true)) {
			return
		}
		for _, n := range unsure {
			for _, survive := range []bool{true, false} { // the rest
				for _, c := range n.alone(!survive) {
					l := all(survive)
					l[n.birth] = c
					if !yield(l) {
						return
					}
				}
			}
		}
	}
}

// whole is the choice that keeps or loses all of n.
func (n *inode) whole(survive bool) string {
	c := "l"
	if survive {
		c = "f"
	}
	if n.mode.IsDir() {
		c = ""
		for range n.uncertain() {
			c += map[bool]string{true: "1", false: "0"}[survive]
		}
	}
	return c
}

// alone lists the choices in which one thing of n fares unlike the rest.
func (n *inode) alone(survive bool) []string {
	if !n.mode.IsDir() {
		list := []string{n.whole(survive)}
		if !survive {
			list = append(list, n.tears()...)
		}
		return list
	}
	var list []string
	for i := range n.uncertain() {
		c := []byte(n.whole(!survive))
		c[i] ^= '0' ^ '1'
		list = append(list, string(c))
	}
	return list
}
