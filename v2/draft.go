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
	own      map[string]bool    // queues that were copied
	ownNS    map[string]bool    // failed namespaces that were copied since the last mark
	undo     []undone           // puts since the first mark
	limit    int64              // bound of the encoded state; 0: none
	tight    bool               // the disk is full or the reserve is gone: no texts
	block    int                // messages to a block of runs; 0: by the backlog; negative: none is sealed
	promised int64              // owed, as enqueues of this draft add to it; 0: not counted yet
	bytes    int64              // estimate of the encoded state
	base     *state
	aside    int // damaged messages that claims of this draft set aside

	ready func(size int) *preparedObject // where pack finds objects that were made ahead; nil: nowhere
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
		st: &next, base: base, now: now, millis: now.millis(), bytes: size, own: map[string]bool{},
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

// owed is the room that everything that stands inline may still take when it is claimed
// and failed. What lies in runs is asked when it comes back; of each queue that has any,
// one message can always: else a claim could find its queue shut for ever. Of runs of failed
// messages the marks of what is purged are provided for, so that a purge is never refused.
func (d *draft) owed() int64 {
	var owed int64
	for _, q := range d.st.queues {
		owed += q.inline()*q.settleRoom() + spaceRoom(q.failedNS)
		if len(q.runs) > 0 {
			owed += q.returnRoom()
		}
	}
	for _, f := range d.st.failed {
		for _, r := range f.runs {
			owed += r.goneRoom()
		}
	}
	return owed
}

// settleRoom is what is kept for each message of the queue.
func (q *queueState) settleRoom() int64 { return settleRoom + int64(len(q.name)) }

// returnRoom is more than a message of the queue can take that comes back from a run.
func (q *queueState) returnRoom() int64 { return q.settleRoom() + slotBytes + queue.MaxNameBytes }

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

// fits says that something other than a settlement would take the state past its
// bound with so many bytes more, or nil.
func (d *draft) fits(what string, bytes int64) error {
	if bytes > 0 && d.limit > 0 && d.bytes+bytes > d.limit {
		return fmt.Errorf("%s: state.json would pass %d bytes: %w", what, d.limit, queue.ErrFull)
	}
	return nil
}

// newQueueBytes is what a queue takes beside its messages if it has to be made.
func (d *draft) newQueueBytes(name string) int64 {
	if d.st.queue(name) != nil {
		return 0
	}
	return int64(len(name)) + queueBytes
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

	own    map[string]bool
	queues []queueState // those of own as they were, but for their slots
	undo   int          // of the draft's undo log
}

// An undone is what a put took away.
type undone struct {
	q   *queueState
	id  string
	was *slot // nil: there was none
}

// mark remembers the draft as it is. Queues that are the draft's own go on being
// changed in place, and what is put into them is noted: many updates share a commit, and
// none of them may cost a copy of a deep queue.
func (d *draft) mark() mark {
	m := mark{
		st: *d.st, dirty: d.dirty, index: d.index, items: len(d.items), of: maps.Clone(d.itemOf), bytes: d.bytes, promised: d.promised,
		own: maps.Clone(d.own), undo: len(d.undo),
	}
	m.st.queues = slices.Clone(d.st.queues)
	m.st.failed = slices.Clone(d.st.failed)
	for name := range d.own {
		q := d.st.queue(name)
		q.undo = &d.undo
		m.queues = append(m.queues, *q)
	}
	clear(d.ownNS)
	return m
}

// reset goes back to m.
func (d *draft) reset(m mark) {
	*d.st = m.st
	for len(d.undo) > m.undo {
		last := d.undo[len(d.undo)-1]
		d.undo = d.undo[:len(d.undo)-1]
		last.q.takeBack(last)
	}
	for _, was := range m.queues {
		d.st.queue(was.name).restore(was)
	}
	d.dirty, d.index, d.items, d.itemOf, d.bytes = m.dirty, m.index, d.items[:m.items], m.of, m.bytes
	d.promised = m.promised
	d.own = m.own
	clear(d.ownNS)
}

// seal ends the noting: a published state must not keep alive what it replaced.
func (d *draft) seal() {
	for name := range d.own {
		d.st.queue(name).undo = nil
	}
}

// takeBack undoes a put.
func (q *queueState) takeBack(u undone) {
	log := q.undo
	q.undo = nil
	if u.was == nil {
		q.put(u.id, nil, nil)
	} else {
		q.put(u.id, u.was.pending, u.was.claimed)
	}
	q.undo = log
}

// restore sets everything but the slots, which were taken back, to what it was.
func (q *queueState) restore(was queueState) {
	slots, line := q.slots, q.line
	*q = was
	q.slots, q.line = slots, line
	if asOf := was.line.asOf; line.asOf != asOf {
		q.buildLine()
		q.advance(asOf)
	}
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
	q := d.st.queues[i].clone()
	d.st.queues[i] = q
	d.own[name] = true
	return q
}

// clone gives a copy of q that may be changed.
func (q *queueState) clone() *queueState {
	c := *q
	c.slots = withRoom(q.slots)
	c.line = q.line.clone()
	c.undo = nil
	return &c
}

// space gives the draft's own copy of a failed namespace, made if it is new.
func (d *draft) space(name string) *failedSpace {
	d.dirty = true
	if d.ownNS == nil {
		d.ownNS = map[string]bool{}
	}
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
	if d.itemOf == nil {
		d.itemOf = map[generation]int{}
	}
	d.itemOf[it.gen] = len(d.items)
	d.items = append(d.items, it)
}

// put stores both sides of id, and moves it in the line; with neither side, the slot
// goes.
func (q *queueState) put(id string, pending *ref, claimed *claim) {
	s, i := q.find(id)
	if q.undo != nil {
		*q.undo = append(*q.undo, undone{q, id, s})
	}
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
