//go:build unix

package holdfast

import (
	"context"
	"errors"

	"example.com/holdfast/queue"
)

// A step is one change of an Update, checked and ready to be decided.
type step func(v *view) (queue.Outcome, error)

// Update makes several changes in one commit, in order and across queues of the
// store: all of them or none. On nil all are durable. What one change meets, a refusal
// or a payload that cannot be read now, is a *queue.UpdateError and leaves no trace;
// other errors are those of every call that changes the store.
// An update that only settles, extends, reaps and purges may use the reserve on a full
// disk; one that brings anything else is refused there, so settle alone then.
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

// step prepares one change, and notes in c what a commit with it needs: the same as its
// call does, and the reserve only where all changes may have it.
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
	case queue.LoadChange:
		o, err := x.Options.Checked()
		if err != nil {
			return nil, err
		}
		c.grows, c.settles = true, false
		return func(v *view) (out queue.Outcome, err error) {
			out.Claimed, err = s.loaded(v, x.Queue, x.ID, o)
			return out, err
		}, nil
	case queue.ReplacePayloadChange:
		if err := queue.CheckPayload(x.Payload, s.opts.MaxPayloadBytes, s.opts.MaxPayloadDepth); err != nil {
			return nil, err
		}
		payload := append([]byte(nil), x.Payload...)
		c.grows, c.settles = true, false
		c.bytes += int64(len(payload))
		c.objects += ownObjects(arrival{payload: payload})
		return func(v *view) (queue.Outcome, error) {
			return queue.Outcome{}, v.draft.replacePayload(x.Receipt, payload)
		}, nil
	case queue.ReprocessChange:
		c.grows, c.settles = true, false
		return func(v *view) (queue.Outcome, error) {
			return queue.Outcome{}, v.draft.reprocess(x.Options.Namespace, x.FailedName)
		}, nil
	case queue.CursorChange:
		c.grows, c.settles = true, false
		return func(v *view) (queue.Outcome, error) {
			return queue.Outcome{}, v.draft.setCursor(x.Queue, x.Cursor)
		}, nil
	}
	return settlement(change)
}

// loaded is a load whose damaged message, which moves to failed, refuses nothing: the
// other changes happen beside that.
func (s *Store) loaded(v *view, name, id string, o queue.LoadOptions) (out queue.Claimed, err error) {
	d, err := s.load(v, name, id, o)
	var damaged *queue.DamagedError
	switch {
	case errors.As(err, &damaged):
		out.Damaged = []*queue.DamagedError{damaged}
		return out, nil
	case err == nil:
		out.Deliveries = []queue.Delivery{d}
	}
	return out, err
}

// settlement prepares a change that may use the reserve.
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
	case queue.ReapChange:
		o, err := queue.ReapOptions{Receipt: &x.Receipt, MaxLapses: x.MaxLapses}.Checked()
		return func(v *view) (out queue.Outcome, err error) {
			v.reaps = true
			reaped, err := v.draft.reapOne(x.Receipt, o.MaxLapses)
			if err == nil {
				out.Returned = reaped[0]
			}
			return out, err
		}, err
	case queue.PurgeChange:
		return func(v *view) (queue.Outcome, error) {
			return queue.Outcome{}, v.draft.purge(x.Options.Namespace, x.FailedName)
		}, nil
	}
	panic("holdfast: a change that CheckChanges let through and nobody knows")
}
