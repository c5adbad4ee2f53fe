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
	e := d.st.failedEntry(space, name)
	if e == nil {
		return fmt.Errorf("%q: %w", name, queue.ErrNotFailed)
	}
	if err := d.unlessImporting(e.queue); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	var pending *ref
	if old := d.st.queue(e.queue); old != nil {
		if s, _ := old.find(e.id); s != nil {
			if s.claimed != nil {
				return fmt.Errorf("%q: %s/%s is %s: %w", name, e.queue, e.id, s.standing(), queue.ErrInFlight)
			}
			pending = s.pending
		}
	}
	if err := d.fits(fmt.Sprintf("%q", name), slotBytes); err != nil {
		return err
	}
	if err := d.promise(e.queue); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	d.bytes += slotBytes

	c := &claim{ref: e.ref, returned: reprocessed}
	c.excused, c.lapses = c.attempts, 0
	q := d.queue(e.queue)
	if c.seq >= q.next || q.has(c.seq) { // never by our own doing; two of one place must not be committed
		c.seq = q.next
		q.next++
	}
	q.counters.Reprocessed++
	d.unbury(space, name)
	q.put(e.id, pending, c)
	if i, ok := d.itemOf[c.gen]; ok { // its payload is still to be written
		it := d.items[i]
		it.space, it.failed = "", ""
		d.write(it)
	}
	return nil
}

// has reports whether a live message of q has that sequence.
func (q *queueState) has(seq uint64) bool {
	for _, s := range q.slots {
		if s.pending != nil && s.pending.seq == seq || s.claimed != nil && s.claimed.seq == seq {
			return true
		}
	}
	return false
}
