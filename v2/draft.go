//go:build unix

package holdfast

import (
	"maps"
	"slices"
)

// A draft is the next revision in the making: a copy of a state on which calls
// are decided one after another. It does no I/O and reads no clock of its own.
// What it does not touch it shares with the state it came from.
type draft struct {
	st     *state
	now    instant
	millis int64 // now's wall clock
	dirty  bool  // something changed: a commit is due

	index    uint32             // of the next generation of this commit
	items    []item             // payloads that the commit must write
	itemOf   map[generation]int // the item of a generation that counts
	own      map[string]bool    // queues that were copied since the last mark
	ownNS    map[string]bool    // failed namespaces likewise
	limit    int64              // bound of the encoded state; 0: none
	tight    bool               // the disk is full or the reserve is gone: no texts
	promised int64              // owed, as enqueues of this draft add to it; 0: not counted yet
	bytes    int64              // estimate of the encoded state
	base     *state
}

// An item is a payload that has no object yet.
type item struct {
	queue, id string
	gen       generation
	payload   []byte

	// Where the evidence stands, if the message failed in this very commit.
	space, failed string
}

// newDraft begins the revision after base. size is what base's text takes.
func newDraft(base *state, commit token, now instant, size int64) *draft {
	next := *base
	next.commit = commit
	next.revision++
	next.queues = slices.Clone(base.queues)
	next.failed = slices.Clone(base.failed)
	return &draft{
		st: &next, base: base, now: now, millis: now.millis(), bytes: size,
		itemOf: map[generation]int{}, own: map[string]bool{}, ownNS: map[string]bool{},
	}
}

// crowded reports whether a text for people of so many bytes finds no room: it would
// take the state past its bound, which settling and claiming may otherwise pass, or the
// disk is full. Such texts are cut short then, so that the state stays readable and
// fits the room that was kept for it.
func (d *draft) crowded(adds int) bool {
	return d.tight || d.limit > 0 && d.bytes+int64(adds) > d.limit
}

// recoveryRoom is what writers leave of twice the bound for recoveries: more than a
// full list of resolved commits and longer numbers take.
const recoveryRoom = 8 << 10

// settleRoom is more than a message can add to the state when it is claimed and when
// it is failed in a crowded state, its queue's name aside: a lease without a label, or
// a failed name and a cause of crowdedError bytes.
const settleRoom = 320

// owed is the room that everything live may still take when it is claimed and failed.
func (d *draft) owed() int64 {
	var owed int64
	for _, q := range d.st.queues {
		owed += q.live() * (settleRoom + int64(len(q.name)))
	}
	return owed
}

// A mark is a point that a draft can go back to.
type mark struct {
	st       state
	dirty    bool
	index    uint32
	items    int
	of       map[generation]int
	bytes    int64
	promised int64
}

// mark remembers the draft as it is; what it holds now is copied before the next
// change.
func (d *draft) mark() mark {
	m := mark{st: *d.st, dirty: d.dirty, index: d.index, items: len(d.items), of: maps.Clone(d.itemOf), bytes: d.bytes, promised: d.promised}
	m.st.queues = slices.Clone(d.st.queues)
	m.st.failed = slices.Clone(d.st.failed)
	clear(d.own)
	clear(d.ownNS)
	return m
}

// reset goes back to m.
func (d *draft) reset(m mark) {
	*d.st = m.st
	d.dirty, d.index, d.items, d.itemOf, d.bytes = m.dirty, m.index, d.items[:m.items], m.of, m.bytes
	d.promised = m.promised
	clear(d.own)
	clear(d.ownNS)
}

// atomically runs f; when f refuses, the draft is as it was.
func (d *draft) atomically(f func() error) error {
	m := d.mark()
	if err := f(); err != nil {
		d.reset(m)
		return err
	}
	return nil
}

// queue gives the draft's own copy of a queue, made if it is new.
func (d *draft) queue(name string) *queueState {
	d.dirty = true
	i, ok := d.st.queueIndex(name)
	if !ok {
		q := &queueState{name: name}
		d.st.queues = slices.Insert(d.st.queues, i, q)
		d.own[name] = true
		d.bytes += int64(len(name)) + queueBytes
		return q
	}
	if d.own[name] {
		return d.st.queues[i]
	}
	q := *d.st.queues[i]
	q.slots = withRoom(q.slots)
	q.line = withRoom(q.line)
	d.st.queues[i] = &q
	d.own[name] = true
	return &q
}

// space gives the draft's own copy of a failed namespace, made if it is new.
func (d *draft) space(name string) *failedSpace {
	d.dirty = true
	i, ok := d.st.spaceIndex(name)
	if !ok {
		f := &failedSpace{name: name}
		d.st.failed = slices.Insert(d.st.failed, i, f)
		d.ownNS[name] = true
		return f
	}
	if d.ownNS[name] {
		return d.st.failed[i]
	}
	f := *d.st.failed[i]
	f.entries = withRoom(f.entries)
	d.st.failed[i] = &f
	d.ownNS[name] = true
	return &f
}

// withRoom copies s so that some appends need no second copy.
func withRoom[T any](s []T) []T {
	return append(make([]T, 0, len(s)+len(s)/8+16), s...)
}

// generation names the next acceptance of this commit.
func (d *draft) generation() generation {
	g := generation{d.st.commit, d.index}
	d.index++
	return g
}

// write notes that a generation's payload must be written with this commit. It
// takes the place of what was noted before for that generation; that stays in items,
// for a draft that goes back to a mark.
func (d *draft) write(it item) {
	d.itemOf[it.gen] = len(d.items)
	d.items = append(d.items, it)
}

// put stores both sides of id; with neither, the slot goes. line is left to the
// caller.
func (q *queueState) put(id string, pending *ref, claimed *claim) {
	s, i := q.find(id)
	switch {
	case pending == nil && claimed == nil:
		if s != nil {
			q.slots = slices.Delete(q.slots, i, i+1)
		}
	case s == nil:
		q.slots = slices.Insert(q.slots, i, &slot{id: id, pending: pending, claimed: claimed})
	default:
		q.slots[i] = &slot{id: id, pending: pending, claimed: claimed}
	}
}

// enter puts a reference into the line of delivery.
func (q *queueState) enter(seq uint64, id string) {
	i, _ := q.placeOf(seq)
	q.line = slices.Insert(q.line, i, place{seq, id})
}

// leave takes a reference out of the line.
func (q *queueState) leave(seq uint64) {
	i, ok := q.placeOf(seq)
	switch {
	case !ok:
		panic("holdfast: a reference that is not in the line of its queue")
	case i == 0:
		q.line = q.line[1:]
	default:
		q.line = slices.Delete(q.line, i, i+1)
	}
}
