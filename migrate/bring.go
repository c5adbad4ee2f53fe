//go:build unix

package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// What one commit brings at most. A message of more bytes comes alone.
const (
	batchMessages = 500
	batchBytes    = 4 << 20
)

func (r *run) addAll(ctx context.Context, imp *v2.Import, m *marker) error {
	var batch []v2.Imported
	var files []string
	bytes, most := 0, cmp.Or(r.o.batch, batchMessages)
	add := func() error {
		if len(batch) == 0 {
			return nil
		}
		added, err := imp.Add(ctx, batch...)
		if err != nil {
			return refused(err, files)
		}
		r.rep.Added += added
		batch, files, bytes = batch[:0], files[:0], 0
		r.o.at("added")
		return nil
	}
	for i, e := range m.Entries {
		if e.Skipped {
			continue
		}
		payload, err := r.src.Read(e.file)
		if err == nil && sha256.Sum256(payload) != e.sum {
			err = errOther
		}
		if errors.Is(err, v1.ErrChanged) || errors.Is(err, v1.ErrNotFound) || errors.Is(err, errOther) {
			return &ProblemsError{ErrFence, []Problem{{e.file.File, err}}}
		}
		if err != nil {
			return err
		}
		if len(batch) == most || bytes+len(payload) > batchBytes {
			if err := add(); err != nil {
				return err
			}
		}
		batch = append(batch, importedOf(e, payload))
		files = append(files, e.file.File)
		bytes += len(payload)
		r.o.progress(Importing, i+1, len(m.Entries))
	}
	return add()
}

func importedOf(e entry, payload []byte) v2.Imported {
	x := v2.Imported{ID: e.ID, Payload: payload}
	switch e.file.State {
	case v1.EntryClaimed:
		x.State = v2.ImportedClaimed
	case v1.EntryFailed:
		x.State = v2.ImportedFailed
	}
	// A time that the store cannot keep is no time: it becomes that of the import.
	if year := e.file.Modified.UTC().Year(); year >= 1970 && year <= 9999 {
		x.Time = e.file.Modified
	}
	return x
}

// refused names the files that the store did not take. That it is full is about none of
// them.
func refused(err error, files []string) error {
	var batch *queue.BatchError
	if !errors.As(err, &batch) || errors.Is(err, queue.ErrFull) {
		return err
	}
	e := &ProblemsError{What: ErrUnimportable}
	for _, x := range batch.Refused {
		if errors.Is(x.Err, queue.ErrDuplicate) || errors.Is(x.Err, queue.ErrFailedExists) {
			e.What = ErrTaken
		}
		e.Problems = append(e.Problems, Problem{files[x.Index], x.Err})
	}
	return e
}
