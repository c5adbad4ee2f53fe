//go:build unix

package holdfast

import (
	"cmp"
	"fmt"
	"slices"
)

// sound says which two references of the state cannot both be there, or nil: of those
// that stand inline, or of all, runs included. The decoder says it of what stands in
// state.json, with the place; what a run brings was checked on its own only.
func (st *state) sound(all bool) error {
	for _, q := range st.queues {
		if err := q.sound(st.reader, all); err != nil {
			return err
		}
	}
	for _, f := range st.failed {
		if err := f.sound(st.reader, all); err != nil {
			return err
		}
	}
	seen := map[generation]bool{}
	var extents []extent
	var twice error
	note := func(_, _ string, r *ref) bool {
		if seen[r.gen] {
			twice = fmt.Errorf("generation %s twice", r.gen)
			return false
		}
		seen[r.gen] = true
		if !r.object.zero() { // else its payload is to be written with this commit
			extents = append(extents, extent{r.object, r.off, r.off + r.size, 0})
		}
		return true
	}
	if !all {
		st.inlineRefs(note)
	} else if err := st.refs(note); err != nil {
		return err
	}
	if twice != nil {
		return twice
	}
	slices.SortFunc(extents, compareExtents)
	for i := 1; i < len(extents); i++ {
		if a, b := &extents[i-1], &extents[i]; a.object == b.object && a.end > b.off {
			return fmt.Errorf("bytes %d to %d of object %s twice", b.off, min(a.end, b.end), b.object)
		}
	}
	return nil
}

// sound says which ID or sequence two messages of the queue have.
func (q *queueState) sound(reader runReader, all bool) error {
	seqs := map[uint64]bool{}
	note := func(s *slot) error {
		for _, r := range s.refs() {
			if seqs[r.seq] {
				return fmt.Errorf("queue %q: sequence %d twice", q.name, r.seq)
			}
			seqs[r.seq] = true
		}
		return nil
	}
	for _, s := range q.slots {
		if err := note(s); err != nil {
			return err
		}
	}
	if !all {
		return nil
	}
	ids := map[string]bool{}
	for _, r := range q.runs {
		b, err := reader.members(r)
		if err != nil {
			return err
		}
		for i, s := range b.slots {
			if !r.has(i) {
				continue
			}
			if inline, _ := q.find(s.id); inline != nil || ids[s.id] {
				return fmt.Errorf("queue %q: ID %q twice", q.name, s.id)
			}
			ids[s.id] = true
			if err := note(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// sound says which name two failed messages of the namespace have.
func (f *failedSpace) sound(reader runReader, all bool) error {
	if !all {
		return nil // the entries are sorted
	}
	names := map[string]bool{}
	var twice error
	err := f.eachSealed(reader, func(e *failedEntry) bool {
		if _, inline := failedIndex(f.entries, e.name); inline || names[e.name] {
			twice = fmt.Errorf("failed namespace %q: name %q twice", f.name, e.name)
		}
		names[e.name] = true
		return twice == nil
	})
	return cmp.Or(twice, err)
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
