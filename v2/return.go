//go:build unix

package holdfast

import (
	"time"

	"example.com/holdfast/queue"
)

// How a claim comes back without ending the message. The generation stays on the
// claimed side, at its old place in the line.

// back gives the claim of s as it comes back. A reaping had counted the attempt as a
// lapse; the receipt was still good, so it is the receipt that ends the claim.
func (s *slot) back(how returned) *claim {
	c := &claim{ref: s.claimed.ref, returned: how}
	if s.claimed.returned == reaped {
		c.lapses--
	}
	return c
}

// release returns a message, at once or after a delay, and excuses the attempt.
func (d *draft) release(r queue.Receipt, delay time.Duration) error {
	s, err := d.held(r)
	if err != nil {
		return err
	}
	c := s.back(released)
	c.excused++
	c.notBefore = d.after(delay)
	q := d.queue(r.Queue)
	q.counters.Released++
	q.put(s.id, s.pending, c)
	return nil
}

// retry returns a message after a failure, or moves it to failed when it has failed
// so many times.
func (d *draft) retry(r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	s, err := d.held(r)
	if err != nil {
		return queue.Returned{}, err
	}
	c := s.back(retried)
	if o.Cause != "" {
		c.lastError = o.Cause
	}
	out := queue.Returned{Queue: r.Queue, ID: r.ID, Attempt: c.attempts}
	if c.failures() >= o.MaxFailures {
		out.FailedName = d.giveUp(r.Queue, s, c.ref)
		return out, nil
	}
	if o.Cause != "" {
		c.lastError = d.text(o.Cause)
	}
	if c.notBefore = d.after(o.Delay); c.notBefore != 0 {
		out.NotBefore = time.UnixMilli(c.notBefore)
	}
	q := d.queue(r.Queue)
	q.counters.Retried++
	q.put(s.id, s.pending, c)
	return out, nil
}

// giveUp moves a message that met a cap to failed, under a name that is free.
func (d *draft) giveUp(queueName string, s *slot, r ref) (failedName string) {
	space := d.st.queue(queueName).failedNS
	name := d.freeName(space, s.id, r.gen)
	d.bury(d.finish(queueName, s), space, name, s.id, r)
	return name
}

// extend moves the deadline of a claim. One that was reaped and not claimed since
// goes back into processing, as if it had not been reaped; what the counters say
// stays.
func (d *draft) extend(r queue.Receipt, length time.Duration) (time.Time, error) {
	s, err := d.held(r)
	if err != nil {
		return time.Time{}, err
	}
	c := &claim{ref: s.claimed.ref, lease: d.timed(s.claimed.lease, length)}
	if s.claimed.returned == reaped {
		if d.st.queue(r.Queue).line.leased(c.key) > 0 {
			return time.Time{}, lost(r, c.attempts, "reaped, and another message of its key is claimed", queue.ErrStale)
		}
		c.lapses--
	}
	q := d.queue(r.Queue)
	q.put(s.id, s.pending, c)
	if c.lease.deadline == 0 {
		return time.Time{}, nil
	}
	return time.UnixMilli(c.lease.deadline), nil
}
