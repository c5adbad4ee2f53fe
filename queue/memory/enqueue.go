package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"example.com/holdfast/queue"
)

// Enqueue accepts one message. The caller may reuse the payload's slice once it has
// returned. Refusals: queue.ErrDuplicate, queue.ErrInvalid…, queue.ErrTooLarge.
func (s *Store) Enqueue(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
	if err := queue.CheckQueue(name); err != nil {
		return queue.Enqueued{}, err
	}
	a, err := s.arrive(m)
	if err != nil {
		return queue.Enqueued{}, err
	}
	var out queue.Enqueued
	err = s.change(ctx, func(d *draft) (err error) {
		out, err = d.enqueue(name, a)
		return err
	})
	return out, err
}

// EnqueueBatch accepts all the messages, in order, or none of them; a refusal is a
// *queue.BatchError.
func (s *Store) EnqueueBatch(ctx context.Context, name string, ms []queue.Message) ([]queue.Enqueued, error) {
	if err := queue.CheckQueue(name); err != nil {
		return nil, err
	}
	as := make([]arrival, len(ms))
	var refused []queue.Refusal
	for i, m := range ms {
		var err error
		if as[i], err = s.arrive(m); err != nil {
			if !errors.Is(err, queue.ErrInvalid) {
				return nil, err
			}
			refused = append(refused, queue.Refusal{Index: i, Err: err})
		}
	}
	if refused != nil {
		return nil, &queue.BatchError{Refused: refused}
	}
	if len(ms) == 0 {
		return nil, nil
	}
	out := make([]queue.Enqueued, len(as))
	err := s.change(ctx, func(d *draft) error {
		var refused []queue.Refusal
		for i, a := range as {
			var err error
			if out[i], err = d.enqueue(name, a); err != nil {
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

// An arrival is a message whose names and payload were admitted.
type arrival struct {
	message  message
	ifExists queue.IfExists
}

// arrive checks everything about a message that does not depend on the state.
func (s *Store) arrive(m queue.Message) (arrival, error) {
	if err := m.Check(); err != nil {
		return arrival{}, err
	}
	a := arrival{message: message{id: m.ID, key: m.Key}, ifExists: m.IfExists}
	if m.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return arrival{}, fmt.Errorf("no randomness: %w", err)
		}
		a.message.id = id.String()
	}
	if !m.NotBefore.IsZero() {
		a.message.notBefore = roundUp(m.NotBefore)
	}
	if err := s.checkPayload(m.Payload); err != nil {
		return arrival{}, err
	}
	a.message.payload = bytes.Clone(m.Payload)
	return a, nil
}

func (s *Store) checkPayload(payload []byte) error {
	return queue.CheckPayload(payload, s.opts.MaxPayloadBytes, s.opts.MaxPayloadDepth)
}

// enqueue accepts one message, or refuses it.
func (d *draft) enqueue(name string, a arrival) (queue.Enqueued, error) {
	m := a.message
	var live slot
	if q := d.st.queues[name]; q != nil {
		live = q.slots[m.id]
	}
	if live != (slot{}) {
		switch a.ifExists {
		case queue.Refuse:
			return queue.Enqueued{}, fmt.Errorf("%s/%s is %s: %w", name, m.id, live.standing(), queue.ErrDuplicate)
		case queue.Keep:
			kept := live.newest()
			return queue.Enqueued{Queue: name, ID: m.id, Generation: kept.generation, Revision: kept.revision, Kept: true}, nil
		}
	}
	q := d.queue(name)
	m.generation, m.revision, m.seq, m.enqueuedAt = d.generation(), d.revision, q.next, d.stamp()
	if live.pending != nil {
		q.counters.Superseded++
	}
	q.next++
	q.counters.Enqueued++
	d.put(q, m.id, slot{pending: &m, claimed: live.claimed})
	return queue.Enqueued{Queue: name, ID: m.id, Generation: m.generation, Revision: m.revision}, nil
}

// standing says in a word where a live ID is, for a refusal.
func (s slot) standing() string {
	if s.claimed != nil && s.claimed.phase == leased {
		return string(queue.Processing)
	}
	return "pending"
}

// newest gives the younger of the live generations.
func (s slot) newest() *message {
	if s.pending != nil {
		return s.pending
	}
	return s.claimed
}
