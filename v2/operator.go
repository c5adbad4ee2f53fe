//go:build unix

package holdfast

import (
	"context"
	"slices"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// Clear removes the pending and returned messages of a queue, and the leased ones
// when asked; their workers then meet queue.ErrGone. It says how many generations
// went. On nil that is durable. An unknown queue has none.
func (s *Store) Clear(ctx context.Context, name string, o queue.ClearOptions) (uint64, error) {
	if err := queue.CheckQueue(name); err != nil {
		return 0, err
	}
	var n uint64
	err := s.submit(ctx, &call{writes: true, settles: true, decide: func(v *view) (err error) {
		n, err = v.draft.clear(name, o.Leased)
		return err
	}, uncertain: func(u *queue.UncertainError) { u.Cleared = n }})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Purge removes a failed message for good. On nil that is durable. Refusal:
// queue.ErrNotFailed.
func (s *Store) Purge(ctx context.Context, failedName string, o queue.PurgeOptions) error {
	if err := checkFailed(o.Namespace, failedName); err != nil {
		return err
	}
	return s.submit(ctx, &call{writes: true, settles: true, decide: func(v *view) error {
		return v.draft.purge(o.Namespace, failedName)
	}})
}

// PurgeLost gives up the failed messages of a namespace that are lost: those in runs whose
// files are missing or not what the state says, which no other call can remove. It says how
// many; they count as purged, and their names are free. On nil that is durable. A file that
// cannot be read now, or that is linked, refuses it, and nothing is given up. It reads
// every run of the namespace under the lock.
func (s *Store) PurgeLost(ctx context.Context, o queue.PurgeOptions) (uint64, error) {
	if err := queue.CheckNamespace(o.Namespace); err != nil {
		return 0, err
	}
	var n uint64
	err := s.submit(ctx, &call{writes: true, settles: true, decide: func(v *view) (err error) {
		reader := newRunFiles(func() fsguard.Dir { return v.pins.objects }) // what is remembered may be lost since
		n, err = v.draft.purgeLost(o.Namespace, reader)
		return err
	}, uncertain: func(u *queue.UncertainError) { u.Cleared = n }})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func checkFailed(space, name string) error {
	if err := queue.CheckNamespace(space); err != nil {
		return err
	}
	return queue.CheckFailedName(name)
}

// Reap ends leases that are past their deadline, or whose holder is proven dead by
// the lock that the kernel let go of, and returns their messages; at o.MaxLapses it
// moves them to failed. A named claim is ended whatever its deadline, the operator's
// act. On nil that is durable; nothing to end makes no commit. A holder that cannot
// be asked (EMFILE, EIO) is an error only when nothing else was ended. The leases of a
// queue with an open import wait; where it was named that is ErrImporting, when nothing
// else was ended. Refusals of a named claim: queue.ErrStale, queue.ErrGone, ErrImporting.
func (s *Store) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	o, err := o.Checked()
	if err != nil {
		return nil, err
	}
	o.Queues = slices.Clone(o.Queues)
	if o.Receipt != nil {
		r := *o.Receipt
		o.Receipt = &r
	}
	var out []queue.Returned
	err = s.submit(ctx, &call{
		writes: true, settles: true,
		decide: func(v *view) (err error) {
			v.reaps = true
			out, err = v.draft.reap(o, v.dead)
			return err
		},
		uncertain: func(u *queue.UncertainError) { u.Returned = out },
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Reprocess returns a failed message to its queue, at its old place and ahead of any
// pending generation of its ID; its attempts are excused. On nil that is durable.
// Refusals: queue.ErrNotFailed; queue.ErrInFlight and queue.ErrFull, and the evidence
// stays.
func (s *Store) Reprocess(ctx context.Context, failedName string, o queue.ReprocessOptions) error {
	if err := checkFailed(o.Namespace, failedName); err != nil {
		return err
	}
	return s.submit(ctx, &call{writes: true, grows: true, decide: func(v *view) error {
		return v.draft.reprocess(o.Namespace, failedName)
	}})
}

// Pause makes claims of a queue find nothing until Resume; everything else goes on.
// It is kept in the store: every process meets it. On nil that is durable. A queue
// that is not there yet is made; in a full state that is queue.ErrFull.
func (s *Store) Pause(ctx context.Context, name string) error { return s.pause(ctx, name, true) }

// Resume ends a Pause.
func (s *Store) Resume(ctx context.Context, name string) error { return s.pause(ctx, name, false) }

func (s *Store) pause(ctx context.Context, name string, paused bool) error {
	if err := queue.CheckQueue(name); err != nil {
		return err
	}
	return s.submit(ctx, &call{writes: true, grows: true, decide: func(v *view) error {
		return v.draft.pause(name, paused)
	}})
}

// SetFailedNamespace says where messages of a queue that fail from now on are kept.
// Queues with one namespace share its failed names. On nil that is durable. Refusal:
// queue.ErrFull, in a full state.
func (s *Store) SetFailedNamespace(ctx context.Context, name, namespace string) error {
	if err := queue.CheckQueue(name); err != nil {
		return err
	}
	if err := queue.CheckNamespace(namespace); err != nil {
		return err
	}
	return s.submit(ctx, &call{writes: true, grows: true, decide: func(v *view) error {
		return v.draft.setNamespace(name, namespace)
	}})
}

// Cursor reads a queue's cursor, which an Update sets; empty: none was set.
func (s *Store) Cursor(ctx context.Context, name string) (string, error) {
	if err := queue.CheckQueue(name); err != nil {
		return "", err
	}
	var out string
	err := s.look(ctx, func(v *view) error {
		if q := v.draft.st.queue(name); q != nil {
			out = q.cursor
		}
		return nil
	})
	return out, err
}

// Settings gives the settings kept in the store.
func (s *Store) Settings(ctx context.Context) (Settings, error) {
	var out Settings
	err := s.look(ctx, func(v *view) error {
		out = v.draft.st.settings
		return nil
	})
	return out, err
}

// Set changes the settings kept in the store, for every process that uses it. On
// nil that is durable.
func (s *Store) Set(ctx context.Context, set Settings) error {
	if err := set.check(); err != nil {
		return err
	}
	return s.submit(ctx, &call{writes: true, decide: func(v *view) error {
		if v.draft.st.settings != set {
			v.draft.st.settings = set
			v.draft.dirty = true
		}
		return nil
	}})
}
