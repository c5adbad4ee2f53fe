//go:build unix

package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// A Claim is an entry that was claimed. It holds a descriptor on the claimed file, so that
// no other file can be taken for it: Ack, Fail and Close give it back. The claim on disk
// outlives the process, and any consumer that loads the ID gets the same one: delivery is
// at least once, and a claim is no lease.
type Claim struct {
	ID      string
	Payload []byte // the file's bytes

	mu     sync.Mutex
	file   fsguard.File // nil: closed
	fileID fsguard.Identity
	ended  bool // an Ack of it has begun to take effect
	shut   bool // settled or closed
	users  int  // settlements under way, which compare by the descriptor
}

// Close gives back the descriptor, once no Ack or Fail of this Claim is under way. The
// entry stays claimed; Ack and Fail refuse this Claim from then on. A second Close does
// nothing.
func (c *Claim) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	return c.unpin()
}

// unpin closes the file of a claim that is shut, unless somebody still compares by it: its
// inode number could mean a newer file then.
func (c *Claim) unpin() error {
	if !c.shut || c.users > 0 || c.file == nil {
		return nil
	}
	file := c.file
	c.file = nil
	return file.Close()
}

func (c *Claim) identity() fsguard.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fileID
}

func (c *Claim) isEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// end notes that c is no longer claimed, whatever happens. A nil Claim is nobody's.
func (c *Claim) end() {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
	}
}

// settling runs a transition that ends c.
func (c *Claim) settling(f func() error) error {
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		return &Error{File: c.ID + processingSuffix, What: ErrSettled}
	}
	c.users++
	c.mu.Unlock()
	err := f()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	c.shut = c.shut || err == nil
	_ = c.unpin() // what was settled is: an error of a file that was only read does not undo it
	return err
}

// LoadOptions shape a load. The zero value works.
type LoadOptions struct {
	// Migrate may give an entry a new payload, as from an older form of it. It runs
	// after the claim and outside the transfer lock. A payload that is not nil replaces the
	// claimed one, unless the claim is another file by then: ErrPathMismatch. Nil: the
	// entry stays as it is.
	Migrate func(ctx context.Context, id string, payload []byte) ([]byte, error)
}

// Load claims the entry of id, or finds it claimed, and reads it. On nil the claim is
// durable, and what an interrupted transition left of this entry was finished first.
// ErrNotFound: there is no entry, or another consumer settled it just now. An error after
// the claim leaves the entry claimed, and the next Load gives it again.
func (s *Store) Load(ctx context.Context, id string, o *LoadOptions) (*Claim, error) {
	c, claimed, err := s.obtain(ctx, id, s.opts.now(), func(t *transfer) (bool, error) { return t.claim() })
	if err != nil {
		return nil, err
	}
	if !claimed {
		return nil, &Error{File: id + pendingSuffix, What: ErrNotFound}
	}
	if err := s.migrate(ctx, c, o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// obtain claims by the given call and reads the claim. An error beside claimed is one of
// reading. A second name that the reading meets may be a quarantine under way: the lock
// waits for that.
func (s *Store) obtain(ctx context.Context, id string, began time.Time, claim func(t *transfer) (bool, error)) (c *Claim, claimed bool, err error) {
	for range 3 {
		claimed = false
		err = s.transferSince(ctx, id, began, func(t *transfer) (err error) {
			claimed, err = claim(t)
			return err
		})
		if err != nil || !claimed {
			return nil, false, err
		}
		if c, err = s.read(id); !errors.Is(err, fsguard.ErrLinked) {
			break
		}
	}
	return c, true, err
}

// read opens and reads the claim of id, without the lock: what stands at its name now.
func (s *Store) read(id string) (*Claim, error) {
	q, err := s.queue.admit()
	if err != nil {
		return nil, err
	}
	defer q.Close()
	file, payload, err := readEntry(q, id+processingSuffix, s.opts.MaxEntryBytes)
	if err != nil {
		return nil, err
	}
	info, err := file.Info()
	if err == nil {
		err = checkJSON(id+processingSuffix, payload)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Claim{ID: id, Payload: payload, file: file, fileID: info.Identity}, nil
}

// readEntry opens and reads the plain file name, whose identity it checks before, on the
// descriptor, and after. The file comes back open.
func readEntry(dir fsguard.Dir, name string, limit int64) (file fsguard.File, payload []byte, err error) {
	before, err := inspect(dir, name)
	if err != nil {
		return nil, nil, err
	}
	file, err = dir.Open(name)
	if err != nil {
		return nil, nil, unreadable(name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
			file, payload = nil, nil
		}
	}()
	opened, err := file.Info()
	if err != nil {
		return file, nil, err
	}
	after, err := inspect(dir, name)
	if err != nil {
		return file, nil, err
	}
	if before.Identity != opened.Identity || after.Identity != opened.Identity {
		return file, nil, &Error{File: name, What: ErrChanged}
	}
	payload, err = fsguard.ReadAll(file, limit)
	if err != nil {
		return file, nil, unreadable(name, err)
	}
	return file, payload, nil
}

// inspect is lstat of an entry that must be a plain file with one link.
func inspect(dir fsguard.Dir, name string) (fsguard.Info, error) {
	info, there, err := regular(dir, name, ErrNotFile)
	if err != nil {
		return info, err
	}
	if !there {
		return info, &Error{File: name, What: ErrNotFound}
	}
	if info.Links != 1 {
		return info, unreadable(name, fsguard.ErrLinked)
	}
	return info, nil
}

// unreadable names an error of reading an entry.
func unreadable(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{File: name, What: ErrNotFound}
	case errors.Is(err, fsguard.ErrTooLong):
		return &Error{File: name, What: ErrTooLarge, Why: "raise MaxEntryBytes, or set the entry aside with FailID", Err: err}
	case errors.Is(err, fsguard.ErrLinked):
		return &Error{File: name, What: ErrPathMismatch, Why: "open the store with its failed directory to finish an interrupted Fail, or remove the other link", Err: err}
	case notPlain(err):
		return &Error{File: name, What: ErrNotFile, Err: err}
	}
	return err
}
