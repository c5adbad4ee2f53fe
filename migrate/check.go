//go:build unix

package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	v1 "example.com/holdfast/v1"

	"example.com/holdfast/queue"
)

// check reads every entry and gives the manifest. What cannot be imported is a
// ProblemsError, or skipped.
func (r *run) check(ctx context.Context, found []v1.Entry) ([]entry, error) {
	out := []entry{}
	for i, file := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e := entryOf(file)
		problem, err := r.checkOne(&e)
		if err != nil {
			return nil, err
		}
		if problem != nil {
			e.Skipped = true
			r.rep.Skipped = append(r.rep.Skipped, Problem{file.File, problem})
		}
		out = append(out, e)
		r.o.progress(Checking, i+1, len(found))
	}
	slices.SortFunc(r.rep.Skipped, func(a, b Problem) int { return cmp.Compare(a.File, b.File) })
	if len(r.rep.Skipped) > 0 && !r.o.SkipInvalid {
		problems := r.rep.Skipped
		r.rep.Skipped = nil
		return nil, &ProblemsError{ErrUnimportable, problems}
	}
	return out, nil
}

// checkOne reads one entry. A problem is the entry's; an error is not.
func (r *run) checkOne(e *entry) (problem, err error) {
	switch {
	case !e.file.Plain:
		return v1.ErrNotFile, nil
	case e.file.Links > 1 && r.src.FailedDir() == "" && e.file.State == v1.EntryClaimed:
		return fmt.Errorf("%w: it has %d links: was it on its way to a failed directory? then name that (--failed)", v1.ErrPathMismatch, e.file.Links), nil
	case e.file.Links > 1:
		return fmt.Errorf("%w: it has %d links: it is not this queue's alone", v1.ErrPathMismatch, e.file.Links), nil
	}
	if err := queue.CheckID(e.ID); err != nil {
		return err, nil
	}
	payload, err := r.src.Read(e.file)
	switch {
	case errors.Is(err, v1.ErrTooLarge):
		return err, nil
	case errors.Is(err, v1.ErrNotFound), errors.Is(err, v1.ErrChanged):
		return nil, &ProblemsError{ErrFence, []Problem{{e.file.File, err}}}
	case errors.Is(err, v1.ErrPathMismatch) && r.before:
		return nil, nil // two names that a recovery would make one
	case err != nil:
		return nil, err
	}
	bytes, depth := r.o.bounds()
	if err := queue.CheckPayload(payload, bytes, depth); err != nil {
		return err, nil
	}
	e.sum = sha256.Sum256(payload)
	e.SHA256 = hex.EncodeToString(e.sum[:])
	return nil, nil
}

// count puts into the report what the import is of.
func (r *run) count(m *marker) {
	r.rep.Claimed, r.rep.Pending, r.rep.Failed, r.rep.Bytes = 0, 0, 0, 0
	for _, e := range m.Entries {
		if e.Skipped {
			continue
		}
		r.rep.Bytes += e.Size
		switch e.file.State {
		case v1.EntryClaimed:
			r.rep.Claimed++
		case v1.EntryPending:
			r.rep.Pending++
		case v1.EntryFailed:
			r.rep.Failed++
		}
	}
}
