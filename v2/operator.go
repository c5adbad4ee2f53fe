//go:build unix

package holdfast

import (
	"context"

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
	err := s.submit(ctx, &call{writes: true, settles: true, decide: func(v *view) error {
		n = v.draft.clear(name, o.Leased)
		return nil
	}})
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

func checkFailed(space, name string) error {
	if space != "" {
		if err := queue.CheckQueue(space); err != nil {
			return err
		}
	}
	return queue.CheckFailedName(name)
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
