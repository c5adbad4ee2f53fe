//go:build unix

package holdfast

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/holdfast/queue"
)

// refBytes is about the text of one reference: how much room to make at first.
const refBytes = 160

// maxFailedName is the longest ID~generation.
const maxFailedName = 2*queue.MaxNameBytes + 1

// An extent is where one payload lies.
type extent struct {
	object   token
	off, end int64
	at       int // in the file
}

// name takes a string that check admits.
func (d *decoder) name(what string, limit int, check func(string) error) string {
	at := d.i
	s := string(d.string(what, limit))
	if d.err != nil {
		return ""
	}
	if err := check(s); err != nil {
		d.fail(at, "%v", err)
	}
	return s
}

// some takes a string that would be left out if it were empty.
func (d *decoder) some(what string, limit int) string {
	at := d.i
	s := string(d.string(what, limit))
	if s == "" {
		d.fail(at, "an empty %s: it must be left out", what)
	}
	return s
}

// word takes a key or a label.
func (d *decoder) word(what string) string {
	at := d.i
	s := d.some(what, queue.MaxNameBytes)
	if err := queue.CheckText(what, s); err != nil {
		d.fail(at, "%v", err)
	}
	return s
}

// positive takes a number that would be left out if it were zero.
func (d *decoder) positive(what string) uint64 {
	at := d.i
	n := d.number()
	if n == 0 {
		d.fail(at, "%s of zero: it must be left out", what)
	}
	return n
}

// once notes a generation, which no other reference of the state may name.
func (d *decoder) once(at int, g generation) {
	if d.err != nil {
		return
	}
	if before, twice := d.seen[g]; twice {
		d.fail(at, "generation %s is at byte %d already", g, before)
		return
	}
	d.seen[g] = at
}

// extent notes where a payload lies.
func (d *decoder) extent(at int, r *ref) {
	if d.err != nil {
		return
	}
	if r.size == 0 || r.off > maxNumber-r.size {
		d.fail(at, "a payload of %d bytes at offset %d", r.size, r.off)
		return
	}
	d.ranges = append(d.ranges, extent{r.object, r.off, r.off + r.size, at})
}

// overlaps refuses two payloads that share a byte of one object: each message has
// bytes of its own, equal ones included.
func (d *decoder) overlaps() {
	if d.err != nil {
		return
	}
	slices.SortFunc(d.ranges, compareExtents)
	for i := 1; i < len(d.ranges); i++ {
		a, b := &d.ranges[i-1], &d.ranges[i]
		if a.object == b.object && a.end > b.off {
			d.fail(max(a.at, b.at), "bytes %d to %d of object %s overlap those that byte %d names", b.off, b.end, b.object, min(a.at, b.at))
			return
		}
	}
}

func compareExtents(a, b extent) int {
	if c := slices.Compare(a.object[:], b.object[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.off, b.off)
}

// live notes a live reference of q and refuses a sequence not given out yet.
func (d *decoder) live(at int, q *queueState, id string, r *ref) {
	if r.seq >= q.next {
		d.fail(at, "ID %q: sequence %d, but the queue's next is %d", id, r.seq, q.next)
	}
	d.places = append(d.places, place{r.seq, id})
}

// oneSeqEach refuses two live references of q with one sequence.
func (d *decoder) oneSeqEach(q *queueState) {
	if d.err != nil {
		return
	}
	slices.SortFunc(d.places, func(a, b place) int { return cmp.Compare(a.seq, b.seq) })
	for i := 1; i < len(d.places); i++ {
		if a, b := d.places[i-1], d.places[i]; a.seq == b.seq {
			d.fail(-1, "queue %q: IDs %q and %q have sequence %d both", q.name, a.id, b.id, a.seq)
			return
		}
	}
}

// countable says that the format cannot hold one more attempt, or nil. No store reaches
// that by counting.
func (r *ref) countable() error {
	if r.attempts >= maxNumber {
		return fmt.Errorf("its attempts have come to their end: %w", queue.ErrFull)
	}
	return nil
}

// representable says which number of a state in the making the format cannot hold, or
// nil. No store reaches one by counting; a planted one must not be led beyond it.
func (st *state) representable() error {
	if st.revision == 0 {
		return fmt.Errorf("the revision has come to its end: %w", queue.ErrFull)
	}
	most := max(st.fence, st.recoveries)
	for _, q := range st.queues {
		most = max(most, q.next)
		for _, n := range counts(&q.counters) {
			most = max(most, *n)
		}
	}
	if most > maxNumber {
		return fmt.Errorf("a number of the state has come to its end: %w", queue.ErrFull)
	}
	return nil
}
