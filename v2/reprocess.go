//go:build unix

package holdfast

import (
	"fmt"

	"example.com/holdfast/queue"
)

// reprocess returns a failed message to its queue, at its old place and ahead of any
// pending generation of its ID. What it went through is forgiven: the attempts stay,
// for a receipt must never come twice, but all are excused, and no lapse is left.
func (d *draft) reprocess(space, name string) error {
	e, in, err := d.found(space, name)
	if err != nil {
		return err
	}
	// What it takes out of runs it leaves there when it is refused after that.
	err = d.atomically(func() error { return d.comeBack(space, e, in) })
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

// comeBack is reprocess of evidence that was found.
func (d *draft) comeBack(space string, e *failedEntry, in *failedRun) error {
	if err := d.unlessImporting(e.queue); err != nil {
		return err
	}
	var pending *ref
	if old := d.st.queue(e.queue); old != nil {
		s, err := d.st.look(old, e.id)
		if err != nil {
			return err
		}
		if s != nil {
			if s.claimed != nil {
				return fmt.Errorf("%s/%s is %s: %w", e.queue, e.id, s.standing(), queue.ErrInFlight)
			}
			pending = s.pending
		}
	}
	grows := int64(slotBytes)
	if in != nil { // nothing of it stands in the state yet
		grows += int64(len(e.text()))
	}
	if err := d.fits("reprocessing", grows); err != nil {
		return err
	}
	if err := d.promise(e.queue); err != nil {
		return err
	}
	if pending != nil {
		if err := d.unseal(e.queue, e.id); err != nil {
			return err
		}
	}
	d.bytes += grows

	c := &claim{ref: e.ref, returned: reprocessed}
	c.excused, c.lapses = c.attempts, 0
	q := d.queue(e.queue)
	taken, err := q.has(d.st.reader, c.seq)
	if err != nil {
		return err
	}
	if c.seq >= q.next || taken { // never by our own doing; two of one place must not be committed
		c.seq = q.next
		q.next++
	}
	q.counters.Reprocessed++
	if err := d.takeOut(space, e, in); err != nil {
		return err
	}
	q.put(e.id, pending, c)
	if i, ok := d.itemOf[c.gen]; ok { // its payload is still to be written
		it := d.items[i]
		it.space, it.failed = "", ""
		d.write(it)
	}
	return nil
}

// has reports whether a live message of q has that sequence.
func (q *queueState) has(reader runReader, seq uint64) (bool, error) {
	for _, s := range q.slots {
		if s.pending != nil && s.pending.seq == seq || s.claimed != nil && s.claimed.seq == seq {
			return true, nil
		}
	}
	for _, r := range q.runs {
		if seq < r.first || seq > r.last {
			continue
		}
		m, err := reader.members(r)
		if err != nil {
			return false, err
		}
		for i, s := range m.slots {
			if s.pending.seq == seq && r.has(i) {
				return true, nil
			}
		}
	}
	return false, nil
}
