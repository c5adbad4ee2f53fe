//go:build unix

package holdfast

import (
	"cmp"
	"fmt"
	"slices"
)

// A soundness is told of every reference of a state, once each, and says which two of
// them cannot both be there. The decoder says it of what stands in state.json, with the
// place; what a run brings was checked on its own only.
type soundness struct {
	seqs  map[uint64]bool // of the queue
	ids   map[string]bool // of the queue's members of runs
	names map[string]bool // of the namespace's members of runs

	seen    map[generation]bool
	extents []extent

	clash, twice error // the first of each kind
}

func newSoundness() *soundness { return &soundness{seen: map[generation]bool{}} }

// queue begins with the slots of another queue: first those that stand inline.
func (c *soundness) queue() { c.seqs, c.ids = map[uint64]bool{}, map[string]bool{} }

// slot notes one that stands inline.
func (c *soundness) slot(q *queueState, s *slot) {
	for _, r := range s.refs() {
		if c.seqs[r.seq] && c.clash == nil {
			c.clash = fmt.Errorf("queue %q: sequence %d twice", q.name, r.seq)
		}
		c.seqs[r.seq] = true
		c.ref(r)
	}
}

// member notes one that lies in a run.
func (c *soundness) member(q *queueState, s *slot) {
	if inline, _ := q.find(s.id); (inline != nil || c.ids[s.id]) && c.clash == nil {
		c.clash = fmt.Errorf("queue %q: ID %q twice", q.name, s.id)
	}
	c.ids[s.id] = true
	c.slot(q, s)
}

// space begins with the failed messages of another namespace. Those that stand inline are
// sorted, and need no look but at their references.
func (c *soundness) space() { c.names = map[string]bool{} }

// buried notes a failed message that lies in a run.
func (c *soundness) buried(f *failedSpace, e *failedEntry) {
	names := c.names
	if _, inline := failedIndex(f.entries, e.name); inline || names[e.name] {
		c.clash = cmp.Or(c.clash, fmt.Errorf("failed namespace %q: name %q twice", f.name, e.name))
	}
	names[e.name] = true
	c.ref(&e.ref)
}

func (c *soundness) ref(r *ref) {
	if c.seen[r.gen] && c.twice == nil {
		c.twice = fmt.Errorf("generation %s twice", r.gen)
	}
	c.seen[r.gen] = true
	if !r.object.zero() { // else its payload is to be written with this commit
		c.extents = append(c.extents, extent{r.object, r.off, r.off + r.size, 0})
	}
}

// verdict is asked for last.
func (c *soundness) verdict() error {
	if err := cmp.Or(c.clash, c.twice); err != nil {
		return err
	}
	slices.SortFunc(c.extents, compareExtents)
	for i := 1; i < len(c.extents); i++ {
		if a, b := &c.extents[i-1], &c.extents[i]; a.object == b.object && a.end > b.off {
			return fmt.Errorf("bytes %d to %d of object %s twice", b.off, min(a.end, b.end), b.object)
		}
	}
	return nil
}

// sound says which two references of the state cannot both be there, or nil: of those
// that stand inline, or of all, runs included.
func (st *state) sound(all bool) error {
	c := newSoundness()
	for _, q := range st.queues {
		c.queue()
		for _, s := range q.slots {
			c.slot(q, s)
		}
		for _, r := range q.runs {
			if !all {
				break
			}
			b, err := st.reader.members(r)
			if err != nil {
				return err
			}
			for i, s := range b.slots {
				if r.has(i) {
					c.member(q, s)
				}
			}
		}
	}
	for _, f := range st.failed {
		c.space()
		for _, e := range f.entries {
			c.ref(&e.ref)
		}
		if !all {
			continue
		}
		err := f.eachSealed(st.reader, func(e *failedEntry) bool {
			c.buried(f, e)
			return true
		})
		if err != nil {
			return err
		}
	}
	return c.verdict()
}

// refs gives the references of a slot, the older first.
func (s *slot) refs() []*ref {
	switch {
	case s.claimed == nil:
		return []*ref{s.pending}
	case s.pending == nil:
		return []*ref{&s.claimed.ref}
	}
	return []*ref{&s.claimed.ref, s.pending}
}
