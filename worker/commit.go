package worker

import (
	"context"
	"errors"
	"fmt"

	"example.com/holdfast/queue"
)

// A resolver is a store that can tell what became of an uncertain commit.
type resolver interface {
	Resolve(context.Context, *queue.UncertainError) (committed bool, err error)
}

// commit makes changes in one commit beside the loop; apply is then run in the loop.
// An uncertain commit is resolved first where the store can tell. An error that wraps
// queue.ErrUncertain is left where it cannot: the changes may have been made.
func (w *worker) commit(ctx context.Context, op string, changes []queue.Change, apply func([]queue.Outcome, error)) {
	w.begin(func() func() {
		outcomes, err := w.store.Update(ctx, changes...)
		var u *queue.UncertainError
		if !errors.As(err, &u) {
			return func() { apply(outcomes, err) }
		}
		met := err
		if committed, open := w.resolve(u, err); open != nil {
			outcomes, err = nil, open
		} else if committed && len(u.Outcomes) == len(changes) {
			outcomes, err = u.Outcomes, nil
		} else if committed && u.Refused != nil {
			outcomes, err = nil, u.Refused
		}
		return func() {
			w.tell(Event{Kind: EventUncertain, Op: op, Err: met, Count: len(changes)}, "")
			apply(outcomes, err)
		}
	})
}

// resolve asks the store about an uncertain commit that a call met as err. The error
// that it gives is for the caller: the commit did not happen, or nobody can tell.
func (w *worker) resolve(u *queue.UncertainError, err error) (committed bool, open error) {
	r, ok := w.store.(resolver)
	if !ok {
		return false, err
	}
	committed, failed := r.Resolve(w.hard, u)
	switch {
	case failed != nil:
		return false, fmt.Errorf("%w; resolving it: %w", err, failed)
	case !committed:
		return false, fmt.Errorf("the commit did not happen: %w", u.Err)
	}
	return true, nil
}
