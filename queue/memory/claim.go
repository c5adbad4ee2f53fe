package memory

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// Claim leases the oldest due messages of a queue, or under Fair those whose turn it
// is. Nothing due is an empty result. A claim alone never takes a lease over, not
// even an overdue one: Reap and Load do.
func (s *Store) Claim(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
	if err := queue.CheckQueue(name); err != nil {
		return queue.Claimed{}, err
	}
	o, err := o.Checked()
	if err != nil {
		return queue.Claimed{}, err
	}
	var out queue.Claimed
	err = s.change(ctx, func(d *draft) error {
		out = d.claim(name, o)
		return nil
	})
	return out, err
}

func (d *draft) claim(name string, o queue.ClaimOptions) queue.Claimed {
	q := d.st.queues[name]
	if q == nil || q.paused {
		return queue.Claimed{}
	}
	var chosen []*message
	if o.Fair {
		chosen = rotate(q.ready(d.now, len(q.line)), q.turn)
		chosen = chosen[:min(o.Max, len(chosen))]
	} else {
		chosen = q.ready(d.now, o.Max)
	}
	chosen = within(chosen, o.MaxBytes)
	if len(chosen) == 0 {
		return queue.Claimed{}
	}
	d.queue(name)
	if o.Fair {
		q.turn = chosen[len(chosen)-1].key
	}
	var out queue.Claimed
	for _, m := range chosen {
		out.Deliveries = append(out.Deliveries, d.take(q, m, o.Lease, o.Label, !o.WithoutHolder))
	}
	return out
}

// within gives the first of the messages that have that many bytes together, and one
// at least; 0: all.
func within(chosen []*message, most int64) []*message {
	bytes := int64(0)
	for i, m := range chosen {
		if bytes += int64(len(m.payload)); i > 0 && most > 0 && bytes > most {
			return chosen[:i]
		}
	}
	return chosen
}

// Load claims one named message, the older of two generations, whatever its schedule,
// its place among those of its key, and a pause. It takes over a lease that is past its
// deadline or has none, which counts as a lapse: its receipt is stale from then on.
// Refusals: queue.ErrNotFound; queue.ErrLeased, also when another message of its key is
// leased.
func (s *Store) Load(ctx context.Context, name, id string, o queue.LoadOptions) (queue.Delivery, error) {
	if err := checkNames(name, id); err != nil {
		return queue.Delivery{}, err
	}
	o, err := o.Checked()
	if err != nil {
		return queue.Delivery{}, err
	}
	var out queue.Delivery
	err = s.change(ctx, func(d *draft) (err error) {
		out, err = d.load(name, id, o)
		return err
	})
	return out, err
}

func checkNames(name, id string) error {
	if err := queue.CheckQueue(name); err != nil {
		return err
	}
	return queue.CheckID(id)
}

func (d *draft) load(name, id string, o queue.LoadOptions) (queue.Delivery, error) {
	var live []*message
	if q := d.st.queues[name]; q != nil {
		live = q.slots[id].generations()
	}
	if len(live) == 0 {
		return queue.Delivery{}, fmt.Errorf("%s/%s: %w", name, id, queue.ErrNotFound)
	}
	m, q := live[0], d.queue(name)
	switch {
	case m.phase == leased && m.lease.deadline.IsZero() && m.lease.held:
		return queue.Delivery{}, fmt.Errorf("%s/%s without a deadline, attempt %d, label %q: %w", name, id, m.attempts, m.lease.label, queue.ErrLeased)
	case m.phase == leased && !m.lease.deadline.IsZero() && !m.overdue(d.now):
		until := m.lease.deadline.UTC().Format(time.RFC3339)
		return queue.Delivery{}, fmt.Errorf("%s/%s until %s, attempt %d, label %q: %w", name, id, until, m.attempts, m.lease.label, queue.ErrLeased)
	case m.phase != leased && q.leasedKeys[m.key]:
		return queue.Delivery{}, fmt.Errorf("%s/%s: another message of its key %q: %w", name, id, m.key, queue.ErrLeased)
	}
	return d.take(q, m, o.Lease, o.Label, !o.WithoutHolder), nil
}

// take leases m. A pending generation moves to the claimed side by that.
func (d *draft) take(q *queueState, m *message, length time.Duration, label string, held bool) queue.Delivery {
	c := *m
	if c.phase == leased { // taken over: a reaping and a claim in one
		c.lapses++
		q.counters.Reaped++
	}
	failures := c.failures()
	c.attempts++
	c.notBefore = time.Time{}
	c.phase = leased
	c.lease = lease{deadline: d.deadline(length), label: label, fence: d.fence(), held: held}
	q.counters.Claimed++
	pending := q.slots[m.id].pending
	if pending == m {
		pending = nil
	}
	d.put(q, m.id, slot{pending: pending, claimed: &c})
	return queue.Delivery{
		Receipt:    d.st.receipt(q, &c),
		Payload:    bytes.Clone(c.payload),
		Key:        c.key,
		Fence:      c.lease.fence,
		Deadline:   c.lease.deadline,
		EnqueuedAt: c.enqueuedAt,
		LastError:  c.lastError,
		Failures:   failures,
		Lapses:     c.lapses,
	}
}

// deadline gives the end of a lease that begins now; zero: none.
func (d *draft) deadline(length time.Duration) time.Time {
	if length == queue.NoDeadline {
		return time.Time{}
	}
	return d.after(length)
}

func (st *state) receipt(q *queueState, m *message) queue.Receipt {
	return queue.Receipt{Store: st.id, Queue: q.name, ID: m.id, Generation: m.generation, Attempt: m.attempts}
}
