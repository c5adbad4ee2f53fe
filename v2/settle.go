//go:build unix

package holdfast

import (
	"fmt"

	"example.com/holdfast/queue"
)

// held gives the slot whose claim is exactly the one that r proves, or why r is no
// longer good. After a reaping the last receipt stays good until the next claim;
// every other return ends it at once. A good one waits while an import into the queue is
// open.
func (d *draft) held(r queue.Receipt) (*slot, error) {
	if r.Store != d.st.store.String() {
		return nil, fmt.Errorf("%s names store %s, this is %s: %w", r, r.Store, d.st.store, queue.ErrInvalidReceipt)
	}
	var s *slot
	if q := d.st.queue(r.Queue); q != nil {
		s, _ = q.find(r.ID)
	}
	switch {
	case s == nil:
		return nil, lost(r, 0, "settled, cleared or failed", queue.ErrGone)
	case s.claimed != nil && s.claimed.gen.String() == r.Generation:
		c := s.claimed
		switch {
		case c.attempts != r.Attempt:
			return nil, lost(r, c.attempts, "claimed again", queue.ErrStale)
		case !c.standing():
			return nil, lost(r, c.attempts, c.returned.String(), queue.ErrStale)
		}
		return s, d.unlessImporting(r.Queue)
	case s.pending != nil && s.pending.gen.String() == r.Generation:
		return nil, lost(r, s.pending.attempts, "not claimed", queue.ErrStale)
	}
	return nil, lost(r, 0, "settled, cleared or failed; another generation of the ID is live", queue.ErrGone)
}

func lost(r queue.Receipt, current uint64, reason string, err error) error {
	return &queue.LostError{Queue: r.Queue, ID: r.ID, Attempt: r.Attempt, Current: current, Reason: reason, Err: err}
}

// finish takes the claimed generation of s out of its queue.
func (d *draft) finish(queueName string, s *slot) *queueState {
	q := d.queue(queueName)
	q.put(s.id, s.pending, nil)
	return q
}

// ack ends a claim for good.
func (d *draft) ack(r queue.Receipt) error {
	s, err := d.held(r)
	if err != nil {
		return err
	}
	d.finish(r.Queue, s).counters.Completed++
	return nil
}

// fail moves a claimed message to failed under the name as, create-only.
func (d *draft) fail(r queue.Receipt, cause, as string) (string, error) {
	s, err := d.held(r)
	if err != nil {
		return "", err
	}
	if as == "" {
		as = r.ID
	}
	space := d.st.queue(r.Queue).failedNS
	e, _, err := d.st.lookFailed(space, as)
	if err != nil { // it may be there: nothing is put in its place
		return "", fmt.Errorf("failed %q, for %s/%s: %w", as, r.Queue, r.ID, err)
	}
	if e != nil {
		return "", fmt.Errorf("failed %q, from %s/%s: %w", as, e.queue, e.id, queue.ErrFailedExists)
	}
	failed := s.claimed.ref
	if cause != "" {
		failed.lastError = cause
	}
	q := d.finish(r.Queue, s)
	d.bury(q, space, as, s.id, failed)
	return as, nil
}

// replacePayload gives the claimed generation another payload. Generation, attempt
// and place stay.
func (d *draft) replacePayload(r queue.Receipt, payload []byte) error {
	s, err := d.held(r)
	if err != nil {
		return err
	}
	q := d.queue(r.Queue)
	c := *s.claimed
	c.object, c.off, c.size = token{}, 0, int64(len(payload)) // its object comes with the commit
	c.sum = checksum(payload)
	q.put(s.id, s.pending, &c)
	d.write(item{queue: r.Queue, id: s.id, gen: c.gen, payload: payload})
	return nil
}
