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

	writes   bool  // may change the state
	enqueues bool  // is refused below the free-space floor
	grows    bool  // takes room: needs the reserve to stand, and is refused first when there is none
	settles  bool  // may use the reserve when the disk is full
	mends    bool  // is served although the last owner did not finish
	bytes    int64 // of payloads that it brings
	objects  int   // that these need of their own

	// uncertain adds what the call would have returned.
	uncertain func(u *queue.UncertainError)

	ctx     context.Context
	entered bool // taken into a commit: cancelling it is over; guarded by Store.mu
	err     error
	done    chan struct{}
}

// A view is what a call decides on.
type view struct {
	draft    *draft
	load     loader
	dead     deaths
	reaps    bool // a call of the batch reaped: holders that nobody needs may go
	settled  bool
	unlocked *state // what state.json held, where that was read without the lock; else nil
	owner    *queue.Owner
	pins     *pins
	recovery *Recovery // what serving this batch recovered; nil: nothing
}

// Bounds of what enters one commit together, so that no caller waits for a crowd and
// none spends the descriptors or the memory of all. A call that passes them alone
// goes alone.
const (
	maxGroup        = 4096
	maxGroupBytes   = 16 << 20
	maxGroupObjects = 64
)

// submit puts c in the pipeline and waits for its answer.
func (s *Store) submit(ctx context.Context, c *call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.writes && s.readOnly {
		return ErrReadOnly
	}
	c.ctx, c.done = ctx, make(chan struct{})
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return queue.ErrClosed
	}
	s.waiting = append(s.waiting, c)
	first := !s.running
	s.running = true
	s.mu.Unlock()
	if first {
		s.lead()
	}

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

// lead serves the calls that wait in the goroutine of the first of them, if nobody else
// holds the lock: who calls alone waits for no other goroutine. Nobody who calls waits in
// here but for the disk, as for any commit: where the lock is not free, or company is
// expected, run takes over.
func (s *Store) lead() {
	if s.company.want == 0 {
		mode := s.wanted()
		if t, err := s.obtain(mode, acquireFree); err != nil || t != nil {
			s.round(t, mode, err)
			if s.rest() {
				return
			}
		} else {
			s.counted.waits.Add(1)
		}
	}
	go s.run()
}

// run is the one writer of this handle. It lives while calls wait: it is also the
// one thread that waits for the lock, so a waiter that gives up leaves the wait to
// the next caller, or the lock is let go as soon as it is obtained.
func (s *Store) run() {
	for {
		s.gather()
		mode := s.wanted()
		t, err := s.obtain(mode, acquire)
		s.round(t, mode, err)
		if s.rest() {
			return
		}
	}
}

// round serves what waits under the lock that was obtained, or answers it with the error.
func (s *Store) round(t *tenure, mode fsguard.LockMode, err error) {
	batch := s.take(mode, err != nil)
	if err == nil {
		if len(batch) > 0 {
			s.counted.served(len(batch))
			s.serve(t, batch)
		}
		s.let(t)
	} else {
		failAll(batch, err)
	}
	s.part(batch)
	for _, c := range batch {
		if !c.again() {
			close(c.done)
		}
	}
	s.requeue(batch)
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
	var bytes int64
	var objects int
	rest := s.waiting[:0:0]
	for i, c := range s.waiting {
		if !all && mode != fsguard.Exclusive && c.writes {
			rest = append(rest, c)
			continue
		}
		bytes += c.bytes
		objects += c.objects
		full := len(batch) == maxGroup || bytes > maxGroupBytes || objects > maxGroupObjects
		if !all && full && len(batch) > 0 {
			rest = append(rest, s.waiting[i:]...) // in order: nobody overtakes
			break
		}
		c.entered = true
		batch = append(batch, c)
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
		// Its caller may have given up meanwhile, and waits for this answer alone.
		c.err = c.ctx.Err()
		if s.closed {
			c.err = queue.ErrClosed
		}
		if c.err != nil {
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

// obtain gets the lock on usable descriptors.
func (s *Store) obtain(mode fsguard.LockMode, acquire func(*pins, fsguard.LockMode) (*tenure, error)) (*tenure, error) {
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
		// The disk may have refused our record too, so that the one before it stands.
		s.blankLater = []string{t.owner.Token, t.found.Token}
	} else if t.written {
		s.blankLater = nil
	}
	if t.pins.spent {
		s.drop()
	} else if s.cached != nil && !s.cached.st.exchange {
		s.cached.close() // a replaced state.json gives its room back at once
	}
}

// drop gives up every descriptor: the next call opens and admits them anew.
func (s *Store) drop() {
	s.forget()
	s.forgetRetired()
	if s.pins != nil {
		s.pool.giveUp(s.pins.objects)
		s.pins.close()
		s.pins = nil
	}
}
