//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"slices"

	"example.com/holdfast/queue"
)

// A Recovery says what Recover found and did.
type Recovery struct {
	Owner        *queue.Owner // whose unfinished work was found; nil: there was none
	Revision     uint64       // the store's revision afterwards
	TempsRemoved int          // leftover temporary files that were removed
}

// Recover is the operator's act after ErrStaleLock: it takes the state that stands
// on the disk for the truth, publishes it as a fresh revision and clears the lock.
// A transition of the dead owner is wholly in that state or wholly absent. On nil
// the fresh revision is durable; on an error the lock's record stays, and Recover
// may be called again. Where there is nothing to recover it only removes leftover
// temporary files.
func (s *Store) Recover(ctx context.Context) (Recovery, error) {
	var out Recovery
	err := s.submit(ctx, &call{writes: true, mends: true, decide: func(v *view) error {
		if v.recovery != nil {
			out = *v.recovery
			return nil
		}
		out = Recovery{Revision: v.draft.base.revision, TempsRemoved: removeTemps(v.pins)}
		return nil
	}})
	return out, err
}

// recover publishes the state found under a record of somebody who did not finish.
// A repeated sync alone would prove nothing: after a failure the kernel may answer
// nil without having written anything. So the state is written anew, as a fresh
// revision, and its rename synced through a newly opened descriptor. Until that has
// succeeded, the record that was found stays in the lock.
func (s *Store) recover(t *tenure, st *state) (*Recovery, error) {
	parent, err := t.pins.space.OpenDir(".")
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	var fresh *draft
	for gaveUp := false; ; gaveUp = true {
		commit, err := newToken(s.rand)
		if err != nil {
			return nil, err
		}
		fresh = newDraft(st, commit, s.clock.Now(), s.cached.size)
		fresh.dirty, fresh.tight = true, true // it takes no room but its own
		fresh.st.recoveries++
		fresh.st.resolved = remember(st.resolved, outcome{st.commit, st.revision})
		err = s.publish(t, fresh, settlingOnly, parent)
		if err == nil {
			break
		}
		if gaveUp || !isFull(err) || !s.giveUpReserve(t.pins) {
			return nil, fmt.Errorf("recovering: %w", err)
		}
	}
	owner := t.found
	t.stale, t.written = false, true // what stands in the lock is now ours to blank
	s.open, s.blankLater = nil, nil
	return &Recovery{Owner: &owner, Revision: fresh.st.revision, TempsRemoved: removeTemps(t.pins)}, nil
}

// remember appends what a recovery found; the oldest gives way.
func remember(list []outcome, o outcome) []outcome {
	if n := len(list); n > 0 && list[n-1] == o {
		return list
	}
	list = append(slices.Clone(list), o)
	return list[max(0, len(list)-maxResolved):]
}

// removeTemps removes what writers left that were cut off. A name of any other form
// stays, and so does a temp that cannot be removed: it is harmless.
func removeTemps(p *pins) int {
	names, err := p.space.ReadDir()
	if err != nil {
		return 0
	}
	n := 0
	for _, name := range names {
		if isTemp(name) && p.space.Remove(name) == nil {
			n++
		}
	}
	return n
}

// Resolve tells whether the uncertain commit of u happened. Where it is still open,
// it is resolved first, as the next call of this process would. It answers
// ErrStaleLock when another owner's work is open, and ErrUnresolved when the store
// no longer remembers.
func (s *Store) Resolve(ctx context.Context, u *queue.UncertainError) (committed bool, err error) {
	commit, ok := parseToken(u.Commit)
	if u.Store != s.ID() || !ok {
		return false, fmt.Errorf("the commit is of store %q, this is %s: %w", u.Store, s.id, queue.ErrInvalid)
	}
	err = s.submit(ctx, &call{writes: true, decide: func(v *view) error {
		committed, ok = v.draft.base.happened(commit, u.Revision)
		if !ok {
			return fmt.Errorf("revision %d is too long ago: %w", u.Revision, ErrUnresolved)
		}
		return nil
	}})
	return committed, err
}

// happened reports whether the commit that would have made revision is part of this
// state's past. known is false when the state no longer tells.
func (st *state) happened(commit token, revision uint64) (yes, known bool) {
	switch {
	case st.commit == commit:
		return true, true
	case st.revision <= revision: // its revision was taken by another, or never came
		return false, true
	}
	known = false
	for _, o := range st.resolved {
		switch {
		case o.commit == commit:
			return true, true
		case o.revision == revision, o.revision+1 == revision:
			// A recovery found another commit at that revision, or the one before it
			// and published its own over it.
			known = true
		}
	}
	return false, known
}
