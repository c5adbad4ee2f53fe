//go:build unix

package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
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

// A Skipped entry could not be claimed, because it is not the queue's alone or its ID leaves
// no room for the name of a claim, or it could not be read.
type Skipped struct {
	ID  string
	Err error
}

// LoadPending claims and reads every entry, pending or claimed already, in the order of
// their IDs. What cannot be owned or parsed is skipped and reported. A transition or a
// migration that fails is an error: the error names each, and the batch has whatever
// else could be loaded. IDs whose lock is held come last, and are waited for together for
// at most 45 s, or until the context ends. It also removes the delivered markers that
// interrupted acknowledgements left.
func (s *Store) LoadPending(ctx context.Context, o *BatchOptions) (Batch, error) {
	if o == nil {
		o = &BatchOptions{}
	}
	q, err := s.enter()
	if err != nil {
		return Batch{}, err
	}
	defer q.Close()
	listed, err := q.ReadDir()
	if err != nil {
		return Batch{}, err
	}
	l := &loading{s: s, o: o, errs: s.sweep(ctx, q, listed, o.TempMaxAge)}
	l.passOverLong(listed)
	ids := entryIDs(listed)
	first, _ := slices.BinarySearch(ids, o.After+"\x00")
	held := l.pass(ctx, ids[first:], s.opts.now().Add(-lockPatience), nil)
	held = l.pass(ctx, slices.Sorted(maps.Keys(held)), s.opts.now(), held)
	for _, id := range slices.Sorted(maps.Keys(held)) {
		l.errs = append(l.errs, held[id])
	}
	l.sort()
	return l.batch, errors.Join(append(l.errs, ctx.Err())...)
}

// A loading is one LoadPending under way.
type loading struct {
	s     *Store
	o     *BatchOptions
	batch Batch
	errs  []error
}

// pass loads what it can of the IDs, having waited for locks since began, and gives what
// was said of those whose lock it did not get; before: by an earlier pass.
func (l *loading) pass(ctx context.Context, ids []string, began time.Time, before map[string]error) map[string]error {
	held := map[string]error{}
	for i, id := range ids {
		if l.o.Limit > 0 && len(l.batch.Claims) == l.o.Limit || ctx.Err() != nil {
			for _, id := range ids[i:] {
				if err := before[id]; err != nil {
					held[id] = err
				}
			}
			break
		}
		c, skipped, err := l.s.loadOne(ctx, id, began, &LoadOptions{Migrate: l.o.Migrate})
		if err != nil {
			err = &Error{File: id + pendingSuffix, What: errLoad, Err: err}
		}
		switch {
		case errors.Is(err, ErrLockTimeout):
			held[id] = err
		case err != nil:
			l.errs = append(l.errs, err)
		case skipped != nil:
			l.batch.Skipped = append(l.batch.Skipped, Skipped{id, skipped})
		case c != nil:
			l.batch.Claims = append(l.batch.Claims, c)
		}
	}
	return held
}

// passOverLong reports the pending entries that only the npm package writes: their IDs
// leave no room for the name of a claim, so nobody can ever claim them.
func (l *loading) passOverLong(listed []string) {
	for _, name := range listed {
		if id, ok := cutName(name, pendingSuffix); ok && len(id) > maxIDBytes && id > l.o.After {
			l.batch.Skipped = append(l.batch.Skipped, Skipped{id, checkID(id)})
		}
	}
}

func (l *loading) sort() {
	slices.SortFunc(l.batch.Claims, func(a, b *Claim) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(l.batch.Skipped, func(a, b Skipped) int { return strings.Compare(a.ID, b.ID) })
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
func (s *Store) loadOne(ctx context.Context, id string, began time.Time, o *LoadOptions) (c *Claim, skipped, err error) {
	c, claimed, err := s.obtain(ctx, id, began, func(t *transfer) (claimed bool, err error) {
		claimed, err = t.claim()
		if errors.Is(err, errUnowned) || errors.Is(err, ErrNotFile) {
			skipped, err = err, nil // not a failed transition: there is no entry to make one of
		}
		return claimed, err
	})
	if !claimed {
		return nil, skipped, err
	}
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

// unmark removes the delivered marker of id: its entry was acknowledged. One whose lock is
// held is left to its holder.
func (s *Store) unmark(ctx context.Context, id string) error {
	err := s.transferSince(ctx, id, s.opts.now().Add(-lockPatience), func(t *transfer) error {
		marker, there, err := lstat(t.q, t.delivered)
		if err != nil || !there || !marker.Mode.IsRegular() {
			return err // a stray is no marker
		}
		if err := t.q.Remove(t.delivered); err != nil {
			return err
		}
		return t.sync()
	})
	if errors.Is(err, ErrLockTimeout) {
		return nil
	}
	return err
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
