//go:build unix

package holdfast

import (
	"context"
	"errors"
	"io/fs"

	"github.com/google/uuid"

	"example.com/holdfast/internal/fsguard"
)

// Enqueue writes payload, one JSON value, as the pending entry of id, and replaces the
// one that is pending, if any; a claimed one is not touched. It takes no lock. An empty id
// becomes a UUIDv7. On nil the entry is durable. With ErrUncertain it may be visible, and
// may not survive a loss of power: enqueue it again, which replaces it. After any other error
// nothing was enqueued; a crash may leave a temporary file, which LoadPending cleans
// by age.
//
// The file has the layout of JSON.stringify with two spaces; numbers keep their digits.
func (s *Store) Enqueue(ctx context.Context, id string, payload []byte) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if id == "" {
		v7, err := uuid.NewV7()
		if err != nil {
			return "", err
		}
		id = v7.String()
	}
	if err := checkID(id); err != nil {
		return "", err
	}
	name := namesOf(id).pending
	text, err := layout(name, payload, s.opts.MaxEntryBytes)
	if err != nil {
		return "", err
	}
	q, err := s.enter()
	if err != nil {
		return "", err
	}
	defer q.Close()
	temp, err := writeTemp(q, s.opts.TempPrefix, text)
	if err != nil {
		return "", err
	}
	defer temp.Close()
	// From this rename a consumer may take the entry: nothing at the name proves any
	// more that it is ours.
	if err := q.Rename(temp.Name(), name); err != nil {
		_, there, lerr := lstat(q, temp.Name())
		switch {
		case there:
			return "", errors.Join(err, removeIf(q, temp.Name(), temp))
		case lerr == nil && errors.Is(err, fs.ErrNotExist):
			return "", &Error{File: temp.Name(), What: ErrChanged, Why: "the temporary file was removed before it got its name; nothing was enqueued", Err: err}
		}
		// It was done all the same, or nobody can tell.
		return id, &Error{File: name, What: ErrUncertain, Err: errors.Join(err, lerr)}
	}
	if err := syncDir(q, s.queue.path); err != nil {
		return id, err
	}
	return id, nil
}

// writeTemp makes a temporary file with that content, durable but for its name. It comes
// back open.
func writeTemp(dir fsguard.Dir, prefix string, text []byte) (fsguard.File, error) {
	file, err := dir.Create(tempName(prefix))
	if err != nil {
		return nil, err
	}
	_, err = file.WriteAt(text, 0)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, removeIf(dir, file.Name(), file), file.Close())
	}
	return file, nil
}
