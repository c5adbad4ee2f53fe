//go:build unix

package crashtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// What becomes of an inode in a power loss is its choice, a short text. For a
// directory it is one digit per operation that is not durable, oldest first: 1 if
// it survives. For a file it is one of
//
//	l       the content when last synced (lost)
//	f       the full new content
//	h12     of the bytes written since, the first 12 (head)
//	t12     all but the first 12 (tail)
//	z       the new length, with zeros where the file grew
//	m0110   of the pieces written since, the second and the third: see pieces
//
// An inode of which everything is durable has the choice "".

// uncertain counts the writes or name operations that may be lost.
func (n *inode) uncertain() (count int) {
	for _, w := range n.writes {
		if w.fate != settled {
			count++
		}
	}
	for _, o := range n.ops {
		if o.fate != settled {
			count++
		}
	}
	return count
}

// namesUnder returns the names in directory n under a choice, without what is void.
func (n *inode) namesUnder(choice string, void map[*nameOp]bool) map[string]*inode {
	names := make(map[string]*inode, len(n.ground)+len(n.ops))
	for name, node := range n.ground {
		names[name] = node
	}
	for o, survives := range n.fates(choice) {
		if survives && !void[o] {
			o.apply(names)
		}
	}
	return names
}

// contentUnder returns the content of file n under a choice.
func (n *inode) contentUnder(choice string) []byte {
	from, to := 0, 0 // which of the bytes that are not durable survive
	switch {
	case choice == "" || choice == "l" || choice == "z":
	case choice == "f":
		return n.data
	case choice[0] == 'm':
		return n.mixed(choice[1:])
	case choice[0] == 'h':
		to = number(choice)
	case choice[0] == 't':
		from, to = number(choice), n.unsynced()
	}
	out, at := n.base, 0
	for _, w := range n.writes {
		if w.fate != settled {
			first, last := max(from-at, 0), min(to-at, len(w.data))
			at += len(w.data)
			if first >= last {
				continue
			}
			w = write{off: w.off + first, data: w.data[first:last]}
		}
		out = w.over(out)
	}
	if choice == "z" {
		out = append(slices.Clone(out), make([]byte, len(n.data)-len(out))...)
	}
	return out
}

func number(choice string) int {
	i, err := strconv.Atoi(choice[1:])
	if err != nil {
		panic(fmt.Sprintf("crashtest: bad choice %q", choice))
	}
	return i
}

// unsynced counts the bytes written that are not durable.
func (n *inode) unsynced() (total int) {
	for _, w := range n.writes {
		if w.fate != settled {
			total += len(w.data)
		}
	}
	return total
}

// changed returns the range of the unsynced bytes that make a difference: those
// before first and from last on are what the file held there anyway.
func (n *inode) changed() (first, last int) {
	lost, at := n.contentUnder("l"), 0
	for _, w := range n.writes {
		if w.fate == settled {
			continue
		}
		for i, b := range w.data {
			if p := w.off + i; p >= len(lost) || lost[p] != b {
				if last == 0 {
					first = at + i
				}
				last = at + i + 1
			}
		}
		at += len(w.data)
	}
	return first, last
}

// tears lists the choices that are neither l nor f: the cuts after the first byte
// that matters, in the middle, before the last one, and between two writes.
func (n *inode) tears() []string {
	first, last := n.changed()
	cuts := []int{first + 1, (first + last) / 2, last - 1}
	at := 0
	for _, w := range n.writes {
		if w.fate != settled {
			at += len(w.data)
			cuts = append(cuts, at)
		}
	}
	slices.Sort(cuts)
	out := []string{"z"}
	for _, cut := range slices.Compact(cuts) {
		if first < cut && cut < last {
			out = append(out, "h"+strconv.Itoa(cut), "t"+strconv.Itoa(cut))
		}
	}
	return append(out, n.mixtures()...)
}

// most is how many unsynced operations of one directory are tried in every
// combination. With more, images are sampled.
const most = 12

// choices lists the choices of n that differ in what they leave. ok is false when
// there are too many to list.
func (n *inode) choices() (list []string, ok bool) {
	count := n.uncertain()
	switch {
	case count == 0:
		return []string{""}, true
	case !n.mode.IsDir():
		pieces, mixtures := len(n.pieces()), []string(nil)
		if pieces > fewPieces {
			return nil, false
		}
		for bits := range 1 << pieces {
			if pieces > 0 {
				mixtures = append(mixtures, fmt.Sprintf("m%0*b", pieces, bits))
			}
		}
		var seen [][]byte
		for _, c := range slices.Concat([]string{"l", "f"}, n.tears(), mixtures) {
			content := n.contentUnder(c)
			if !slices.ContainsFunc(seen, func(s []byte) bool { return bytes.Equal(s, content) }) {
				seen, list = append(seen, content), append(list, c)
			}
		}
		return list, true
	case count > most:
		return nil, false
	}
	seen := map[string]bool{}
	for bits := range 1 << count {
		c := fmt.Sprintf("%0*b", count, bits)
		if key := signature(n.namesUnder(c, nil)); !seen[key] {
			seen[key], list = true, append(list, c)
		}
	}
	return list, true
}

// signature is equal for equal maps.
func signature(names map[string]*inode) string {
	var lines []string
	for name, node := range names {
		lines = append(lines, name+"/"+strconv.FormatUint(node.birth, 10))
	}
	slices.Sort(lines)
	return strings.Join(lines, "//")
}

// anyChoice draws a choice: each operation survives with the probability p.
func (n *inode) anyChoice(r *rand.Rand, p float64) string {
	count := n.uncertain()
	if count == 0 {
		return ""
	}
	if n.mode.IsDir() {
		bits := make([]byte, count)
		for i := range bits {
			bits[i] = '0'
			if r.Float64() < p {
				bits[i] = '1'
			}
		}
		return string(bits)
	}
	if pieces := len(n.pieces()); pieces > 0 && r.IntN(2) == 0 {
		return anyMixture(r, pieces)
	}
	switch x := r.Float64(); {
	case x < 0.25:
		first, last := n.changed()
		if last-first < 2 {
			return "l"
		}
		return string("ht"[r.IntN(2)]) + strconv.Itoa(first+1+r.IntN(last-first-1))
	case x < 0.3:
		return "z"
	case r.Float64() < p:
		return "f"
	}
	return "l"
}
