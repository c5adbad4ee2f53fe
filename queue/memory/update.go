package memory

import (
	"context"
	"time"

	"example.com/holdfast/queue"
)

// Update makes several changes in one revision, in order and across queues: all of
// them or none. An outcome stands at the index of its change. A refusal is a
// *queue.UpdateError.
func (s *Store) Update(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
	if err := queue.CheckChanges(changes); err != nil {
		return nil, err
	}
	arrivals := make([]arrival, len(changes))
	for i, c := range changes {
		if c, ok := c.(queue.EnqueueChange); ok {
			var err error
			if arrivals[i], err = s.arrive(c.Message); err != nil {
				return nil, &queue.UpdateError{Index: i, Err: err}
			}
		}
	}
	out := make([]queue.Outcome, len(changes))
	err := s.change(ctx, func(d *draft) error {
		for i, c := range changes {
			var err error
			if out[i], err = d.apply(c, arrivals[i]); err != nil {
				return &queue.UpdateError{Index: i, Err: err}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// apply makes one change of an Update. The arrival is that of an enqueue.
func (d *draft) apply(c queue.Change, a arrival) (out queue.Outcome, err error) {
	switch c := c.(type) {
	case queue.EnqueueChange:
		out.Enqueued, err = d.enqueue(c.Queue, a)
	case queue.ClaimChange:
		if c.Options, err = c.Options.Checked(); err == nil {
			out.Claimed = d.claim(c.Queue, c.Options)
		}
	case queue.AckChange:
		err = d.ack(c.Receipt)
	case queue.ReleaseChange:
		err = d.release(c.Receipt, c.Options)
	case queue.RetryChange:
		if c.Options, err = c.Options.Checked(); err == nil {
			out.Returned, err = d.retry(c.Receipt, c.Options)
		}
	case queue.ExtendChange:
		if c.Lease, err = queue.CheckLease(c.Lease); err == nil {
			out.Deadline, err = d.extend(c.Receipt, c.Lease)
		}
	case queue.FailChange:
		if c.Options, err = c.Options.Checked(); err == nil {
			out.Failed, err = d.fail(c.Receipt, c.Options)
		}
	case queue.CursorChange:
		d.set(c.Queue, func(f *figures) { f.cursor = c.Cursor })
	}
	return out, err
}

// Cursor reads a queue's cursor; empty: none was set.
func (s *Store) Cursor(ctx context.Context, name string) (string, error) {
	if err := queue.CheckQueue(name); err != nil {
		return "", err
	}
	var cursor string
	err := s.look(ctx, func(st *state, _ time.Time) error {
		if q := st.queues[name]; q != nil {
			cursor = q.cursor
		}
		return nil
	})
	return cursor, err
}
