package memory

import (
	"context"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// bury moves a claimed generation to the failed messages. The name must be free.
func (d *draft) bury(q *queueState, m *message, name failedName) {
	if d.st.failed[name] != nil {
		panic("memory: a failed name is taken twice")
	}
	q.counters.Failed++
	d.remove(q, m)
	d.setFailed(name, &failed{queue: q.name, message: m, at: d.stamp()})
}

// buryFree is bury for a message that a cap moves, under a name that is free: its ID,
// or ID~generation, which no other generation can have. It gives the name.
func (d *draft) buryFree(q *queueState, m *message) string {
	name := failedName{q.failedNS, m.id}
	if d.st.failed[name] != nil {
		name.name += "~" + m.generation
	}
	d.bury(q, m, name)
	return name.name
}

// Reprocess returns a failed message to its queue, at its old place and ahead of any
// pending generation of its ID. Its attempts are excused and its lapses forgotten; the
// last error stays. Refusals: queue.ErrNotFailed; queue.ErrInFlight, and the evidence
// stays.
func (s *Store) Reprocess(ctx context.Context, name string, o queue.ReprocessOptions) error {
	if err := checkFailed(o.Namespace, name); err != nil {
		return err
	}
	return s.change(ctx, func(d *draft) error { return d.reprocess(failedName{o.Namespace, name}) })
}

func checkFailed(space, name string) error {
	if err := queue.CheckNamespace(space); err != nil {
		return err
	}
	return queue.CheckFailedName(name)
}

func (d *draft) reprocess(name failedName) error {
	f := d.st.failed[name]
	if f == nil {
		return fmt.Errorf("%q: %w", name.name, queue.ErrNotFailed)
	}
	c, q := *f.message, d.queue(f.queue)
	if q.slots[c.id].claimed != nil {
		return fmt.Errorf("%s/%s: %w", f.queue, c.id, queue.ErrInFlight)
	}
	c.phase = reprocessed
	c.notBefore = time.Time{}
	c.excused, c.lapses = c.attempts, 0
	q.counters.Reprocessed++
	d.setFailed(name, nil)
	d.replace(q, &c)
	return nil
}

// Purge removes a failed message for good. Refusal: queue.ErrNotFailed.
func (s *Store) Purge(ctx context.Context, name string, o queue.PurgeOptions) error {
	if err := checkFailed(o.Namespace, name); err != nil {
		return err
	}
	return s.change(ctx, func(d *draft) error { return d.purge(failedName{o.Namespace, name}) })
}

func (d *draft) purge(name failedName) error {
	f := d.st.failed[name]
	if f == nil {
		return fmt.Errorf("%q: %w", name.name, queue.ErrNotFailed)
	}
	d.queue(f.queue).counters.Purged++
	d.setFailed(name, nil)
	return nil
}
