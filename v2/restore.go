//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"

	"example.com/holdfast/internal/fsguard"
)

// RestoreOptions shape a Restore.
type RestoreOptions struct {
	// Progress is called with payload bytes while what was restored is verified. Nil: it is
	// not called.
	Progress func(done, total int64)

	// Workers is as in VerifyOptions.
	Workers int
}

// A Restored tells what a Restore has made.
type Restored struct {
	Store    string `json:"store"`    // the new store's own id
	Revision uint64 `json:"revision"` // one more than that of the copy

	CopyOf       string `json:"copy_of"` // the id of the store that was copied
	CopyRevision uint64 `json:"copy_revision"`

	Messages     int64 `json:"messages"`
	Failed       int64 `json:"failed"`
	Returned     int64 `json:"returned"`     // claims that were out: their messages are delivered again
	OpenImports  int64 `json:"open_imports"` // to be gone on with or abandoned
	Objects      int64 `json:"objects"`
	PayloadBytes int64 `json:"payload_bytes"`
}

// Restore makes a store in dir of the copy in the directory from. dir is made if it is
// missing (its parent is not) and must else be empty: nothing is overwritten. The new
// store is the copied one at its revision, but
//
//   - it has an id of its own, so that no receipt and no uncertain commit of the copied
//     store means anything in it;
//   - what was claimed has come back, as if it had been released: the attempt is excused;
//   - its fence is 2^32 higher, beyond what the copied store can have given out since;
//   - whether its commits exchange files is found out where it stands.
//
// Settings, counters, cursors, pauses, schedules and imports, open ones included, are as they
// were. Options.OnDeadOwner is not looked at.
//
// On nil the store is verified and durable. Until then there is none in dir, but what Open,
// Create and Restore answer ErrInterruptedRestore to, should the program die: remove it. After
// an error nothing is left, where that can be removed. ErrBackup: the copy is not whole.
func Restore(ctx context.Context, from, dir string, o *Options, r RestoreOptions) (Restored, error) {
	return restore(ctx, dir, o, r, func(s *Store) (source, error) { return newDirSource(s.fs, from) })
}

// RestoreTar is Restore from a tar stream that BackupTar wrote. It takes what belongs to
// the copy, each entry at its place, and refuses everything else by its name, whatever
// the stream says of itself.
func RestoreTar(ctx context.Context, from io.Reader, dir string, o *Options, r RestoreOptions) (Restored, error) {
	return restore(ctx, dir, o, r, func(*Store) (source, error) { return newTarSource(from), nil })
}

func restore(ctx context.Context, dir string, o *Options, r RestoreOptions, open func(*Store) (source, error)) (Restored, error) {
	if err := ctx.Err(); err != nil {
		return Restored{}, err
	}
	verify := VerifyOptions(r)
	if err := verify.fill(); err != nil {
		return Restored{}, err
	}
	s, err := newStore(dir, o, false)
	if err != nil {
		return Restored{}, err
	}
	from, err := open(s) // before anything is made
	if err != nil {
		return Restored{}, err
	}
	defer from.close()
	made, err := makeRoot(s.fs, s.dir, true)
	if err != nil {
		return Restored{}, err
	}
	out, err := s.restoreAlone(ctx, from, verify)
	if err != nil && made {
		unmakeRoot(s.fs, s.dir) // unless something is left in it
	}
	return out, err
}

// restoreAlone restores under the lock of the root, which is there.
func (s *Store) restoreAlone(ctx context.Context, from source, o VerifyOptions) (Restored, error) {
	root, err := lockRoot(ctx, s)
	if err != nil {
		return Restored{}, err
	}
	defer root.Close() // and with it the lock
	if err := nothingThere(root, s.dir); err != nil {
		return Restored{}, err
	}
	// A directory sync that does not work here is met before anything is made.
	if err := root.Sync(); err != nil {
		return Restored{}, syncError(err)
	}
	out, err := s.restoreIn(ctx, root, from, o)
	if err != nil {
		dropTree(root, restoringDir) // what cannot be removed is told by whoever opens it
		return Restored{}, err
	}
	return out, nil
}

// nothingThere says why a directory is not one to restore into, or nil.
func nothingThere(root fsguard.Dir, dir string) error {
	names, err := root.ReadDir()
	if err != nil || len(names) == 0 {
		return err
	}
	for _, name := range names {
		switch name {
		case namespaceDir:
			return fmt.Errorf("%s: %w", dir, ErrExists)
		case restoringDir:
			return noStore(root, dir)
		}
	}
	return fmt.Errorf("%s holds %q: %w", dir, names[0], ErrNotEmpty)
}

// restoreIn makes the whole store under a name that is no store's, and gives it its own
// name last.
func (s *Store) restoreIn(ctx context.Context, root fsguard.Dir, from source, o VerifyOptions) (Restored, error) {
	x, err := s.newRestoring(root, from)
	if err != nil {
		return Restored{}, err
	}
	defer x.close()
	if err := x.takeAll(ctx); err != nil {
		return Restored{}, err
	}
	if err := x.found(); err != nil {
		return Restored{}, syncError(err)
	}
	if err := x.verify(ctx, o); err != nil {
		return Restored{}, err
	}
	// The commit point. Before it there is no store here, after it there is a whole one.
	if err := root.Rename(restoringDir, namespaceDir); err != nil {
		return Restored{}, err
	}
	if err := root.Sync(); err != nil {
		return Restored{}, fmt.Errorf("it is not known whether the name of the store lasts; do not use it: remove it, and restore again: %w", syncError(err))
	}
	return x.out, nil
}

// dropTree removes what a restore has made, and reports whether it is gone. The directory
// that holds it is this process's alone.
func dropTree(in fsguard.Dir, name string) bool {
	if in.Remove(name) == nil {
		return true
	}
	d, err := in.OpenDir(name)
	if err != nil {
		return false
	}
	names, err := d.ReadDir()
	for _, inside := range names {
		dropTree(d, inside)
	}
	return errors.Join(err, d.Close(), in.RemoveDir(name)) == nil
}
