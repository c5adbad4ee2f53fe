//go:build unix

package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// A transfer is one transition of one entry under its transfer lock.
type transfer struct {
	names
	s *Store
	q fsguard.Dir
}

// transfer runs f under the transfer lock of id. A cancelled context counts until the
// lock is held.
func (s *Store) transfer(ctx context.Context, id string, f func(t *transfer) error) error {
	return s.transferSince(ctx, id, s.opts.now(), f)
}

// transferSince is transfer that has waited for the lock since then.
func (s *Store) transferSince(ctx context.Context, id string, began time.Time, f func(t *transfer) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	k := key{s.queue.id, id}
	if err := busy.take(ctx, k); err != nil {
		return err
	}
	defer busy.give(k)
	q, err := s.enter()
	if err != nil {
		return err
	}
	defer q.Close()
	t := &transfer{names: namesOf(id), s: s, q: q}
	lock, err := s.acquire(ctx, q, t.names, began)
	if err != nil {
		return err
	}
	return errors.Join(f(t), lock.release())
}

// enter gives the queue directory for a call that changes something, unless it was handed
// over since the store was opened.
func (s *Store) enter() (fsguard.Dir, error) {
	q, err := s.queue.admit()
	if err != nil {
		return nil, err
	}
	if err := s.unlessImported(q); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (s *Store) unlessImported(q fsguard.Dir) error {
	if s.source {
		return nil
	}
	_, there, err := lstat(q, markerFile)
	if err == nil && there {
		err = &Error{File: filepath.Join(s.queue.path, markerFile), What: ErrImported,
			Why: "use the v2 store; to go back, see docs/migrating.md"}
	}
	return err
}

// sync makes what was done in the queue directory durable.
func (t *transfer) sync() error { return syncDir(t.q, t.s.queue.path) }

// syncDir makes the names in a directory durable. Whatever they are, they can be seen
// already. After an error the transition ends, and its descriptor with it.
func syncDir(dir fsguard.Dir, path string) error {
	if err := dir.Sync(); err != nil {
		return &Error{File: path, What: ErrUncertain, Err: err}
	}
	return nil
}

// place puts the file old of from at name in to, which nothing may hold: by a second
// link, or by a rename that leaves no link behind. fs.ErrExist when something is there.
func (t *transfer) place(from fsguard.Dir, old string, to fsguard.Dir, name string) error {
	if t.s.opts.ClaimBy == RenameNoReplace {
		err := from.MoveNew(old, to, name)
		return refusal(err, RenameNoReplace, old, name)
	}
	if err := t.s.link.check(t.s.opts.TempPrefix, t.q); err != nil {
		return err
	}
	if err := from.Link(old, to, name); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			// The link was proven here: perhaps nothing at all may be made there.
			if denied := tryCreate(t.s.opts.TempPrefix, to); denied != nil {
				return denied
			}
		}
		return refusal(err, HardLink, old, name)
	}
	return imitation(to, old, name)
}

var (
	// refused is how systems say that they make no hard links: Android's policy (EACCES),
	// shared storage (EPERM and others), another filesystem (EXDEV). On Linux ENOTSUP and
	// EOPNOTSUPP are one number.
	refused = []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EXDEV, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS}

	// unknown is how they say that they do not know the no-replace rename (renameat2(2):
	// EINVAL when the filesystem does not support the flag).
	unknown = []syscall.Errno{syscall.EINVAL, syscall.EXDEV, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS}
)

// refusal makes a LinkError of an error by which a system says that it does not do such
// a thing. Any other error stays what it is.
func refusal(err error, r Route, from, to string) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		if errors.Is(err, errors.ErrUnsupported) {
			return &LinkError{Route: r, From: from, To: to, Errno: syscall.ENOSYS}
		}
		return err
	}
	refusals := refused
	if r == RenameNoReplace {
		refusals = unknown
	}
	if !slices.Contains(refusals, errno) {
		return err
	}
	return &LinkError{Route: r, From: from, To: to, Errno: errno}
}
