package memory

import (
	"context"
	"time"

	"example.com/holdfast/queue"
)

// Wait returns the final Status when one snapshot shows everything asked for
// complete. It parks between changes. An unknown queue is complete at once.
// IgnoreScheduled leaves aside what is not due yet, and what is blocked behind that.
func (s *Store) Wait(ctx context.Context, o queue.WaitOptions) (queue.Status, error) {
	if err := o.Check(); err != nil {
		return queue.Status{}, err
	}
	var out queue.Status
	err := s.park(ctx, func(st *state, now time.Time) (bool, time.Time) {
		if !st.complete(o, now) {
			return false, time.Time{} // the passing of time completes nothing
		}
		out = st.status(o.Queues, now)
		return true, time.Time{}
	})
	return out, err
}

// complete reports whether nothing is left of what a Wait waits for.
func (st *state) complete(o queue.WaitOptions, now time.Time) bool {
	for _, name := range st.named(o.Queues) {
		if q := st.queues[name]; q != nil && !q.complete(o, now) {
			return false
		}
	}
	return true
}

func (q *queueState) complete(o queue.WaitOptions, now time.Time) bool {
	for m, state := range q.survey(now) {
		switch {
		case o.Message == "":
			// Where nothing is ready and nothing is processing, what is blocked waits
			// behind a message that is not due yet, and is left aside with it.
			if !o.IgnoreScheduled || state == queue.Ready || state == queue.Processing {
				return false
			}
		case m.id == o.Message: // the older generation decides: a newer one waits behind it
			return o.IgnoreScheduled && state == queue.Scheduled
		}
	}
	return true
}

// WaitDue returns nil when one snapshot shows a message that a claim of one of the
// queues (none named: of any queue) would take at that time. Another claimer may still
// be first. A paused queue shows none.
func (s *Store) WaitDue(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := queue.CheckQueue(name); err != nil {
			return err
		}
	}
	return s.park(ctx, func(st *state, now time.Time) (bool, time.Time) {
		var next time.Time // when the next scheduled message is due
		for _, name := range st.named(names) {
			q := st.queues[name]
			if q == nil || q.paused {
				continue
			}
			for m, state := range q.survey(now) {
				switch {
				case state == queue.Ready:
					return true, time.Time{}
				case state == queue.Scheduled && (next.IsZero() || m.notBefore.Before(next)):
					next = m.notBefore
				}
			}
		}
		return false, next
	})
}

// park returns when done says so of a snapshot. It looks again after every change,
// and at the time that done gives; zero: none.
func (s *Store) park(ctx context.Context, done func(st *state, now time.Time) (bool, time.Time)) error {
	for {
		var is bool
		var next, now time.Time
		var changed <-chan struct{}
		err := s.look(ctx, func(st *state, at time.Time) error {
			now, changed = at, s.changed // before the mutex is let go: no change slips by
			is, next = done(st, at)
			return nil
		})
		if err != nil || is {
			return err
		}
		if err := sleep(ctx, changed, next, now); err != nil {
			return err
		}
	}
}

// sleep returns at the next change, or once the time from now to next has passed.
func sleep(ctx context.Context, changed <-chan struct{}, next, now time.Time) error {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(next.Sub(now))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-due:
	}
	return nil
}
