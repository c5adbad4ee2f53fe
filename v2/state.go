//go:build unix

package holdfast

import (
	"slices"
	"strings"

	"example.com/holdfast/queue"
)

// A state is everything the store knows at one revision. A published state is
// never changed: a draft copies what it touches, so that a refused call leaves no
// trace and a commit that fails is dropped whole.
type state struct {
	commit     token // of the commit that made this revision
	store      token
	revision   uint64
	settings   Settings
	exchange   bool   // commits exchange state.json with a spare: see exchange.go
	after      token  // with it: the commit that this one was made after; zero: none, or not told
	fence      uint64 // claims made so far in the whole store
	recoveries uint64 // fresh revisions published by Recover or a resolution
	resolved   []outcome
	imports    []importRecord // by the text of their tokens
	queues     []*queueState  // by name
	failed     []*failedSpace // by name

	reader runReader // of the runs; not stored
}

// An outcome remembers which commit a recovery found on disk, so that Resolve can
// tell later whether an uncertain one happened. The last maxResolved are kept.
type outcome struct {
	commit   token
	revision uint64
}

const maxResolved = 64

// A queueState is one queue of a state.
type queueState struct {
	name     string
	next     uint64 // the enqueue sequence of the next message
	counters queue.Counters
	paused   bool
	cursor   string // an intake loop's offset; empty: none
	turn     string // the key served last under fair rotation; empty: none
	failedNS string // failed namespace; empty: the default one

	runs  []*run  // sealed blocks of pending messages, by first sequence
	slots []*slot // by ID: what stands inline
	line  line    // of what stands inline; derived, not stored

	undo *[]undone // where a draft notes what put took away; nil: nowhere
}

// A slot holds the live generations of one ID. At least one side is set. It is
// immutable; so are the references in it once their commit is sealed.
type slot struct {
	id      string
	pending *ref
	claimed *claim
	enc     []byte // its text in state.json; nil: not encoded yet
}

// A ref is a reference to one generation of a message.
type ref struct {
	gen       generation
	object    token
	off, size int64  // where the payload lies in the object
	sum       uint32 // CRC-32C of the payload: integrity only, never identity
	seq       uint64
	enqueued  int64 // Unix milliseconds

	attempts  uint64 // claims so far: the fencing token
	excused   uint64 // of those, not counted toward the cap
	lapses    uint64 // of those, ended by reaping
	notBefore int64  // Unix milliseconds; 0: none
	key       string
	lastError string
	mark      token // of the open import that brought it; zero: none
}

// A claim is a generation that has been claimed at least once. It stays on the
// claimed side until it ends, and nothing supersedes it.
type claim struct {
	ref
	returned returned // how it came back; leased: it is out
	lease    lease    // while leased; after a reaping what it was, for an Extend
}

// returned is how a claim came back.
type returned uint8

const (
	leased returned = iota
	reaped
	retried
	released
	reprocessed
)

var returnedText = [...]string{leased: "", reaped: "reaped", retried: "retried", released: "released", reprocessed: "reprocessed"}

func (r returned) String() string { return returnedText[r] }

// A lease says how long a claim holds and for whom.
type lease struct {
	deadline int64  // wall clock, Unix milliseconds; 0: no deadline
	bootID   string // the boot in which bootEnds counts; empty: unknown
	bootEnds int64  // boot clock, milliseconds
	holder   token  // zero: the claim may outlive its process
	label    string
	fence    uint64
}

// A failedSpace is one failed namespace.
type failedSpace struct {
	name    string         // empty: the default one
	runs    []*failedRun   // sealed blocks of failed messages, by their tokens
	entries []*failedEntry // by name: what stands inline
}

// A failedEntry is evidence at rest.
type failedEntry struct {
	name      string
	queue, id string
	ref       ref
	at        int64 // Unix milliseconds
	enc       []byte
}

// ready reports whether r's schedule lets it be delivered at nowMillis.
func (r *ref) ready(nowMillis int64) bool { return r.notBefore <= nowMillis }

// failures is the count that the cap looks at.
func (r *ref) failures() uint64 { return r.attempts - r.excused - r.lapses }

// standing reports whether the last receipt is good: the claim is out, or was reaped
// and not claimed since.
func (c *claim) standing() bool { return c.returned == leased || c.returned == reaped }

// over reports whether the lease has ended at now. Within one boot the boot clock
// decides, suspend included; a lease of an earlier boot is over, one without deadline
// that names a holder too; where either side lacks the boot clock the wall clock
// decides. The boundary belongs to the end: at the deadline itself the lease is over.
func (l *lease) over(now instant) bool {
	switch {
	case l.deadline == 0:
		// Nobody who held a claim in another boot is alive.
		return !l.holder.zero() && l.bootID != "" && now.BootID != "" && l.bootID != now.BootID
	case l.bootID == "" || now.BootID == "":
		return now.millis() >= l.deadline
	case l.bootID != now.BootID:
		return true
	}
	return now.Boot.Milliseconds() >= l.bootEnds
}

// live counts the queue's live generations.
func (q *queueState) live() int64 {
	n := q.inline()
	for _, r := range q.runs {
		n += int64(r.live())
	}
	return n
}

// inline counts those of them that stand in state.json itself.
func (q *queueState) inline() int64 {
	n := int64(len(q.slots))
	for _, s := range q.slots {
		if s.pending != nil && s.claimed != nil {
			n++
		}
	}
	return n
}

// find gives the slot of id and where it stands or would stand inline.
func (q *queueState) find(id string) (*slot, int) {
	i, ok := slices.BinarySearchFunc(q.slots, id, func(s *slot, id string) int { return strings.Compare(s.id, id) })
	if !ok {
		return nil, i
	}
	return q.slots[i], i
}

// queue gives the named queue, or nil.
func (st *state) queue(name string) *queueState {
	i, ok := st.queueIndex(name)
	if !ok {
		return nil
	}
	return st.queues[i]
}

func (st *state) queueIndex(name string) (int, bool) {
	return slices.BinarySearchFunc(st.queues, name, func(q *queueState, n string) int { return strings.Compare(q.name, n) })
}

// failedEntry gives the named failed message that stands inline, or nil.
func (st *state) failedEntry(space, name string) *failedEntry {
	i, ok := st.spaceIndex(space)
	if !ok {
		return nil
	}
	entries := st.failed[i].entries
	j, ok := failedIndex(entries, name)
	if !ok {
		return nil
	}
	return entries[j]
}

func (st *state) spaceIndex(space string) (int, bool) {
	return slices.BinarySearchFunc(st.failed, space, func(f *failedSpace, n string) int { return strings.Compare(f.name, n) })
}

func failedIndex(entries []*failedEntry, name string) (int, bool) {
	return slices.BinarySearchFunc(entries, name, func(e *failedEntry, n string) int { return strings.Compare(e.name, n) })
}

// refs calls yield with every reference of the state and of its runs, until it says no.
// An error says which run could not be read.
func (st *state) refs(yield func(queue, id string, r *ref) bool) error {
	goOn := true
	st.inlineRefs(func(queue, id string, r *ref) bool {
		goOn = yield(queue, id, r)
		return goOn
	})
	for _, q := range st.queues {
		for _, r := range q.runs {
			if !goOn {
				return nil
			}
			m, err := st.reader.members(r)
			if err != nil {
				return err
			}
			for i, s := range m.slots {
				if goOn = goOn && (!r.has(i) || yield(q.name, s.id, s.pending)); !goOn {
					break
				}
			}
		}
	}
	for _, f := range st.failed {
		if !goOn {
			return nil
		}
		err := f.eachSealed(st.reader, func(e *failedEntry) bool {
			goOn = yield(e.queue, e.id, &e.ref)
			return goOn
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inlineRefs is refs without the runs.
func (st *state) inlineRefs(yield func(queue, id string, r *ref) bool) {
	for _, q := range st.queues {
		for _, s := range q.slots {
			if s.pending != nil && !yield(q.name, s.id, s.pending) {
				return
			}
			if s.claimed != nil && !yield(q.name, s.id, &s.claimed.ref) {
				return
			}
		}
	}
	for _, f := range st.failed {
		for _, e := range f.entries {
			if !yield(e.queue, e.id, &e.ref) {
				return
			}
		}
	}
}
