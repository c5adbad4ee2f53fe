//go:build unix

package holdfast

import (
	"context"
	"errors"

	"example.com/holdfast/queue"
)

// WaitDue returns nil when, in one snapshot, a claim of one of the queues (none named:
// of any queue) would have taken a message. Another claimer may still be first. It
// parks until a commit, of this process or another, or the passing of time makes one
// due; a paused queue has none, nor has one with an open import. It changes nothing and may be called on a store that
// was opened for looking.
//
// Between changes it does nothing but look whether state.json is still the same file,
// every 30 s; every second where the filesystem or the system tells of no changes.
// Setting the clock forward is noticed then too.
//
// Errors are those of any look, the context's, queue.ErrClosed, and ErrStaleLock when
// it looks while another owner's work is open, for then nobody can claim.
func (s *Store) WaitDue(ctx context.Context, queues ...string) error {
	for _, name := range queues {
		if err := queue.CheckQueue(name); err != nil {
			return err
		}
	}
	return s.await(ctx, func(v *view) (yes bool, next int64, err error) {
		yes, next = v.draft.st.due(queues, v.draft.now)
		return yes, next, nil
	})
}

// Wait returns the final Status when one committed snapshot shows the queues complete
// (none named: every queue; an unknown one is empty): nothing pending and nothing
// processing. With IgnoreScheduled messages that are not due yet are left aside, and
// what is blocked behind them. With Message, which needs exactly one queue, it returns
// when no generation of that ID is live, or, with IgnoreScheduled, when it is not due
// yet. None of this is so while an import into the queue is open.
//
// That says nothing about success, nor that no more will come. It parks as WaitDue
// does, has the same errors, and never decides on a look without the lock, whatever
// Options.LookAfter says.
func (s *Store) Wait(ctx context.Context, o queue.WaitOptions) (queue.Status, error) {
	if err := o.Check(); err != nil {
		return queue.Status{}, err
	}
	var out queue.Status
	err := s.await(ctx, func(v *view) (yes bool, next int64, err error) {
		if yes, err = v.draft.st.complete(o, v.draft.now); err != nil || !yes {
			return false, 0, err // the passing of time completes nothing
		}
		out, err = v.draft.st.status(o.Queues, v.draft.now)
		out.Revision, out.Settled = v.revision(), true
		return true, 0, err
	})
	if err != nil {
		return queue.Status{}, err
	}
	return out, nil
}

// complete reports whether what a Wait asks for is done.
func (st *state) complete(o queue.WaitOptions, now instant) (bool, error) {
	if o.Message != "" {
		if _, open := st.importInto(o.Queues[0]); open {
			return false, nil // it may still come, and what is there may be taken back
		}
		q := st.queue(o.Queues[0])
		s, err := st.look(q, o.Message)
		if err != nil || s == nil {
			return err == nil, err
		}
		// The older generation decides: a newer one is blocked behind it.
		older, _ := s.front()
		return o.IgnoreScheduled && older != nil && q.at(now.millis()).putOff(older, now.millis()), nil
	}
	status, err := st.status(o.Queues, now)
	if err != nil {
		return false, err
	}
	for _, g := range status.Queues {
		done := g.Complete()
		if o.IgnoreScheduled {
			done = g.Processing == 0 && g.Ready == 0 && !g.Importing
		}
		if !done {
			return false, nil
		}
	}
	return true, nil
}

// await looks, and looks again whenever something may have changed, until a look says
// yes. next is when time alone may change the answer, Unix milliseconds; 0: never.
func (s *Store) await(ctx context.Context, look func(v *view) (yes bool, next int64, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := s.wake.join()
	if err != nil {
		return err
	}
	defer s.wake.leave(p)
	for {
		var yes bool
		var saw sight
		err := s.submit(ctx, &call{decide: func(v *view) error {
			s.wake.looks.Add(1)
			if !v.settled {
				return &StaleLockError{Owner: *v.owner}
			}
			var err error
			if yes, saw.next, err = look(v); err != nil {
				return err
			}
			saw.file = s.cached.at
			saw.young = young(saw.file)
			saw.commit = v.draft.base.commit // and perhaps a part of the next
			return nil
		}})
		var others *bystanderError
		if errors.As(err, &others) {
			if err := ctx.Err(); err != nil {
				return err
			}
			continue // the commit of somebody else failed: that answers nothing
		}
		if err != nil || yes {
			return err
		}
		if err := s.wake.park(ctx, p, saw); err != nil {
			return err
		}
	}
}
