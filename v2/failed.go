//go:build unix

package holdfast

import (
	"fmt"
	"slices"

	"example.com/holdfast/queue"
)

// bury adds the evidence of a message that left q. The name must be free.
func (d *draft) bury(q *queueState, space, name, id string, r ref) {
	f := d.space(space)
	i, taken := failedIndex(f.entries, name)
	if taken {
		panic("holdfast: a failed name is taken twice")
	}
	r.notBefore = 0 // it has no schedule any more
	r.lastError = d.text(r.lastError)
	f.entries = slices.Insert(f.entries, i, &failedEntry{name: name, queue: q.name, id: id, ref: r, at: d.millis})
	q.counters.Failed++
	if i, ok := d.itemOf[r.gen]; ok { // its payload is still to be written
		it := d.items[i]
		it.space, it.failed = space, name
		d.write(it)
	}
	d.bytes += int64(len(name) + len(q.name) + len(id) + slotBytes)
}

// freeName is the failed name for a message that a cap or damage moves: its ID, or
// ID~generation where that is taken, which no other generation has. In a state that
// something else wrote it may be taken all the same.
//
// Such a message is never held back because a run of failed ones cannot be read: its ID
// then counts as taken, and ID~generation as free, which needs no look-up to be so.
func (d *draft) freeName(space, id string, gen generation) string {
	if e, _, err := d.st.lookFailed(space, id); e == nil && err == nil {
		return id
	}
	taken := func(name string) bool {
		e, _, _ := d.st.lookFailed(space, name) // of an error: see above
		return e != nil
	}
	name := id + "~" + gen.String()
	for n := 2; taken(name); n++ {
		name = fmt.Sprintf("%s~%s-%d", id, gen, n)
	}
	return name
}

// setAside moves a message whose payload is damaged to failed.
func (d *draft) setAside(q *queueState, s *slot, r *ref, reason string) *queue.DamagedError {
	failed := *r
	failed.lastError = queue.CutError("damaged payload: " + reason)
	if s.claimed != nil && s.claimed.gen == r.gen {
		q.put(s.id, s.pending, nil)
	} else {
		q.put(s.id, nil, s.claimed)
	}
	name := d.freeName(q.failedNS, s.id, r.gen)
	d.bury(q, q.failedNS, name, s.id, failed)
	q.counters.Damaged++
	return &queue.DamagedError{Queue: q.name, ID: s.id, FailedName: name, Reason: reason}
}

// purge removes evidence.
func (d *draft) purge(space, name string) error {
	e, in, err := d.found(space, name)
	if err != nil {
		return err
	}
	if err := d.unlessImporting(e.queue); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if err := d.takeOut(space, e, in); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	d.queue(e.queue).counters.Purged++
	return nil
}

// found gives the named evidence and the run that it lies in; nil: it stands inline.
func (d *draft) found(space, name string) (*failedEntry, *failedRun, error) {
	e, in, err := d.st.lookFailed(space, name)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%q: %w", name, err)
	case e == nil:
		return nil, nil, fmt.Errorf("%q: %w", name, queue.ErrNotFailed)
	}
	return e, in, nil
}

// unbury takes the named evidence, which stands inline, out of its namespace.
func (d *draft) unbury(space, name string) {
	f := d.space(space)
	i, _ := failedIndex(f.entries, name)
	f.entries = slices.Delete(f.entries, i, i+1)
	d.unlessEmpty(f)
}

// unlessEmpty keeps a namespace of the draft's own for as long as anything is in it.
func (d *draft) unlessEmpty(f *failedSpace) {
	if len(f.entries) == 0 && len(f.runs) == 0 {
		i, _ := d.st.spaceIndex(f.name)
		d.st.failed = slices.Delete(d.st.failed, i, i+1)
		delete(d.ownNS, f.name)
	}
}

// clear removes the pending and returned messages of a queue, and the leased ones
// when asked.
func (d *draft) clear(name string, leasedToo bool) (uint64, error) {
	if err := d.unlessImporting(name); err != nil {
		return 0, err
	}
	old := d.st.queue(name)
	if old == nil {
		return 0, nil
	}
	var keep []*slot
	removed := uint64(old.live() - old.inline()) // what lies in runs
	for _, s := range old.slots {
		stays := s.claimed != nil && s.claimed.returned == leased && !leasedToo
		if s.pending != nil {
			removed++
		}
		if s.claimed != nil && !stays {
			removed++
		}
		switch {
		case stays && s.pending == nil:
			keep = append(keep, s)
		case stays:
			keep = append(keep, &slot{id: s.id, claimed: s.claimed})
		}
	}
	if removed == 0 {
		return 0, nil
	}
	q := d.queue(name)
	q.slots, q.runs = keep, nil
	q.buildLine()
	q.counters.Cleared += removed
	return removed, nil
}
