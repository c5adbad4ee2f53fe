package memory

import (
	"strconv"
	"time"
)

// A draft is one call under way. It changes the state in place and remembers how to
// undo each step, so that a call that is refused in its middle leaves no trace.
// Everything that a call changes, it changes through the methods of this file.
type draft struct {
	st       *state
	now      time.Time
	revision uint64 // the one that this call makes
	commit   string // names its generations; empty: it has made none
	index    int    // of the next generation
	undo     []func()
}

func (st *state) draft(now time.Time) *draft {
	return &draft{st: st, now: now, revision: st.revision + 1}
}

// drop undoes everything.
func (d *draft) drop() {
	for i := len(d.undo) - 1; i >= 0; i-- {
		d.undo[i]()
	}
}

// keep makes it a revision, if there is any change, and reports that.
func (d *draft) keep() bool {
	if len(d.undo) == 0 {
		return false
	}
	d.st.revision = d.revision
	return true
}

// queue gives a queue whose figures or messages the call is about to change; a new
// one is made.
func (d *draft) queue(name string) *queueState {
	q := d.st.queues[name]
	if q == nil {
		q = &queueState{name: name, slots: map[string]slot{}, leasedKeys: map[string]bool{}}
		d.st.queues[name] = q
		d.undo = append(d.undo, func() { delete(d.st.queues, name) })
		return q
	}
	before := q.figures
	d.undo = append(d.undo, func() { q.figures = before })
	return q
}

// put sets both sides of an ID.
func (d *draft) put(q *queueState, id string, s slot) {
	before := q.slots[id]
	q.put(id, s)
	d.undo = append(d.undo, func() { q.put(id, before) })
}

// replace puts a changed copy of a claimed generation in its place.
func (d *draft) replace(q *queueState, m *message) {
	d.put(q, m.id, slot{pending: q.slots[m.id].pending, claimed: m})
}

// remove takes a claimed generation out of its queue.
func (d *draft) remove(q *queueState, m *message) {
	d.put(q, m.id, slot{pending: q.slots[m.id].pending})
}

// setFailed sets a failed message; nil removes it.
func (d *draft) setFailed(name failedName, f *failed) {
	set := func(f *failed) {
		if f == nil {
			delete(d.st.failed, name)
		} else {
			d.st.failed[name] = f
		}
	}
	before := d.st.failed[name]
	set(f)
	d.undo = append(d.undo, func() { set(before) })
}

// fence gives the next claim number of the store.
func (d *draft) fence() uint64 {
	before := d.st.fence
	d.st.fence++
	d.undo = append(d.undo, func() { d.st.fence = before })
	return d.st.fence
}

// generation names an acceptance: one token for each call, and a place in it.
func (d *draft) generation() string {
	if d.commit == "" {
		d.commit = newToken()
	}
	name := d.commit + "." + strconv.Itoa(d.index)
	d.index++
	return name
}

// Times are kept to the millisecond. What has happened is cut down to it; what is
// still to come is rounded up, so that it never comes earlier than asked.

func (d *draft) stamp() time.Time { return time.UnixMilli(d.now.UnixMilli()) }

// after gives the time that lies a delay or a lease ahead.
func (d *draft) after(delay time.Duration) time.Time { return roundUp(d.now.Add(delay)) }

func roundUp(t time.Time) time.Time {
	millis := time.UnixMilli(t.UnixMilli())
	if t.After(millis) {
		millis = millis.Add(time.Millisecond)
	}
	return millis
}
