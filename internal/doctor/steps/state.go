package steps

import (
	"cmp"
	"slices"

	"example.com/holdfast/queue"
)

// Queue is the queue that the script works on.
const Queue = "steps"

// MaxSteps is how long a script can be: a bound for who has to look for the last step.
const MaxSteps = 1_000_000

// A message is what the script predicts of one message.
type message struct {
	id       string
	body     uint64 // names its payload
	seq      uint64 // its place: only the order counts
	leased   bool
	returned bool
	attempts uint64
	excused  uint64
	cause    string // the last error
}

// A State is what a store holds after some steps of a script.
type State struct {
	Seed  uint64
	Steps uint64 // that were made

	live     []message // in order of seq
	failed   []message // in order of their names, which are the IDs
	counters queue.Counters
	bodies   uint64 // payloads that were made
	seqs     uint64
}

// New is the state before the first step: an empty store.
func New(seed uint64) *State { return &State{Seed: seed} }

// Clone gives a copy that goes its own way.
func (s *State) Clone() *State {
	c := *s
	c.live, c.failed = slices.Clone(s.live), slices.Clone(s.failed)
	return &c
}

// total is a number that every step raises.
func total(c queue.Counters) uint64 {
	return c.Enqueued + c.Superseded + c.Claimed + c.Completed + c.Retried + c.Released + c.Reaped +
		c.Failed + c.Reprocessed + c.Cleared + c.Purged + c.Damaged
}

// find gives the place of a live message.
func (s *State) find(id string) int {
	return slices.IndexFunc(s.live, func(m message) bool { return m.id == id })
}

func (s *State) enqueue(id string, body uint64) {
	s.seqs++
	s.counters.Enqueued++
	s.live = append(s.live, message{id: id, body: body, seq: s.seqs})
}

func (s *State) supersede(id string, body uint64) {
	i := s.find(id)
	s.live = slices.Delete(s.live, i, i+1)
	s.counters.Superseded++
	s.enqueue(id, body)
}

// claim leases the oldest that are not leased, and says which.
func (s *State) claim(n int) (ids []string) {
	for i := range s.live {
		if m := &s.live[i]; !m.leased && len(ids) < n {
			m.leased, m.returned = true, false
			m.attempts++
			s.counters.Claimed++
			ids = append(ids, m.id)
		}
	}
	return ids
}

func (s *State) take(id string) message {
	i := s.find(id)
	m := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)
	return m
}

func (s *State) ack(id string) {
	s.take(id)
	s.counters.Completed++
}

func (s *State) giveBack(id string, excused uint64, cause string) {
	m := &s.live[s.find(id)]
	m.leased, m.returned = false, true
	m.excused += excused
	m.cause = cmp.Or(cause, m.cause)
}

func (s *State) fail(id, cause string) {
	m := s.take(id)
	m.leased, m.cause = false, cause
	s.counters.Failed++
	at, _ := slices.BinarySearchFunc(s.failed, id, func(m message, id string) int { return cmp.Compare(m.id, id) })
	s.failed = slices.Insert(s.failed, at, m)
}

// reprocess puts a failed message back at its old place, its attempts excused.
func (s *State) reprocess(id string) {
	m := s.purge(id)
	m.returned, m.excused = true, m.attempts
	s.counters.Reprocessed++
	at, _ := slices.BinarySearchFunc(s.live, m.seq, func(m message, seq uint64) int { return cmp.Compare(m.seq, seq) })
	s.live = slices.Insert(s.live, at, m)
}

func (s *State) purge(id string) message {
	i := slices.IndexFunc(s.failed, func(m message) bool { return m.id == id })
	m := s.failed[i]
	s.failed = slices.Delete(s.failed, i, i+1)
	return m
}
