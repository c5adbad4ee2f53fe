//go:build unix

package holdfast

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// A run is a block of pending messages that left state.json: the cold middle of a
// deep queue, so that a commit does not write what it does not touch. It is sealed by
// the commit of an enqueue, as an immutable object, and state.json keeps this
// reference. Its members come back inline when a claim reaches them, or a call names
// one. state.json stays the only authority: what it marks as gone is gone.
//
// The members of a run are pending, without a key and of no open import, and nothing
// of their ID is claimed. All of them are scheduled or none is.
//
// A run is immutable: a draft puts another one in its place.
type run struct {
	sealedObject

	// Of the members that are still in it.
	first, last uint64 // the smallest and the largest sequence
	from, to    int64  // the first and the last time that one is due, Unix milliseconds; 0: none is scheduled
}

// A sealedObject is what the reference to any run says of its object, and which of its
// members have left.
type sealedObject struct {
	name      token
	size      int64 // of run.json
	sum       uint32
	filterSum uint32 // of the filter's text
	count     int    // members, gone ones included

	gone []byte // a bit for each member that left; nil: none did
	enc  []byte // the reference's text in state.json; nil: not encoded yet
}

// A runReader gives what is in runs. A run never changes, so neither does an answer.
type runReader interface {
	// members gives all the members of a run, gone ones included.
	members(r *run) (*body, error)

	// buried gives all the members of a run of failed messages, gone ones included, in
	// order of their names.
	buried(r *failedRun) ([]*failedEntry, error)

	// mayHold reports whether a run may have, or have had, a member of that ID, or of
	// that failed name. No is certain.
	mayHold(o *sealedObject, name string) (bool, error)
}

// A body is the slots of a run, in its order: of sequence, or of time where they are
// scheduled.
type body struct {
	slots []*slot
	byID  []int // places in slots
}

func newBody(slots []*slot) *body {
	m := &body{slots: slots, byID: make([]int, len(slots))}
	for i := range m.byID {
		m.byID[i] = i
	}
	slices.SortFunc(m.byID, func(a, b int) int { return strings.Compare(slots[a].id, slots[b].id) })
	return m
}

// find gives the place of an ID, or false.
func (m *body) find(id string) (int, bool) {
	i, ok := slices.BinarySearchFunc(m.byID, id, func(i int, id string) int { return strings.Compare(m.slots[i].id, id) })
	if !ok {
		return 0, false
	}
	return m.byID[i], true
}

// has reports whether the i-th member is still in the run.
func (o *sealedObject) has(i int) bool { return o.gone == nil || o.gone[i/8]>>(i%8)&1 == 0 }

// live counts the members that are still in the run.
func (o *sealedObject) live() int {
	n := o.count
	for _, b := range o.gone {
		n -= bits.OnesCount8(b)
	}
	return n
}

// due reports whether a member is due at millis.
func (r *run) due(millis int64) bool { return r.from <= millis }

// without gives r without the members that leave says, or nil when none is left.
func (r *run) without(m *body, leave func(i int) bool) *run {
	next := *r
	next.sealedObject = r.leave(leave)
	if next.live() == 0 {
		return nil
	}
	next.bound(m)
	return &next
}

// leave gives o without the members that gone says.
func (o sealedObject) leave(gone func(i int) bool) sealedObject {
	before := o.gone
	o.enc = nil
	o.gone = make([]byte, (o.count+7)/8)
	copy(o.gone, before)
	for i := range o.count {
		if gone(i) {
			o.gone[i/8] |= 1 << (i % 8)
		}
	}
	return o
}

// bound works out what a run says of the members that are still in it.
func (r *run) bound(m *body) {
	begin := true
	for i, s := range m.slots {
		if !r.has(i) {
			continue
		}
		p := s.pending
		if begin {
			r.first, r.last, r.from, r.to, begin = p.seq, p.seq, p.notBefore, p.notBefore, false
			continue
		}
		r.first, r.last = min(r.first, p.seq), max(r.last, p.seq)
		r.from, r.to = min(r.from, p.notBefore), max(r.to, p.notBefore)
	}
}

// compareMembers is the order within a run.
func compareMembers(a, b *slot) int {
	return cmp.Or(cmp.Compare(a.pending.notBefore, b.pending.notBefore), cmp.Compare(a.pending.seq, b.pending.seq))
}

// setRun puts next in the place of the run that is named so, or takes that away. The
// list of a published state stays as it is.
func (q *queueState) setRun(name token, next *run) {
	list := slices.DeleteFunc(slices.Clone(q.runs), func(r *run) bool { return r.name == name })
	if next != nil {
		list = append(list, next)
	}
	sortRuns(list)
	q.runs = list
}

// sortRuns puts runs in the order in which they stand: of their first sequence.
func sortRuns(list []*run) {
	slices.SortFunc(list, func(a, b *run) int { return cmp.Compare(a.first, b.first) })
}

// sealed gives the slot of an ID that lies in a run, or nil.
func (q *queueState) sealed(reader runReader, id string) (s *slot, in *run, err error) {
	for _, r := range q.runs {
		may, err := reader.mayHold(&r.sealedObject, id)
		if err != nil {
			return nil, nil, lostRun(err, waysOfPending)
		}
		if !may {
			continue
		}
		m, err := reader.members(r)
		if err != nil {
			return nil, nil, err
		}
		if i, ok := m.find(id); ok && r.has(i) {
			return m.slots[i], r, nil
		}
	}
	return nil, nil, nil
}

// look gives the slot of an ID, inline or sealed, or nil.
func (st *state) look(q *queueState, id string) (*slot, error) {
	if q == nil {
		return nil, nil
	}
	if s, _ := q.find(id); s != nil {
		return s, nil
	}
	s, _, err := q.sealed(st.reader, id)
	return s, err
}
