//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A call is one request on its way through the pipeline. Its decide function is
// pure but for reading payloads, and may be run again when a commit is tried anew.
type call struct {
	decide func(v *view) error

	writes  bool // may change the state
	grows   bool // adds to the state: refused when disk or state is full
	settles bool // may use the reserve when the disk is full
	mends   bool // is served although the last owner did not finish

	// uncertain adds what the call would have returned.
	uncertain func(u *queue.UncertainError)

	entered bool // taken into a commit: cancelling it is over; guarded by Store.mu
	err     error
	done    chan struct{}
}

// A view is what a call decides on.
type view struct {
	draft    *draft
	load     loader
	settled  bool
	owner    *queue.Owner
	pins     *pins
	recovery *Recovery // what serving this batch recovered; nil: nothing
}

// maxGroup bounds how many calls enter one commit.
const maxGroup = 4096

// submit puts c in the pipeline and waits for its answer.
func (s *Store) submit(ctx context.Context, c *call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.writes && s.readOnly {
		return ErrReadOnly
	}
	c.done = make(chan struct{})
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return queue.ErrClosed
	}
	s.waiting = append(s.waiting, c)
	if !s.running {
		s.running = true
		go s.run()
	}
	s.mu.Unlock()

	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	if s.withdraw(c) {
		return ctx.Err()
	}
	<-c.done // it had entered a commit: its result counts
	return c.err
}

// withdraw takes a call back that has not entered a commit.
func (s *Store) withdraw(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.entered {
		return false
	}
	for i, w := range s.waiting {
		if w == c {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			break
		}
	}
	return true
}

// run is the one writer of this handle. It lives while calls wait: it is also the
// one thread that waits for the lock, so a waiter that gives up leaves the wait to
// the next caller, or the lock is let go as soon as it is obtained.
func (s *Store) run() {
	for {
		mode := s.wanted()
		t, err := s.obtain(mode)
		batch := s.take(mode, err != nil)
		if err == nil {
			if len(batch) > 0 {
				s.serve(t, batch)
			}
			s.let(t)
		} else {
			failAll(batch, err)
		}
		for _, c := range batch {
			if !c.again() {
				close(c.done)
			}
		}
		s.requeue(batch)
		if s.rest() {
			return
		}
	}
}

// wanted says how the lock must be held for what waits: a lone look shares it.
func (s *Store) wanted() fsguard.LockMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockWait = true
	s.idle.Broadcast() // Close does not wait for a wait
	if s.needExclusive && !s.readOnly {
		return fsguard.Exclusive
	}
	for _, c := range s.waiting {
		if c.writes {
			return fsguard.Exclusive
		}
	}
	return fsguard.Shared
}

// take moves waiting calls into a commit. Under a shared lock only looks go.
func (s *Store) take(mode fsguard.LockMode, all bool) []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockWait = false
	var batch []*call
	rest := s.waiting[:0:0]
	for _, c := range s.waiting {
		if len(batch) < maxGroup && (all || mode == fsguard.Exclusive || !c.writes) {
			c.entered = true
			batch = append(batch, c)
		} else {
			rest = append(rest, c)
		}
	}
	s.waiting = rest
	return batch
}

// errAgain is the answer of a look that has to be taken under the exclusive lock.
var errAgain = errors.New("again")

func (c *call) again() bool { return c.err == errAgain }

// requeue puts looks back that need the exclusive lock.
func (s *Store) requeue(batch []*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needExclusive = false
	for _, c := range batch {
		if !c.again() {
			continue
		}
		if c.err = nil; s.closed {
			c.err = queue.ErrClosed
			close(c.done)
			continue
		}
		c.entered = false
		s.waiting = append(s.waiting, c)
		s.needExclusive = true
	}
}

// rest ends the run when nothing waits.
func (s *Store) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		return false
	}
	s.running = false
	if s.closed {
		s.drop()
	}
	s.idle.Broadcast()
	return true
}

func failAll(batch []*call, err error) {
	for _, c := range batch {
		c.err = err
	}
}

// obtain waits for the lock on usable descriptors.
func (s *Store) obtain(mode fsguard.LockMode) (*tenure, error) {
	if s.pins == nil {
		p, err := s.repin(s.readOnly)
		if err != nil {
			return nil, err
		}
		s.pins = p
	}
	t, err := acquire(s.pins, mode)
	if err != nil {
		s.drop()
	}
	return t, err
}

// repin opens and admits the store's files again: they must be the ones that were
// there when it was opened.
func (s *Store) repin(readOnly bool) (*pins, error) {
	p, err := pin(s.fs, s.dir, &s.opts, readOnly)
	if errors.Is(err, ErrNoStore) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	if err != nil {
		return nil, err
	}
	if err := s.known.still(s.dir, p.ids()); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// let releases the lock.
func (s *Store) let(t *tenure) {
	if t.release() {
		s.blankLater = t.owner.Token
	} else if t.written {
		s.blankLater = ""
	}
	if t.pins.spent {
		s.drop()
	}
}

// drop gives up every descriptor: the next call opens and admits them anew.
func (s *Store) drop() {
	s.forget()
	if s.pins != nil {
		s.pins.close()
		s.pins = nil
	}
}

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
	if t.stale && t.found.Token != "" && t.found.Token == s.blankLater {
		t.stale = false // ours: that commit was whole, only the blanking failed
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
	}
	s.commitAll(t, v, st, batch)
}

func anyMends(batch []*call) bool {
	for _, c := range batch {
		if c.mends {
			return true
		}
	}
	return false
}

// commitAll decides and commits until the batch is answered. When the disk is full,
// enqueues are refused first, and then the reserve is given up for a commit that
// settles.
func (s *Store) commitAll(t *tenure, v *view, st *state, batch []*call) {
	now := s.clock.Now()
	for {
		commit, err := newToken(s.rand)
		if err != nil {
			failAll(batch, err)
			return
		}
		v.draft = newDraft(st, commit, now, s.cached.size)
		reader := &payloads{objects: t.pins.objects}
		v.load = func(r *ref) ([]byte, string, error) {
			if i, ok := v.draft.itemOf[r.gen]; ok {
				return v.draft.items[i].payload, "", nil
			}
			return reader.read(r)
		}
		grows := s.decideAll(t, v, batch)
		reader.close()
		if !v.draft.dirty {
			return
		}
		err = s.commit(t, v.draft, grows)
		switch {
		case err == nil:
			return
		case isFull(err) && grows:
			refuseGrowing(batch, err)
		case isFull(err) && anySettles(batch) && s.giveUpReserve(t.pins):
		default:
			failCommit(batch, err)
			return
		}
		batch = undecided(batch)
		if err := t.pins.renew(); err != nil {
			failAll(batch, err)
			return
		}
	}
}

// decideAll runs every call of the batch on the draft and reports whether one of
// them adds to the state.
func (s *Store) decideAll(t *tenure, v *view, batch []*call) (grows bool) {
	var room error
	asked := false
	for _, c := range batch {
		switch {
		case c.writes && !v.settled:
			c.err = &StaleLockError{Owner: t.found}
			continue
		case c.grows && !asked:
			room, asked = s.room(t.pins), true
		}
		if c.grows && room != nil {
			c.err = room
			continue
		}
		c.err = c.decide(v)
		if c.grows && c.err == nil {
			grows = true
		}
	}
	return grows
}

// refuseGrowing answers the calls that a full disk has no room for.
func refuseGrowing(batch []*call, err error) {
	for _, c := range batch {
		if c.grows {
			c.err = fmt.Errorf("%w: %w", queue.ErrFull, err)
		}
	}
}

// undecided gives the calls that a full disk does not refuse: they are decided
// again, on a draft without the others.
func undecided(batch []*call) []*call {
	var rest []*call
	for _, c := range batch {
		if !c.grows {
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
	if !errors.As(err, &open) {
		failAll(batch, err)
		return
	}
	for _, c := range batch {
		u := &queue.UncertainError{
			Store: open.store.String(), Revision: open.revision,
			Commit: open.commit.String(), Base: open.base.String(), Err: open.err,
		}
		if c.err != nil {
			u.Refused = c.err
		} else if c.uncertain != nil {
			c.uncertain(u)
		}
		c.err = u
	}
}

// look submits a call that changes nothing. With a LookAfter it shows, when the
// lock does not come in time, the last committed state, unsettled.
func (s *Store) look(ctx context.Context, decide func(v *view) error) error {
	c := &call{decide: decide}
	if s.opts.LookAfter <= 0 || !s.readOnly {
		return s.submit(ctx, c)
	}
	short, cancel := context.WithTimeout(ctx, s.opts.LookAfter)
	defer cancel()
	err := s.submit(short, c)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return s.glance(decide)
	}
	return err
}

// glance looks without the lock. state.json is replaced atomically, so what is read
// is some whole state; that its commit is durable, nobody has said.
func (s *Store) glance(decide func(v *view) error) error {
	p, err := s.repin(true)
	if err != nil {
		return err
	}
	defer p.close()
	c, err := s.readState(p)
	if err != nil {
		return err
	}
	defer c.close()
	if c.st.store != s.id {
		return fmt.Errorf("%s is another store than the one that was opened: %w", s.dir, ErrReplaced)
	}
	reader := &payloads{objects: p.objects}
	defer reader.close()
	d := newDraft(c.st, c.st.commit, s.clock.Now(), c.size)
	return decide(&view{draft: d, load: reader.read, pins: p, owner: s.glanceOwner(p)})
}

// glanceOwner reads who holds the lock now, for people.
func (s *Store) glanceOwner(p *pins) *queue.Owner {
	var buf [recordSize + 1]byte
	n, _ := p.lock.ReadAt(buf[:], 0) // an unreadable record shows as an unknown owner
	owner, blank := decodeRecord(buf[:n])
	if blank {
		return nil
	}
	return &owner
}
