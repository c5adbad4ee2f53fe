package memory

import (
	"bytes"
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
		var err error
		switch c := c.(type) {
		case queue.EnqueueChange:
			arrivals[i], err = s.arrive(c.Message)
		case queue.ReplacePayloadChange:
			if err = s.checkPayload(c.Payload); err == nil {
				arrivals[i].message.payload = bytes.Clone(c.Payload)
			}
		}
		if err != nil {
			return nil, &queue.UpdateError{Index: i, Err: err}
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

// apply makes one change of an Update. The arrival is that of an enqueue, or holds the
// payload that replaces another.
func (d *draft) apply(c queue.Change, a arrival) (out queue.Outcome, err error) {
	switch c := c.(type) {
	case queue.EnqueueChange:
		out.Enqueued, err = d.enqueue(c.Queue, a)
	case queue.ClaimChange:
		if c.Options, err = c.Options.Checked(); err == nil {
			out.Claimed = d.claim(c.Queue, c.Options)
		}
	case queue.LoadChange:
		if c.Options, err = c.Options.Checked(); err == nil {
			var loaded queue.Delivery
			if loaded, err = d.load(c.Queue, c.ID, c.Options); err == nil {
				out.Claimed.Deliveries = []queue.Delivery{loaded}
			}
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
	case queue.ReplacePayloadChange:
		err = d.replacePayload(c.Receipt, a.message.payload)
	case queue.ReapChange:
		out.Returned, err = d.reapNamed(c)
	case queue.ReprocessChange:
		err = d.reprocess(failedName{c.Options.Namespace, c.FailedName})
	case queue.PurgeChange:
		err = d.purge(failedName{c.Options.Namespace, c.FailedName})
	case queue.CursorChange:
		d.set(c.Queue, func(f *figures) { f.cursor = c.Cursor })
	}
	return out, err
}

// reapNamed ends one named claim.
func (d *draft) reapNamed(c queue.ReapChange) (queue.Returned, error) {
	o, err := queue.ReapOptions{Receipt: &c.Receipt, MaxLapses: c.MaxLapses}.Checked()
	if err != nil {
		return queue.Returned{}, err
	}
	out, err := d.reapOne(c.Receipt, o.MaxLapses)
	if err != nil {
		return queue.Returned{}, err
	}
	return out[0], nil
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
