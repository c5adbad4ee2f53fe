package memory

import (
	"context"
	"slices"

	"example.com/holdfast/queue"
)

// Clear removes the pending and returned messages of a queue, and the leased ones
// when asked; their workers then meet queue.ErrGone. It says how many generations
// went. An unknown queue has none.
func (s *Store) Clear(ctx context.Context, name string, o queue.ClearOptions) (uint64, error) {
	if err := queue.CheckQueue(name); err != nil {
		return 0, err
	}
	var removed uint64
	err := s.change(ctx, func(d *draft) error {
		removed = d.clear(name, o.Leased)
		return nil
	})
	return removed, err
}

func (d *draft) clear(name string, leasedToo bool) uint64 {
	q := d.st.queues[name]
	if q == nil {
		return 0
	}
	var removed uint64
	for _, m := range slices.Backward(slices.Clone(q.line)) { // from the end: nothing moves up
		if m.phase == leased && !leasedToo {
			continue
		}
		left := q.slots[m.id]
		if m.phase == fresh {
			left.pending = nil
		} else {
			left.claimed = nil
		}
		d.put(q, m.id, left)
		removed++
	}
	if removed > 0 {
		d.queue(name).counters.Cleared += removed
	}
	return removed
}

// Pause makes claims of a queue find nothing until Resume; enqueue, settling and Load
// go on. A queue that is not known yet is made. Pausing a paused queue is no error.
func (s *Store) Pause(ctx context.Context, name string) error { return s.setPaused(ctx, name, true) }

// Resume lets claims find messages again. Resuming a queue that is not paused is no
// error.
func (s *Store) Resume(ctx context.Context, name string) error { return s.setPaused(ctx, name, false) }

func (s *Store) setPaused(ctx context.Context, name string, paused bool) error {
	return s.set(ctx, name, func(f *figures) { f.paused = paused })
}

// SetFailedNamespace says where messages of a queue that fail from now on are kept;
// empty: the default one. What has failed stays where it is.
func (s *Store) SetFailedNamespace(ctx context.Context, name, space string) error {
	if err := queue.CheckQueue(name); err != nil {
		return err
	}
	if err := queue.CheckNamespace(space); err != nil {
		return err
	}
	return s.set(ctx, name, func(f *figures) { f.failedNS = space })
}

func (s *Store) set(ctx context.Context, name string, set func(f *figures)) error {
	if err := queue.CheckQueue(name); err != nil {
		return err
	}
	return s.change(ctx, func(d *draft) error {
		d.set(name, set)
		return nil
	})
}

// set changes a figure of a queue. Where it is so already, nothing happens, and a
// queue that is not known stays unknown.
func (d *draft) set(name string, set func(f *figures)) {
	var before figures
	if q := d.st.queues[name]; q != nil {
		before = q.figures
	}
	after := before
	if set(&after); after != before {
		d.queue(name).figures = after
	}
}
