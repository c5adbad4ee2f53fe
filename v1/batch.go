//go:build unix

package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// BatchOptions shape LoadPending. The zero value works.
type BatchOptions struct {
	// Migrate is as in LoadOptions.
	Migrate func(ctx context.Context, id string, payload []byte) ([]byte, error)

	// After loads only IDs that sort after this one. Zero: all.
	After string

	// Limit bounds how many claims come back, each of which holds a descriptor. Zero: no
	// bound.
	Limit int

	// TempMaxAge removes temporary files (any name that ends in .tmp) whose last
	// modification is at least so long ago. Zero: none are removed.
	TempMaxAge time.Duration
}

// A Batch is what LoadPending found.
type Batch struct {
	Claims  []*Claim  // by ID
	Skipped []Skipped // by ID: entries that stay where they are
}

// A Skipped entry could not be claimed because it is not the queue's alone, or not be
// read.
type Skipped struct {
	ID  string
	Err error
}

// LoadPending claims and reads every entry, pending or claimed already, in the order of
// their IDs. What cannot be owned or parsed is skipped and reported. A transition or a
// migration that fails is an error: the error names each, and the batch has whatever
// else could be loaded. It also removes the delivered markers that interrupted
// acknowledgements left.
func (s *Store) LoadPending(ctx context.Context, o *BatchOptions) (Batch, error) {
	if o == nil {
		o = &BatchOptions{}
	}
	q, err := s.queue.admit()
	if err != nil {
		return Batch{}, err
	}
	defer q.Close()
	listed, err := q.ReadDir()
	if err != nil {
		return Batch{}, err
	}
	errs := s.sweep(ctx, q, listed, o.TempMaxAge)
	var b Batch
	for _, id := range entryIDs(listed) {
		if id <= o.After {
			continue
		}
		if o.Limit > 0 && len(b.Claims) == o.Limit || ctx.Err() != nil {
			break
		}
		c, skipped, err := s.loadOne(ctx, id, &LoadOptions{Migrate: o.Migrate})
		switch {
		case err != nil:
			errs = append(errs, &Error{File: id + pendingSuffix, What: errLoad, Err: err})
		case skipped != nil:
			b.Skipped = append(b.Skipped, Skipped{id, skipped})
		case c != nil:
			b.Claims = append(b.Claims, c)
		}
	}
	return b, errors.Join(append(errs, ctx.Err())...)
}

// errLoad heads what failed for one entry of a batch.
var errLoad = errors.New("could not be loaded")

// entryIDs gives the IDs that have a pending or claimed name, sorted.
func entryIDs(listed []string) []string {
	ids := map[string]bool{}
	for _, name := range listed {
		for _, suffix := range []string{pendingSuffix, processingSuffix} {
			if id, ok := cutID(name, suffix); ok {
				ids[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// loadOne is Load that tells what a batch passes over from what it fails on.
func (s *Store) loadOne(ctx context.Context, id string, o *LoadOptions) (c *Claim, skipped, err error) {
	claimed := false
	err = s.transfer(ctx, id, func(t *transfer) (err error) {
		claimed, err = t.claim()
		if errors.Is(err, errUnowned) || errors.Is(err, ErrNotFile) {
			skipped, err = err, nil // not a failed transition: there is no entry to make one of
		}
		return err
	})
	if err != nil || !claimed {
		return nil, skipped, err
	}
	c, err = s.read(id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil, nil // settled by another consumer just now
	}
	if entryError(err) {
		return nil, err, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := s.migrate(ctx, c, o); err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, nil, nil
}

// entryError reports whether err is about the entry and not about the system: no other
// call would fail by it.
func entryError(err error) bool {
	for _, what := range []error{ErrInvalidJSON, ErrTooLarge, ErrNotFile, ErrPathMismatch, ErrChanged} {
		if errors.Is(err, what) {
			return true
		}
	}
	return false
}

// sweep removes what no entry needs: delivered markers, and old temporary files.
func (s *Store) sweep(ctx context.Context, q fsguard.Dir, listed []string, maxAge time.Duration) (errs []error) {
	for _, name := range listed {
		if ctx.Err() != nil {
			return errs
		}
		if id, ok := cutID(name, deliveredSuffix); ok {
			if err := s.unmark(ctx, id); err != nil {
				errs = append(errs, err)
			}
		} else if maxAge > 0 && isTemp(name) {
			if err := s.removeOld(q, name, maxAge); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// unmark removes the delivered marker of id: its entry was acknowledged.
func (s *Store) unmark(ctx context.Context, id string) error {
	return s.transfer(ctx, id, func(t *transfer) error {
		marker, there, err := lstat(t.q, t.delivered)
		if err != nil || !there || !marker.Mode.IsRegular() {
			return err // a stray is no marker
		}
		if err := t.q.Remove(t.delivered); err != nil {
			return err
		}
		return t.sync()
	})
}

// removeOld removes a temporary file of that age. A young one may be somebody's write.
func (s *Store) removeOld(q fsguard.Dir, name string, maxAge time.Duration) error {
	info, there, err := lstat(q, name)
	if err != nil || !there || !info.Mode.IsRegular() || s.opts.now().Sub(time.Unix(0, info.MtimeNanos)) < maxAge {
		return err
	}
	if err := q.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
