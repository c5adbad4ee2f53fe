//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/queue"
)

// storeFloor is the free space below which a store enqueues nothing.
const storeFloor = holdfast.DefaultMinFreeBytes

// trial makes a store in dir and takes a message through each of its ends.
func (a *app) trial(ctx context.Context, dir string) error {
	const q = "trial"
	err := use(ctx, a.engine.create, dir, a.options(), func(s store) error {
		for _, id := range []string{"acked", "failed", "kept"} {
			if _, err := s.Enqueue(ctx, q, queue.Message{ID: id, Payload: []byte(`{"trial":true}`)}); err != nil {
				return err
			}
		}
		// A holder would stay open until this process ends, in a directory that is removed
		// before.
		claimed, err := s.Claim(ctx, q, queue.ClaimOptions{Max: 2, WithoutHolder: true})
		if err != nil {
			return err
		}
		if len(claimed.Deliveries) != 2 {
			return fmt.Errorf("a claim of two gave %s", plural(int64(len(claimed.Deliveries)), "message"))
		}
		if err := s.Ack(ctx, claimed.Deliveries[0].Receipt); err != nil {
			return err
		}
		_, err = s.Fail(ctx, claimed.Deliveries[1].Receipt, queue.FailOptions{Cause: "a trial"})
		return err
	})
	if err != nil {
		return err
	}
	r, err := a.engine.verify(ctx, dir, a.options(), holdfast.VerifyOptions{})
	switch {
	case err != nil:
		return err
	case !r.OK:
		return fmt.Errorf("verify found %s, the first: %s: %s", plural(int64(len(r.Faults)), "fault"), r.Faults[0].File, r.Faults[0].Reason)
	case r.Messages != 1 || r.Failed != 1:
		return fmt.Errorf("of one message kept and one failed there are %d and %d", r.Messages, r.Failed)
	}
	return nil
}

// A storeLine is what is told of the store that is there already.
type storeLine struct {
	ID          string               `json:"id"`
	Revision    uint64               `json:"revision"`
	Settled     bool                 `json:"settled"`
	Pending     uint64               `json:"pending"`
	Processing  uint64               `json:"processing"`
	Failed      uint64               `json:"failed"`
	OnDeadOwner holdfast.OnDeadOwner `json:"on_dead_owner"`
	Error       string               `json:"error"`  // why nothing is told; empty: it could be read
	Weight      doctor.Weight        `json:"weight"` // fit, or warning where something is to be done about it

	next string // what that is
}

// storeThere looks at the store in the directory; nil: there is none. Payloads are not
// read: that is for verify. Who else may write the directory is told by its own check,
// and must not hide that there is no store.
func (a *app) storeThere(ctx context.Context) *storeLine {
	l := storeLine{Weight: doctor.Fit}
	o := a.lookOptions()
	o.AllowUnsafeRoot = true
	err := use(ctx, a.engine.look, a.dir, o, func(s store) error {
		st, err := s.Status(ctx, queue.StatusOptions{})
		if err != nil {
			return err
		}
		set, err := s.Settings(ctx)
		if err != nil {
			return err
		}
		l.ID, l.Revision, l.Settled, l.OnDeadOwner = s.ID(), st.Revision, st.Settled, set.OnDeadOwner
		for _, q := range st.Queues {
			l.Pending += q.Pending
			l.Processing += q.Processing
			l.Failed += q.Failed
		}
		if !st.Settled && st.Owner != nil {
			l.Weight, l.next = doctor.Warning, "holdfast recover --dir "+shellWord(a.dir)
		}
		return nil
	})
	switch {
	case errors.Is(err, holdfast.ErrNoStore):
		return nil
	case errors.Is(err, holdfast.ErrInterruptedInit), errors.Is(err, holdfast.ErrStaleLock):
		return &storeLine{Error: err.Error(), Weight: doctor.Warning, next: a.next(kindOf(err), factsOf(err))}
	case err != nil:
		return &storeLine{Error: err.Error(), Weight: doctor.Warning, next: "holdfast verify --dir " + shellWord(a.dir)}
	}
	return &l
}

// standing warns of what stands in the directory, and gives the next command.
func (a *app) standing(x examined) (warning, next string) {
	switch {
	case x.Store == nil && x.Holds != "":
		return fmt.Sprintf("init wants an empty directory, and %s is there", x.Holds), "holdfast init --dir " + shellWord(filepath.Join(x.Dir, "holdfast"))
	case x.Store == nil, x.Store.Weight == doctor.Fit:
		return "", ""
	case x.Store.Error != "":
		return "the store that is there cannot be read: " + x.Store.Error, x.Store.next
	}
	return "the store that is there stands inside a commit, of a process that was killed or is at work", x.Store.next
}
