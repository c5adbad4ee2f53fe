//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

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

// glance looks without the lock. What is read is some whole state; that its commit is
// durable, nobody has said.
func (s *Store) glance(decide func(v *view) error) error {
	for range maxReadings {
		if moved, err := s.glanceOnce(decide); !moved {
			return err
		}
	}
	return fmt.Errorf("%s changed during each of %d readings: %w", stateFile, maxReadings, ErrBusy)
}

// glanceOnce reports moved when what was seen may be of objects that are gone.
func (s *Store) glanceOnce(decide func(v *view) error) (moved bool, err error) {
	p, err := s.repin(true)
	if err != nil {
		return false, err
	}
	defer p.close()
	// Taken before the state is read, it keeps what that names until p is closed. A collector
	// at work refuses it; it removes nothing that the state of now names either, so that what
	// was seen holds where that is the state still.
	shared, _ := p.objects.TryLock(fsguard.Shared)
	c, err := s.readUnlocked(p)
	if err != nil {
		return false, err
	}
	stands := c.st
	c, err = s.followUnlocked(p, c)
	defer c.close()
	if err != nil {
		return false, err
	}
	c.st.reader = newRunFiles(func() fsguard.Dir { return p.objects })
	if c.st.store != s.id {
		return false, fmt.Errorf("%s is another store than the one that was opened: %w", s.dir, ErrReplaced)
	}
	reader := &payloads{objects: p.objects}
	defer reader.close()
	d := newDraft(c.st, c.st.commit, s.clock.Now(), c.size)
	v := &view{draft: d, load: reader.read, pins: p, unlocked: stands, owner: s.glanceOwner(p)}
	err = decide(v)
	return !shared && errors.Is(v.unmoved(), errMoved), err
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
