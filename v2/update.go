//go:build unix

package holdfast

import (
	"context"

	"example.com/holdfast/queue"
)

// A step is one change of an Update, checked and ready to be decided.
type step func(v *view) (queue.Outcome, error)

// Update makes several changes in one commit, in order and across queues of the
// store: all of them or none. On nil all are durable. What one change meets, a refusal
// or a payload that cannot be read now, is a *queue.UpdateError and leaves no trace;
// other errors are those of every call that changes the store.
// An update that only settles and extends may use the reserve on a full disk; one that
// enqueues or claims too is refused there, so settle alone then.
func (s *Store) Update(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
	if err := queue.CheckChanges(changes); err != nil {
		return nil, err
	}
	c := &call{writes: true, settles: true}
	steps := make([]step, len(changes))
	for i, change := range changes {
		var err error
		if steps[i], err = s.step(c, change); err != nil {
			return nil, &queue.UpdateError{Index: i, Err: err}
		}
	}
	if len(steps) == 0 {
		return nil, nil
	}
	var out []queue.Outcome
	c.decide = func(v *view) (err error) {
		out, err = v.update(steps)
		return err
	}
	c.uncertain = func(u *queue.UncertainError) { u.Outcomes = out }
	if err := s.submit(ctx, c); err != nil {
		return nil, err
	}
	return out, nil
}

// update decides the steps, each on what those before it made.
func (v *view) update(steps []step) ([]queue.Outcome, error) {
	out := make([]queue.Outcome, len(steps))
	err := v.draft.atomically(func() error {
		for i, step := range steps {
			var err error
			if out[i], err = step(v); err != nil {
				return &queue.UpdateError{Index: i, Err: err}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// step prepares one change, and notes in c what a commit with it needs.
func (s *Store) step(c *call, change queue.Change) (step, error) {
	switch x := change.(type) {
	case queue.EnqueueChange:
		a, err := s.arrive(x.Message)
		if err != nil {
			return nil, err
		}
		c.enqueues, c.grows, c.settles = true, true, false
		c.bytes += int64(len(a.payload))
		c.objects += ownObjects(a)
		return func(v *view) (out queue.Outcome, err error) {
			out.Enqueued, err = v.draft.enqueue(x.Queue, a, s.opts.MaxStateBytes)
			return out, err
		}, nil
	case queue.ClaimChange:
		o, err := x.Options.Checked()
		if err != nil {
			return nil, err
		}
		c.grows, c.settles = true, false
		return func(v *view) (out queue.Outcome, err error) {
			out.Claimed, err = s.claim(v, x.Queue, o)
			return out, err
		}, nil
	case queue.CursorChange:
		c.settles = false
		return func(v *view) (queue.Outcome, error) {
			return queue.Outcome{}, v.draft.setCursor(x.Queue, x.Cursor)
		}, nil
	}
	return settlement(change)
}

// settlement prepares a change that takes a receipt.
func settlement(change queue.Change) (step, error) {
	switch x := change.(type) {
	case queue.AckChange:
		return func(v *view) (queue.Outcome, error) { return queue.Outcome{}, v.draft.ack(x.Receipt) }, nil
	case queue.ReleaseChange:
		return func(v *view) (queue.Outcome, error) {
			return queue.Outcome{}, v.draft.release(x.Receipt, x.Options.Delay)
		}, nil
	case queue.RetryChange:
		o, err := x.Options.Checked()
		return func(v *view) (out queue.Outcome, err error) {
			out.Returned, err = v.draft.retry(x.Receipt, o)
			return out, err
		}, err
	case queue.ExtendChange:
		lease, err := queue.CheckLease(x.Lease)
		return func(v *view) (out queue.Outcome, err error) {
			out.Deadline, err = v.draft.extend(x.Receipt, lease)
			return out, err
		}, err
	case queue.FailChange:
		o, err := x.Options.Checked()
		return func(v *view) (out queue.Outcome, err error) {
			out.Failed, err = v.draft.fail(x.Receipt, o.Cause, o.As)
			return out, err
		}, err
	}
	panic("holdfast: a change that CheckChanges let through and nobody knows")
}
