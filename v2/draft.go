//go:build unix

package holdfast

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/holdfast/queue"
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
		owed += q.live()*(settleRoom+int64(len(q.name))) + spaceRoom(q.failedNS)
	}
	return owed
}

// spaceRoom is more than a failed namespace takes when its first message fails.
func spaceRoom(space string) int64 {
	if space == "" {
		return 0
	}
	return int64(len(space)) + 40
}

// promise keeps the room that one more live message of a queue may take, or says that
// there is none. A message is accepted only with it.
func (d *draft) promise(queueName string) error {
	return d.owe(settleRoom + int64(len(queueName)))
}

func (d *draft) owe(owes int64) error {
	if d.promised == 0 {
		d.promised = d.owed()
	}
	if d.limit > 0 && d.promised+owes > d.limit-recoveryRoom {
		return fmt.Errorf("state.json would have no room to settle one more message within its bound of %d bytes: %w", d.limit, queue.ErrFull)
	}
	d.promised += owes
	return nil
}

// grow notes that something other than a settlement adds so many bytes, or refuses it
// where that would pass the bound.
func (d *draft) grow(what string, bytes int64) error {
	if d.limit > 0 && d.bytes+bytes > d.limit {
		return fmt.Errorf("%s: state.json would pass %d bytes: %w", what, d.limit, queue.ErrFull)
	}
	d.bytes += bytes
	return nil
}

// text gives a last error as it is kept now: short in a crowded state.
func (d *draft) text(s string) string {
	if d.crowded(written(s)) {
		s = cutWritten(s, crowdedError)
	}
	d.bytes += int64(written(s))
	return s
}

// after gives the time a delay from now, Unix milliseconds; 0: at once.
func (d *draft) after(delay time.Duration) int64 {
	if delay <= 0 {
		return 0
	}
	return min(roundUp(time.UnixMilli(d.millis).Add(delay)), maxMillis)
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
	q.line = q.line.clone()
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

// put stores both sides of id, and moves it in the line; with neither side, the slot
// goes.
func (q *queueState) put(id string, pending *ref, claimed *claim) {
	s, i := q.find(id)
	if s != nil {
		q.line.leave(s)
	}
	next := &slot{id: id, pending: pending, claimed: claimed}
	switch {
	case pending == nil && claimed == nil:
		if s != nil {
			q.slots = slices.Delete(q.slots, i, i+1)
		}
		return
	case s == nil:
		q.slots = slices.Insert(q.slots, i, next)
	default:
		q.slots[i] = next
	}
	q.line.enter(next)
}
