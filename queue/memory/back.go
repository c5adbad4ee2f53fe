package memory

import (
	"context"
	"time"

	"example.com/holdfast/queue"
)

// mended gives a copy of a held message on which a reaping has left no trace: the
// lapse was none, for the worker was still there.
func mended(m *message) *message {
	c := *m
	if c.phase == reaped {
		c.lapses--
	}
	return &c
}

// Retry returns a message after a failure, or moves it to failed at the cap of real
// failures, under a name that is free. Refusals: queue.ErrStale, queue.ErrGone.
func (s *Store) Retry(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	o, err := o.Checked()
	if err != nil {
		return queue.Returned{}, err
	}
	var out queue.Returned
	err = s.change(ctx, func(d *draft) (err error) {
		out, err = d.retry(r, o)
		return err
	})
	return out, err
}

func (d *draft) retry(r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	q, m, err := d.held(r)
	if err != nil {
		return queue.Returned{}, err
	}
	out := queue.Returned{Queue: r.Queue, ID: r.ID, Attempt: r.Attempt}
	c := mended(m)
	if o.Cause != "" {
		c.lastError = o.Cause
	}
	if c.failures() >= o.MaxFailures {
		out.FailedName = d.buryFree(q, c)
		return out, nil
	}
	c.phase, c.notBefore = retried, d.dueAfter(o.Delay)
	q.counters.Retried++
	d.replace(q, c)
	out.NotBefore = c.notBefore
	return out, nil
}

// dueAfter gives the schedule of a message that comes back; zero: due at once.
func (d *draft) dueAfter(delay time.Duration) time.Time {
	if delay == 0 {
		return time.Time{}
	}
	return d.after(delay)
}

// Release returns a message, excused: at once, or after a delay (a snooze). Refusals:
// queue.ErrStale, queue.ErrGone.
func (s *Store) Release(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
	o, err := o.Checked()
	if err != nil {
		return err
	}
	return s.change(ctx, func(d *draft) error { return d.release(r, o) })
}

func (d *draft) release(r queue.Receipt, o queue.ReleaseOptions) error {
	q, m, err := d.held(r)
	if err != nil {
		return err
	}
	c := mended(m)
	c.excused++
	c.phase, c.notBefore = released, d.dueAfter(o.Delay)
	q.counters.Released++
	d.replace(q, c)
	return nil
}

// Extend moves the deadline to now + lease and returns it; zero: none. It takes a
// reaped message that nobody claimed since back into processing, with its label and
// fence. Refusals: queue.ErrStale, also when another message of its key was claimed
// meanwhile; queue.ErrGone.
func (s *Store) Extend(ctx context.Context, r queue.Receipt, lease time.Duration) (time.Time, error) {
	lease, err := queue.CheckLease(lease)
	if err != nil {
		return time.Time{}, err
	}
	var deadline time.Time
	err = s.change(ctx, func(d *draft) (err error) {
		deadline, err = d.extend(r, lease)
		return err
	})
	return deadline, err
}

func (d *draft) extend(r queue.Receipt, length time.Duration) (time.Time, error) {
	q, m, err := d.held(r)
	if err != nil {
		return time.Time{}, err
	}
	if m.phase == reaped && q.leasedKeys[m.key] {
		return time.Time{}, lost(r, m.attempts, "reaped, and another message of its key is claimed", queue.ErrStale)
	}
	c := mended(m)
	c.phase, c.lease.deadline = leased, d.deadline(length)
	d.replace(q, c)
	return c.lease.deadline, nil
}
