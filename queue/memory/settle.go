package memory

import (
	"bytes"
	"context"
	"fmt"

	"example.com/holdfast/queue"
)

// held gives the message whose claim is exactly the one that r proves, and its queue,
// or says why r is no longer good. After a reaping the last receipt stays good until
// the next claim; every other return ends it at once.
func (d *draft) held(r queue.Receipt) (*queueState, *message, error) {
	if r.Store != d.st.id {
		return nil, nil, fmt.Errorf("%s names store %s, this is %s: %w", r, r.Store, d.st.id, queue.ErrInvalidReceipt)
	}
	var s slot
	if q := d.st.queues[r.Queue]; q != nil {
		s = q.slots[r.ID]
	}
	switch {
	case s == slot{}:
		return nil, nil, lost(r, 0, "settled, cleared or failed", queue.ErrGone)
	case s.claimed != nil && s.claimed.generation == r.Generation:
		m := s.claimed
		switch {
		case m.attempts != r.Attempt:
			return nil, nil, lost(r, m.attempts, "claimed again", queue.ErrStale)
		case m.phase != leased && m.phase != reaped:
			return nil, nil, lost(r, m.attempts, string(m.phase), queue.ErrStale)
		}
		return d.queue(r.Queue), m, nil
	case s.pending != nil && s.pending.generation == r.Generation:
		return nil, nil, lost(r, s.pending.attempts, "not claimed", queue.ErrStale)
	}
	return nil, nil, lost(r, 0, "settled, cleared or failed; another generation of the ID is live", queue.ErrGone)
}

func lost(r queue.Receipt, current uint64, reason string, err error) error {
	return &queue.LostError{Queue: r.Queue, ID: r.ID, Attempt: r.Attempt, Current: current, Reason: reason, Err: err}
}

// Ack settles a message for good. Refusals: queue.ErrStale, queue.ErrGone,
// queue.ErrInvalidReceipt. A deadline that has passed does not spoil a receipt; only
// another claim does.
func (s *Store) Ack(ctx context.Context, r queue.Receipt) error {
	return s.change(ctx, func(d *draft) error { return d.ack(r) })
}

func (d *draft) ack(r queue.Receipt) error {
	q, m, err := d.held(r)
	if err != nil {
		return err
	}
	q.counters.Completed++
	d.remove(q, m)
	return nil
}

// Fail moves a message to the failed ones under o.As, or its ID, and gives that name.
// Refusals: queue.ErrStale, queue.ErrGone; queue.ErrFailedExists, and the claim stays
// as it was.
func (s *Store) Fail(ctx context.Context, r queue.Receipt, o queue.FailOptions) (string, error) {
	o, err := o.Checked()
	if err != nil {
		return "", err
	}
	var as string
	err = s.change(ctx, func(d *draft) (err error) {
		as, err = d.fail(r, o)
		return err
	})
	return as, err
}

func (d *draft) fail(r queue.Receipt, o queue.FailOptions) (string, error) {
	q, m, err := d.held(r)
	if err != nil {
		return "", err
	}
	name := failedName{q.failedNS, o.As}
	if o.As == "" {
		name.name = r.ID
	}
	if f := d.st.failed[name]; f != nil {
		return "", fmt.Errorf("failed %q, from %s/%s: %w", name.name, f.queue, f.message.id, queue.ErrFailedExists)
	}
	c := *m
	if o.Cause != "" {
		c.lastError = o.Cause
	}
	d.bury(q, &c, name)
	return name.name, nil
}

// ReplacePayload gives a claimed message another payload. The generation, the claim
// and the place in the line stay. Refusals: queue.ErrStale, queue.ErrGone,
// queue.ErrInvalidPayload, queue.ErrTooLarge.
func (s *Store) ReplacePayload(ctx context.Context, r queue.Receipt, payload []byte) error {
	if err := s.checkPayload(payload); err != nil {
		return err
	}
	payload = bytes.Clone(payload)
	return s.change(ctx, func(d *draft) error { return d.replacePayload(r, payload) })
}

func (d *draft) replacePayload(r queue.Receipt, payload []byte) error {
	q, m, err := d.held(r)
	if err != nil {
		return err
	}
	c := *m
	c.payload = payload
	d.replace(q, &c)
	return nil
}
