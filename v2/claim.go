//go:build unix

package holdfast

import (
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// A taking is a claim's or a load's options, checked and filled in.
type taking struct {
	max    int
	lease  time.Duration // queue.NoDeadline: none
	holder token
	label  string
}

// A loader reads and checks the payload of r. damage is why it can never be
// delivered; err is why it cannot be read now, which moves nothing.
type loader func(r *ref) (payload []byte, damage string, err error)

// claim leases the oldest due messages. Messages with a damaged payload go to
// failed instead; a payload that cannot be read now refuses the whole claim.
func (d *draft) claim(name string, t taking, load loader) (queue.Claimed, error) {
	q := d.st.queue(name)
	if q == nil || q.paused {
		return queue.Claimed{}, nil
	}
	type choice struct {
		slot    *slot
		ref     *ref
		payload []byte
		damage  string
	}
	var chosen []choice
	for i, whole := 0, 0; i < len(q.line) && whole < t.max; i++ {
		s, _ := q.find(q.line[i].id)
		r, due := s.due(q.line[i].seq, d.millis)
		if !due {
			continue
		}
		payload, damage, err := load(r)
		if err != nil {
			return queue.Claimed{}, err
		}
		if damage == "" {
			whole++
		}
		chosen = append(chosen, choice{s, r, payload, damage})
	}
	if chosen == nil {
		return queue.Claimed{}, nil
	}
	var out queue.Claimed
	q = d.queue(name)
	for _, c := range chosen {
		if c.damage != "" {
			out.Damaged = append(out.Damaged, d.setAside(q, c.slot, c.ref, c.damage))
		} else {
			out.Deliveries = append(out.Deliveries, d.take(q, c.slot, c.ref, t, c.payload))
		}
	}
	return out, nil
}

// due gives the reference of s with the sequence seq, and whether a claim may take
// it now: its time has come, and no older generation of its ID is in flight.
func (s *slot) due(seq uint64, millis int64) (*ref, bool) {
	if s.claimed != nil && s.claimed.seq == seq {
		return &s.claimed.ref, s.claimed.ready(millis)
	}
	return s.pending, s.claimed == nil && s.pending.ready(millis)
}

// load claims one named message whatever its schedule. A lease without a deadline
// or past it is taken over, which is a reaping and a claim in one.
func (d *draft) load(name, id string, t taking, load loader) (queue.Delivery, error) {
	var s *slot
	if q := d.st.queue(name); q != nil {
		s, _ = q.find(id)
	}
	if s == nil {
		return queue.Delivery{}, fmt.Errorf("%s/%s: %w", name, id, queue.ErrNotFound)
	}
	r := s.pending
	if c := s.claimed; c != nil {
		r = &c.ref
		if c.returned == leased && c.lease.deadline != 0 && !c.lease.over(d.now) {
			until := time.UnixMilli(c.lease.deadline).UTC().Format(time.RFC3339)
			return queue.Delivery{}, fmt.Errorf("%s/%s until %s, attempt %d, label %q: %w", name, id, until, c.attempts, c.lease.label, queue.ErrLeased)
		}
	}
	payload, damage, err := load(r)
	if err != nil {
		return queue.Delivery{}, err
	}
	q := d.queue(name)
	if damage != "" {
		return queue.Delivery{}, d.setAside(q, s, r, damage)
	}
	return d.take(q, s, r, t, payload), nil
}

// take leases the generation r of s.
func (d *draft) take(q *queueState, s *slot, r *ref, t taking, payload []byte) queue.Delivery {
	c := &claim{ref: *r}
	pending := s.pending
	switch {
	case s.claimed == nil: // the pending generation moves over
		pending = nil
		q.leave(r.seq)
	case s.claimed.returned == leased: // taken over
		c.lapses++
		q.counters.Reaped++
	default: // returned before
		q.leave(r.seq)
	}
	failures := c.failures()
	c.attempts++
	c.notBefore = 0
	d.st.fence++
	c.lease = d.newLease(t)
	q.counters.Claimed++
	q.put(s.id, pending, c)
	d.bytes += int64(120 + written(c.lease.label))

	delivery := queue.Delivery{
		Receipt:    d.receipt(q.name, s.id, c),
		Payload:    payload,
		Key:        c.key,
		Fence:      d.st.fence,
		EnqueuedAt: time.UnixMilli(c.enqueued),
		LastError:  c.lastError,
		Failures:   failures,
		Lapses:     c.lapses,
	}
	if c.lease.deadline != 0 {
		delivery.Deadline = time.UnixMilli(c.lease.deadline)
	}
	return delivery
}

func (d *draft) newLease(t taking) lease {
	l := lease{holder: t.holder, label: t.label, fence: d.st.fence}
	if d.crowded(written(l.label)) {
		l.label = ""
	}
	if t.lease == queue.NoDeadline {
		return l
	}
	l.deadline = d.millis + t.lease.Milliseconds()
	if d.now.BootID != "" {
		l.bootID = d.now.BootID
		l.bootEnds = (d.now.Boot + t.lease).Milliseconds()
	}
	return l
}

func (d *draft) receipt(queueName, id string, c *claim) queue.Receipt {
	return receiptOf(d.st.store, queueName, id, c)
}

func receiptOf(store token, queueName, id string, c *claim) queue.Receipt {
	return queue.Receipt{Store: store.String(), Queue: queueName, ID: id, Generation: c.gen.String(), Attempt: c.attempts}
}
