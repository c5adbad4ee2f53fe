package memory

import (
	"cmp"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// A state is everything that the store knows at one revision.
type state struct {
	id       string
	revision uint64
	fence    uint64 // claims made so far in the whole store
	queues   map[string]*queueState
	failed   map[failedName]*failed
}

// A queueState is one queue.
type queueState struct {
	name string
	figures
	slots map[string]slot // by ID; put changes them

	// Derived from the slots, by put.
	line       []*message      // every live generation, by sequence
	leasedKeys map[string]bool // the keys of which a message is leased
}

// The figures of a queue are all that it knows beside its messages.
type figures struct {
	next     uint64 // the sequence of the next message
	counters queue.Counters
	paused   bool
	cursor   string // an intake loop's offset; empty: none
	turn     string // the key served last under fair rotation; empty: none, or no key
	failedNS string // the failed namespace; empty: the default one
}

// A slot holds the live generations of one ID. A generation that was claimed once
// stays on the claimed side until it ends; a newer one waits in pending.
type slot struct {
	pending *message
	claimed *message
}

// generations gives the live generations of the slot, the older first.
func (s slot) generations() []*message {
	return slices.DeleteFunc([]*message{s.claimed, s.pending}, func(m *message) bool { return m == nil })
}

// A message is one generation. It is never changed: a transition puts a changed copy
// in its place.
type message struct {
	id         string
	generation string
	revision   uint64 // in which it was accepted
	seq        uint64
	payload    []byte
	key        string
	enqueuedAt time.Time

	notBefore time.Time // zero: none
	attempts  uint64    // claims so far: the fencing token
	excused   uint64    // of those, not counted toward the cap
	lapses    uint64    // of those, ended by reaping
	lastError string
	phase     phase
	lease     lease // of the last claim; an Extend may take it up again after a reaping
}

// A phase is where a generation is in its life. Fresh ones are pending, all others
// are on the claimed side; all but fresh and leased ones have come back.
type phase string

const (
	fresh       phase = ""
	leased      phase = "leased"
	reaped      phase = "reaped"
	retried     phase = "retried"
	released    phase = "released"
	reprocessed phase = "reprocessed"
)

// A lease says how long a claim holds.
type lease struct {
	deadline time.Time // zero: none
	label    string
	fence    uint64
	held     bool // it names this process as its holder, which is alive
}

// A failedName names a failed message.
type failedName struct{ space, name string }

// A failed is evidence at rest.
type failed struct {
	queue   string
	message *message
	at      time.Time
}

// failures is the count that the cap looks at.
func (m *message) failures() uint64 { return m.attempts - m.excused - m.lapses }

// due reports whether its schedule lets m be delivered.
func (m *message) due(now time.Time) bool { return !now.Before(m.notBefore) }

// cameBack reports whether m was claimed and is not leased now.
func (m *message) cameBack() bool { return m.phase != fresh && m.phase != leased }

// overdue reports whether m is leased past its deadline. The boundary belongs to the
// end: at the deadline itself the lease is over.
func (m *message) overdue(now time.Time) bool {
	return m.phase == leased && !m.lease.deadline.IsZero() && !now.Before(m.lease.deadline)
}

// put sets both sides of id; with neither, the slot goes.
func (q *queueState) put(id string, s slot) {
	for _, m := range q.slots[id].generations() {
		q.leave(m)
	}
	for _, m := range s.generations() {
		q.enter(m)
	}
	if s == (slot{}) {
		delete(q.slots, id)
	} else {
		q.slots[id] = s
	}
}

func (q *queueState) enter(m *message) {
	i, taken := q.placeOf(m.seq)
	if taken || m.phase == leased && q.leasedKeys[m.key] {
		panic("memory: two messages have one sequence, or two of one key are leased")
	}
	q.line = slices.Insert(q.line, i, m)
	if m.phase == leased && m.key != "" {
		q.leasedKeys[m.key] = true
	}
}

func (q *queueState) leave(m *message) {
	i, _ := q.placeOf(m.seq)
	q.line = slices.Delete(q.line, i, i+1)
	if m.phase == leased {
		delete(q.leasedKeys, m.key)
	}
}

func (q *queueState) placeOf(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(q.line, seq, func(m *message, seq uint64) int { return cmp.Compare(m.seq, seq) })
}
