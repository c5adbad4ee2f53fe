//go:build unix

package holdfast

import (
	"fmt"

	"example.com/holdfast/queue"
)

// An arrival is a message whose names and payload were admitted.
type arrival struct {
	id        string
	payload   []byte
	notBefore int64 // Unix milliseconds; 0: at once
	key       string
	ifExists  queue.IfExists
	fresh     bool // the ID was made for this message: it is in no run
}

// slotBytes is more than a pending slot can take beside its ID and key, unless a
// sequence number passes what a store can reach.
const slotBytes = 220

// queueBytes is more than an empty queue can take beside its name.
const queueBytes = 400

// enqueue accepts one message, or refuses it and changes nothing.
func (d *draft) enqueue(name string, a arrival, maxState int64) (queue.Enqueued, error) {
	if err := d.unlessImporting(name); err != nil {
		return queue.Enqueued{}, err
	}
	q := d.st.queue(name)
	var old *slot
	if q != nil && a.fresh {
		old, _ = q.find(a.id)
	} else if q != nil {
		var err error
		if old, err = d.st.look(q, a.id); err != nil {
			return queue.Enqueued{}, fmt.Errorf("%s/%s: %w", name, a.id, err)
		}
	}
	if old != nil {
		switch a.ifExists {
		case queue.Refuse:
			standing := old.standing()
			if old.pending != nil && old.pending.gen.commit == d.st.commit {
				standing += ", accepted just before in the same commit"
			}
			return queue.Enqueued{}, fmt.Errorf("%s/%s is %s: %w", name, a.id, standing, queue.ErrDuplicate)
		case queue.Keep:
			return d.kept(name, old), nil
		}
	}
	grows := int64(len(a.id) + 2*len(a.key) + slotBytes)
	if d.bytes+d.newQueueBytes(name)+grows > maxState {
		return queue.Enqueued{}, fmt.Errorf("state.json would pass %d bytes: %w", maxState, queue.ErrFull)
	}
	if err := d.promise(name); err != nil {
		return queue.Enqueued{}, err
	}
	if old != nil {
		if err := d.unseal(name, a.id); err != nil {
			return queue.Enqueued{}, fmt.Errorf("%s/%s: %w", name, a.id, err)
		}
	}
	d.bytes += grows

	q = d.queue(name)
	r := &ref{
		gen: d.generation(), seq: q.next, size: int64(len(a.payload)), sum: checksum(a.payload),
		enqueued: d.millis, notBefore: a.notBefore, key: a.key,
	}
	var behind *claim
	if old != nil {
		behind = old.claimed
		if old.pending != nil {
			q.counters.Superseded++
		}
	}
	q.next++
	q.counters.Enqueued++
	q.put(a.id, r, behind)
	d.write(item{queue: name, id: a.id, gen: r.gen, payload: a.payload})
	return queue.Enqueued{Queue: name, ID: a.id, Generation: r.gen.String(), Revision: d.st.revision}, nil
}

// kept reports the newest live generation of a slot as an enqueue's success.
func (d *draft) kept(name string, s *slot) queue.Enqueued {
	var gen generation
	if s.pending != nil {
		gen = s.pending.gen
	} else {
		gen = s.claimed.gen
	}
	revision := d.base.revision
	if gen.commit == d.st.commit {
		revision = d.st.revision
	}
	return queue.Enqueued{Queue: name, ID: s.id, Generation: gen.String(), Revision: revision, Kept: true}
}

// standing says in a word where a slot's message is, for a refusal.
func (s *slot) standing() string {
	if s.claimed != nil && s.claimed.returned == leased {
		return string(queue.Processing)
	}
	return "pending"
}

// enqueueAll accepts every message or none of them.
func (d *draft) enqueueAll(name string, as []arrival, maxState int64) ([]queue.Enqueued, error) {
	out := make([]queue.Enqueued, len(as))
	err := d.atomically(func() error {
		var refused []queue.Refusal
		for i, a := range as {
			var err error
			if out[i], err = d.enqueue(name, a, maxState); err != nil {
				refused = append(refused, queue.Refusal{Index: i, Err: err})
			}
		}
		if refused != nil {
			return &queue.BatchError{Refused: refused}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
