//go:build unix

package holdfast

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// A taking is a claim's or a load's options, checked and filled in.
type taking struct {
	max    int
	bytes  int64         // of payloads, the most behind the first; 0: no bound
	lease  time.Duration // queue.NoDeadline: none
	holder token
	label  string
	fair   bool
}

// A loader reads and checks the payload of r. damage is why it can never be
// delivered; err is why it cannot be read now, which moves nothing.
type loader func(r *ref) (payload []byte, damage string, err error)

// maxAside is about how many damaged messages go to failed in one hold of the lock: it takes
// a look at the disk for each. A claim by itself may set aside as many as it may take.
const maxAside = 1000

// claim leases the oldest due messages, or under fair rotation those whose turn it
// is. Messages with a damaged payload go to failed instead; a payload that cannot be
// read now refuses the claim. Where it stops at maxAside, it gives as many messages as it
// was asked for or more, damaged ones counted: with fewer, no other was due.
func (d *draft) claim(name string, t taking, load loader) (queue.Claimed, error) {
	var out queue.Claimed
	if err := d.unlessImporting(name); err != nil {
		return out, err
	}
	for len(out.Deliveries) < t.max {
		whole, damaged := len(out.Deliveries), len(out.Damaged)
		if err := d.claimReached(name, t, load, &out); err != nil {
			if whole+damaged > 0 {
				break // what was taken stands; the next claim meets the error
			}
			return queue.Claimed{}, err
		}
		d.aside += len(out.Damaged) - damaged
		if len(out.Damaged) == damaged || d.aside >= maxAside && len(out.Deliveries)+len(out.Damaged) >= t.max {
			break
		}
		// Behind a damaged message another may be due now: of its ID or key, or in a run.
	}
	return out, nil
}

// claimReached is claimSome with what it comes to brought back out of runs. On an error
// they are as before.
func (d *draft) claimReached(name string, t taking, load loader, out *queue.Claimed) error {
	q := d.st.queue(name)
	if q == nil || q.paused || len(q.runs) == 0 {
		return d.claimSome(name, t, load, out)
	}
	return d.atomically(func() error {
		if err := d.reach(name, t.max-len(out.Deliveries), t.fair); err != nil {
			return err
		}
		return d.claimSome(name, t, load, out)
	})
}

// claimSome takes what is due now and stands inline, up to t.max, to t.bytes or to the first
// that is damaged, and adds it to out; on an error nothing.
func (d *draft) claimSome(name string, t taking, load loader, out *queue.Claimed) error {
	q := d.st.queue(name)
	if q == nil || q.paused {
		return nil
	}
	q = q.at(d.millis)
	type choice struct {
		slot    *slot
		ref     *ref
		payload []byte
		damage  string
	}
	var chosen []choice
	whole, bytes := len(out.Deliveries), int64(0)
	for _, d := range out.Deliveries {
		bytes += int64(len(d.Payload))
	}
	for p := range q.turns(t.fair) {
		if whole == t.max || q.hides(p, d.millis, t.fair) {
			break
		}
		s, _ := q.find(p.id)
		r, _ := s.front()
		if whole > 0 && t.bytes > 0 && bytes+r.size > t.bytes {
			break
		}
		if err := r.countable(); err != nil {
			return fmt.Errorf("%s/%s: %w", name, s.id, err)
		}
		payload, damage, err := load(r)
		if err != nil {
			return err
		}
		chosen = append(chosen, choice{s, r, payload, damage})
		if damage != "" {
			break // once it is out of the way an older one may be due than the next one here
		}
		whole++
		bytes += r.size
	}
	if chosen == nil {
		return nil
	}
	q = d.queue(name)
	if q.behind(d.millis) {
		q.advance(d.millis)
	}
	var served *ref
	for _, c := range chosen {
		if c.damage != "" {
			out.Damaged = append(out.Damaged, d.setAside(q, c.slot, c.ref, c.damage))
			continue
		}
		out.Deliveries = append(out.Deliveries, d.take(q, c.slot, c.ref, t, c.payload))
		served = c.ref
	}
	if t.fair && served != nil {
		if q.turn = served.key; d.crowded(written(q.turn)) {
			q.turn = ""
		}
		d.bytes += int64(written(q.turn))
	}
	return nil
}

// turns gives what may be claimed now, in the order in which it is to be: of each
// key one message at most, for the next one waits until that is settled.
func (q *queueState) turns(fair bool) iter.Seq[place] {
	l := &q.line
	if fair {
		return l.rotation(q.turn)
	}
	return func(yield func(place) bool) {
		i, j := 0, 0
		for i < len(l.free) || j < len(l.heads) {
			var p place
			if j == len(l.heads) || i < len(l.free) && l.free[i].seq < l.heads[j].seq {
				p = l.free[i]
				i++
			} else {
				p = l.heads[j]
				j++
			}
			if !yield(p) {
				return
			}
		}
	}
}

// rotation gives one message of each key in the order of the keys, beginning behind
// the one that was served last. The messages without a key share one turn, which
// comes after the last key, and again each time around.
func (l *line) rotation(served string) iter.Seq[place] {
	return func(yield func(place) bool) {
		n := len(l.keys)
		start, found := slices.BinarySearch(l.keys, served)
		if found {
			start++
		}
		free := 0
		for i := range n + 1 {
			switch turn := (start + i) % (n + 1); {
			case turn < n:
				if !yield(l.head(l.keys[turn])) {
					return
				}
			case free < len(l.free):
				if !yield(l.free[free]) {
					return
				}
				free++
			}
		}
		for ; free < len(l.free); free++ {
			if !yield(l.free[free]) {
				return
			}
		}
	}
}

// load claims one named message whatever its schedule and its place in the lane of
// its key. A lease that has ended, and one without a deadline or a holder, is taken
// over, which is a reaping and a claim in one.
func (d *draft) load(name, id string, t taking, load loader, dead deaths) (queue.Delivery, error) {
	if err := d.unlessImporting(name); err != nil {
		return queue.Delivery{}, err
	}
	q := d.st.queue(name)
	s, err := d.st.look(q, id)
	if err != nil {
		return queue.Delivery{}, fmt.Errorf("%s/%s: %w", name, id, err)
	}
	if s == nil {
		return queue.Delivery{}, fmt.Errorf("%s/%s: %w", name, id, queue.ErrNotFound)
	}
	r := s.pending
	others := 0
	if c := s.claimed; c != nil {
		r = &c.ref
		if c.returned == leased {
			others-- // it counts itself
			_, ended, err := d.ended(c, dead)
			if err != nil {
				return queue.Delivery{}, err
			}
			if !ended && !(c.lease.deadline == 0 && c.lease.holder.zero()) {
				return queue.Delivery{}, fmt.Errorf("%s/%s %s, attempt %d, label %q: %w", name, id, c.lease.until(), c.attempts, c.lease.label, queue.ErrLeased)
			}
		}
	}
	if others += q.line.leased(r.key); others > 0 {
		return queue.Delivery{}, fmt.Errorf("%s/%s: another message of its key %q: %w", name, id, r.key, queue.ErrLeased)
	}
	if err := r.countable(); err != nil {
		return queue.Delivery{}, fmt.Errorf("%s/%s: %w", name, id, err)
	}
	payload, damage, err := load(r)
	if err != nil {
		return queue.Delivery{}, err
	}
	if err := d.unseal(name, id); err != nil {
		return queue.Delivery{}, fmt.Errorf("%s/%s: %w", name, id, err)
	}
	q = d.queue(name)
	if damage != "" {
		return queue.Delivery{}, d.setAside(q, s, r, damage)
	}
	return d.take(q, s, r, t, payload), nil
}

// until says in a clause how long the lease holds.
func (l *lease) until() string {
	if l.deadline == 0 {
		return "without a deadline"
	}
	return "until " + time.UnixMilli(l.deadline).UTC().Format(time.RFC3339)
}

// take leases the generation r of s.
func (d *draft) take(q *queueState, s *slot, r *ref, t taking, payload []byte) queue.Delivery {
	c := &claim{ref: *r}
	pending := s.pending
	switch {
	case s.claimed == nil: // the pending generation moves over
		pending = nil
	case s.claimed.returned == leased: // taken over
		c.lapses++
		q.counters.Reaped++
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
	return d.timed(l, t.lease)
}

// timed gives l with its deadline at now + for.
func (d *draft) timed(l lease, length time.Duration) lease {
	l.deadline, l.bootID, l.bootEnds = 0, "", 0
	ends := length != queue.NoDeadline
	if ends {
		length = (length + time.Millisecond - 1).Truncate(time.Millisecond) // never shorter than asked
		l.deadline = d.millis + length.Milliseconds()
	}
	if d.now.BootID != "" && (ends || !l.holder.zero()) {
		l.bootID = d.now.BootID // a holder of another boot is dead
		if ends {
			l.bootEnds = (d.now.Boot + length).Milliseconds()
		}
	}
	return l
}

func (d *draft) receipt(queueName, id string, c *claim) queue.Receipt {
	return receiptOf(d.st.store, queueName, id, c)
}

func receiptOf(store token, queueName, id string, c *claim) queue.Receipt {
	return queue.Receipt{Store: store.String(), Queue: queueName, ID: id, Generation: c.gen.String(), Attempt: c.attempts}
}
