//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/holdfast/queue"
)

// Enqueue accepts one message. On nil it is durable: it will be delivered until it
// is settled. The caller may reuse the payload's slice once Enqueue has returned.
//
// An ID that is live already is refused with queue.ErrDuplicate, unless the message
// says Keep or Replace. Other refusals: queue.ErrInvalid…, queue.ErrTooLarge,
// queue.ErrFull; ErrImporting; ErrStaleLock. Nothing is enqueued then. queue.ErrUncertain says
// that it may have been: Resolve tells.
func (s *Store) Enqueue(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
	if err := queue.CheckQueue(name); err != nil {
		return queue.Enqueued{}, err
	}
	a, err := s.arrive(m)
	if err != nil {
		return queue.Enqueued{}, err
	}
	var out queue.Enqueued
	err = s.submit(ctx, &call{
		writes: true, enqueues: true, grows: true, bytes: int64(len(a.payload)), objects: ownObjects(a),
		decide: func(v *view) (err error) {
			out, err = v.draft.enqueue(name, a, s.opts.MaxStateBytes)
			return err
		},
		uncertain: func(u *queue.UncertainError) { u.Enqueued = []queue.Enqueued{out} },
	})
	if err != nil {
		return queue.Enqueued{}, err
	}
	return out, nil
}

// EnqueueBatch accepts all the messages in one commit, in order, or none of them; a
// refusal is a *queue.BatchError. Other errors are those of Enqueue. It costs as many
// syncs as one message of the same size, as long as they fit one object (1 MiB).
func (s *Store) EnqueueBatch(ctx context.Context, name string, ms []queue.Message) ([]queue.Enqueued, error) {
	if err := queue.CheckQueue(name); err != nil {
		return nil, err
	}
	var refused []queue.Refusal
	as := make([]arrival, len(ms))
	var bytes int64
	for i, m := range ms {
		var err error
		if as[i], err = s.arrive(m); err != nil {
			if !errors.Is(err, queue.ErrInvalid) {
				return nil, err
			}
			refused = append(refused, queue.Refusal{Index: i, Err: err})
		}
		bytes += int64(len(as[i].payload))
	}
	if refused != nil {
		return nil, &queue.BatchError{Refused: refused}
	}
	if len(ms) == 0 {
		return nil, nil
	}
	var out []queue.Enqueued
	err := s.submit(ctx, &call{
		writes: true, enqueues: true, grows: true, bytes: bytes, objects: ownObjects(as...),
		decide: func(v *view) (err error) {
			out, err = v.draft.enqueueAll(name, as, s.opts.MaxStateBytes)
			return err
		},
		uncertain: func(u *queue.UncertainError) { u.Enqueued = out },
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ownObjects counts the messages that are too large to share an object.
func ownObjects(as ...arrival) int {
	n := 0
	for _, a := range as {
		if len(a.payload) > smallPayload {
			n++
		}
	}
	return n
}

// arrive checks everything about a message that does not depend on the state.
func (s *Store) arrive(m queue.Message) (arrival, error) {
	a := arrival{id: m.ID, ifExists: m.IfExists, key: m.Key}
	if err := m.Check(); err != nil {
		return a, err
	}
	if a.id == "" {
		id, err := uuid.NewV7FromReader(s.rand)
		if err != nil {
			return a, fmt.Errorf("no randomness: %w", err)
		}
		a.id, a.fresh = id.String(), true
	}
	if !m.NotBefore.IsZero() {
		a.notBefore = roundUp(m.NotBefore)
	}
	if err := queue.CheckPayload(m.Payload, s.opts.MaxPayloadBytes, s.opts.MaxPayloadDepth); err != nil {
		return a, err
	}
	a.payload = append([]byte(nil), m.Payload...)
	return a, nil
}

// roundUp gives a time in Unix milliseconds, never earlier than asked.
func roundUp(t time.Time) int64 {
	millis := t.UnixMilli()
	if t.After(time.UnixMilli(millis)) {
		millis++
	}
	return millis
}

// maxMillis is the latest time that the store writes: the year 9999.
const maxMillis = 253402300799999
