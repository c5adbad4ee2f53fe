//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// serve decides the calls of a batch in order and commits what they change. Every
// answer of the batch is given after that commit, and fails with it: a refusal or
// an empty claim may rest on what the commit holds.
func (s *Store) serve(t *tenure, batch []*call) {
	st, err := s.current(t.pins)
	if err != nil {
		failAll(batch, err)
		return
	}
	v := &view{settled: true, pins: t.pins}
	if t.stale && t.found.Token != "" && slices.Contains(s.blankLater, t.found.Token) {
		// Ours: that commit was whole, only the blanking failed. It is made up for now.
		t.stale, t.owner, t.written = false, t.found, t.mode == fsguard.Exclusive
	}
	if t.stale {
		mine := s.open != nil && t.found.Token != "" && t.found.Token == s.open.owner
		switch {
		case !mine && st.settings.OnDeadOwner != AutoRecover && !anyMends(batch):
			v.settled = false
		case s.readOnly:
			v.settled = false
		case t.mode != fsguard.Exclusive:
			failAll(batch, errAgain) // what was left open is closed under the exclusive lock
			return
		default:
			if v.recovery, err = s.recover(t, st); err != nil {
				failAll(batch, err)
				return
			}
			if st, err = s.current(t.pins); err != nil {
				failAll(batch, err)
				return
			}
		}
		if !v.settled {
			owner := t.found
			v.owner = &owner
		}
	}
	if !t.stale {
		s.open = nil // resolved, by us or by another process
		if err := s.advance(st); err != nil {
			failAll(batch, err)
			return
		}
	}
	s.commitAll(t, v, st, batch)
	if t.pins.doubted {
		s.leaveDoubt(t)
	}
}

// leaveDoubt leaves a record in the lock when a sync of the namespace failed outside of a
// commit: which names of the commits before it are durable nobody knows any more. What
// these committed stands; a recovery brings it to a name that is known.
func (s *Store) leaveDoubt(t *tenure) {
	t.pins.spent = true
	if t.keep || t.mode != fsguard.Exclusive {
		return // a commit has left one
	}
	tok, _ := newToken(s.rand) // without one it is a record all the same
	owner := newOwner(tok, s.clock.Now())
	owner.Uncertain = true
	t.keep = true
	if err := t.sign(owner); err != nil {
		return // what is there of it is a record too; of two faults at once nobody may learn
	}
	s.open = &uncertainCommit{owner: owner.Token, store: s.id}
}

// advance refuses a settled state that is older than one that this handle has seen, or
// of the same revision and another commit: somebody put an old copy in its place, and
// receipts of the claims made since then would be given out a second time.
func (s *Store) advance(st *state) error {
	if st.revision < s.seen.revision || st.revision == s.seen.revision && st.commit != s.seen.commit {
		return fmt.Errorf("%s went back from revision %d to %d: %w", stateFile, s.seen.revision, st.revision, ErrReplaced)
	}
	s.seen = outcome{st.commit, st.revision}
	return nil
}

func anyMends(batch []*call) bool {
	for _, c := range batch {
		if c.mends {
			return true
		}
	}
	return false
}

// commitAll decides and commits until the batch is answered. When there is no room, on
// the disk, in the state or for descriptors, enqueues are refused first, then claims
// and what else takes room; the rest is tried without texts for people, and last
// without the reserve.
func (s *Store) commitAll(t *tenure, v *view, st *state, batch []*call) {
	now := s.clock.Now()
	stands := true // of no interest to looks
	if t.mode == fsguard.Exclusive {
		var err error
		if stands, err = reserved(t.pins); err != nil {
			failAll(batch, err)
			return
		}
	}
	holders := newProver(s, t.pins)
	defer holders.close()
	v.dead = holders.dead
	for tight := !stands; ; {
		commit, err := newToken(s.rand)
		if err != nil {
			failAll(batch, err)
			return
		}
		v.draft = newDraft(st, commit, now, s.cached.size)
		v.draft.limit, v.draft.tight, v.draft.block = s.opts.MaxStateBytes, tight, s.opts.block
		reader := &payloads{objects: t.pins.objects}
		v.load = func(r *ref) ([]byte, string, error) {
			if i, ok := v.draft.itemOf[r.gen]; ok {
				return bytes.Clone(v.draft.items[i].payload), "", nil
			}
			return reader.read(r)
		}
		room := s.decideAll(t, v, batch)
		reader.close()
		if !v.draft.dirty {
			if v.reaps && s.swept == "" { // what others left before this handle was opened
				holders.sweep(st.holds())
			}
			return
		}
		err = s.commit(t, v.draft, room)
		switch {
		case err == nil:
			if v.reaps {
				holders.sweep(v.draft.st.holds())
			}
			return
		case noRoom(err) && room == enqueuing:
			batch = refuse(batch, err, func(c *call) bool { return c.enqueues })
		case noRoom(err) && room == claiming:
			batch = refuse(batch, err, func(c *call) bool { return c.grows })
		case isFull(err) && anySettles(batch) && !tight && int64(len(s.text)) > s.cached.size:
			tight = true
		case isFull(err) && anySettles(batch) && s.giveUpSpares(t.pins):
		case isFull(err) && anySettles(batch) && s.giveUpReserve(t.pins):
		default:
			failCommit(batch, err)
			return
		}
		s.counted.retries.Add(1)
		if err := t.pins.renew(); err != nil {
			failAll(batch, err)
			return
		}
	}
}

// decideAll runs every call of the batch on the draft and reports what room they take.
func (s *Store) decideAll(t *tenure, v *view, batch []*call) (takes roomFor) {
	var room error
	asked := false
	for _, c := range batch {
		switch {
		case c.writes && !v.settled:
			c.err = &StaleLockError{Owner: t.found}
			continue
		case c.enqueues && !asked:
			room, asked = s.room(t.pins), true
		}
		if c.enqueues && room != nil {
			c.err = room
			continue
		}
		c.err = c.decide(v)
		switch {
		case c.err != nil:
		case c.enqueues:
			takes = enqueuing
		case c.grows:
			takes = max(takes, claiming)
		}
	}
	return takes
}

// refuse answers the calls that there is no room for and gives the others, which are
// decided again on a draft without them.
func refuse(batch []*call, err error, takesRoom func(*call) bool) (rest []*call) {
	if isFull(err) {
		err = fmt.Errorf("%w: %w", queue.ErrFull, err)
	}
	for _, c := range batch {
		if takesRoom(c) {
			c.err = err
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

func anySettles(batch []*call) bool {
	for _, c := range batch {
		if c.settles && c.err == nil {
			return true
		}
	}
	return false
}

// failCommit gives every call of a failed commit its error: the cause, or, when the
// commit is uncertain, that together with what the call would have returned.
func failCommit(batch []*call, err error) {
	var open *uncertainCommit
	certain := !errors.As(err, &open)
	for _, c := range batch {
		own := err
		if !certain {
			u := &queue.UncertainError{
				Store: open.store.String(), Revision: open.revision,
				Commit: open.commit.String(), Base: open.base.String(), Err: open.err,
			}
			if c.err != nil {
				u.Refused = c.err
			} else if c.uncertain != nil {
				c.uncertain(u)
			}
			own = u
		}
		if c.err = own; !c.writes {
			c.err = &bystanderError{own}
		}
	}
}

// A bystanderError is what a look is told that waited for the commit of others, which
// failed: its answer would rest on that. It may look again.
type bystanderError struct{ err error }

func (e *bystanderError) Error() string { return e.err.Error() }
func (e *bystanderError) Unwrap() error { return e.err }
