//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/fsguard"
)

// Create makes a store in dir, which is made too if it is missing (its parent is not)
// and must else be empty. On nil everything is durable, dir's own entry included. Of two racing
// Creates one wins and the other answers ErrExists. On an error dir may hold a part
// of a store: Open then answers ErrInterruptedInit, and ResumeCreate finishes it.
func Create(ctx context.Context, dir string, o *Options) (*Store, error) {
	return create(ctx, dir, o, true, func(s *Store, root fsguard.Dir) error {
		names, err := root.ReadDir()
		if err != nil {
			return err
		}
		if slices.Contains(names, namespaceDir) { // whatever else is there
			if err := complete(root, dir); err != nil {
				return err
			}
			return fmt.Errorf("%s: %w", dir, ErrExists)
		}
		if slices.Contains(names, restoringDir) {
			return noStore(root, dir)
		}
		if len(names) > 0 {
			return fmt.Errorf("%s holds %q: %w", dir, names[0], ErrNotEmpty)
		}
		// A directory sync that does not work here is met before anything is made.
		if err := root.Sync(); err != nil {
			return syncError(err)
		}
		return root.Mkdir(namespaceDir)
	})
}

// ResumeCreate finishes a Create that was cut off. It first proves, under the same
// lock, that there is no state and no object to lose. It answers ErrExists when the
// store is whole, ErrNoStore when there is none.
func ResumeCreate(ctx context.Context, dir string, o *Options) (*Store, error) {
	return create(ctx, dir, o, false, func(s *Store, root fsguard.Dir) error {
		err := complete(root, dir)
		if err == nil {
			return fmt.Errorf("%s: %w", dir, ErrExists)
		}
		if !errors.Is(err, ErrInterruptedInit) {
			return err
		}
		if err := undo(root); err != nil {
			return err
		}
		return root.Mkdir(namespaceDir)
	})
}

// create runs the steps that both ways of creating share. The root's own lock keeps
// two of them apart. fresh says that dir is made if it is missing.
func create(ctx context.Context, dir string, o *Options, fresh bool, prepare func(*Store, fsguard.Dir) error) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := newStore(dir, o, false)
	if err != nil {
		return nil, err
	}
	made, err := makeRoot(s.fs, s.dir, fresh)
	if err != nil {
		return nil, err
	}
	root, err := lockRoot(ctx, s)
	if err != nil {
		if made && errors.Is(err, ErrFilesystem) {
			unmakeRoot(s.fs, s.dir) // no store will ever stand here
		}
		return nil, err
	}
	defer root.Close() // and with it the lock
	if err := prepare(s, root); err != nil {
		return nil, err
	}
	if err := s.build(root); err != nil {
		return nil, syncError(err)
	}
	if err := s.admit(); err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

// lockRoot pins the root under its own exclusive lock.
func lockRoot(ctx context.Context, s *Store) (fsguard.Dir, error) {
	root, err := openRoot(s.fs, s.dir, &s.opts, false)
	if err != nil {
		return nil, err
	}
	if err := lockWithin(ctx, root, fsguard.Exclusive); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// lockWithin locks a root, whose lock a Restore may have for as long as its copy takes to
// come. When ctx is over first, the wait ends when the lock is free or the root is closed
// and free.
func lockWithin(ctx context.Context, root fsguard.Dir, mode fsguard.LockMode) error {
	if free, err := root.TryLock(mode); free || err != nil {
		return lockError(err)
	}
	if ctx.Done() == nil {
		return lockError(root.Lock(mode))
	}
	locked := make(chan error, 1)
	go func() { locked <- root.Lock(mode) }()
	select {
	case err := <-locked:
		return lockError(err)
	case <-ctx.Done():
		return fmt.Errorf("waiting for a Create or a Restore at work: %w", ctx.Err())
	}
}

// makeRoot makes the directory where it is missing, if it is to, and makes its entry
// durable: a store whose root vanishes with the power would have lost everything.
func makeRoot(fsys fsguard.FS, dir string, fresh bool) (made bool, err error) {
	parent, err := fsys.OpenRoot(filepath.Dir(dir))
	if err != nil {
		if _, e := fsys.Stat(dir); e == nil && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) {
			return false, nil // somebody else's directory holds ours, as on Android: theirs to sync
		}
		return false, err
	}
	defer parent.Close()
	switch _, err := fsys.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist) && !fresh:
		return false, fmt.Errorf("%s: %w: %w", dir, ErrNoStore, err)
	case errors.Is(err, fs.ErrNotExist):
		err := parent.Mkdir(filepath.Base(dir))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		made = err == nil
	case err != nil:
		return false, err
	}
	if err := parent.Sync(); err != nil {
		if made { // an entry whose sync failed must not be found and trusted next time
			err = errors.Join(err, parent.RemoveDir(filepath.Base(dir)))
		}
		return false, syncError(err)
	}
	return made, nil
}

// unmakeRoot takes back what makeRoot made, if it is still empty. What cannot be
// removed is an empty directory.
func unmakeRoot(fsys fsguard.FS, dir string) {
	if parent, err := fsys.OpenRoot(filepath.Dir(dir)); err == nil {
		_ = parent.RemoveDir(filepath.Base(dir))
		_ = parent.Close()
	}
}

// build fills the namespace. Everything is durable before state.json appears, the
// root's edge first: from then on the store counts as created, and a crash later on
// cannot leave accepted messages in a directory that is not there.
func (s *Store) build(root fsguard.Dir) error {
	space, err := openDir(root, namespaceDir)
	if err != nil {
		return err
	}
	defer space.Close()
	if err := root.Sync(); err != nil {
		return err
	}
	for _, name := range []string{objectsDir, holdersDir} {
		if err := space.Mkdir(name); err != nil {
			return err
		}
	}
	err = makeFile(space, lockFile, func(f fsguard.File) error {
		_, err := f.WriteAt([]byte(blankRecord), 0)
		return err
	})
	if err != nil {
		return err
	}
	err = makeFile(space, reserveFile, func(f fsguard.File) error { return f.Allocate(minReserve) })
	if err != nil {
		return err
	}
	exchange, err := s.proveExchange(space)
	if err != nil {
		return err
	}
	st := &state{revision: 1, exchange: exchange, settings: Settings{OnDeadOwner: s.opts.OnDeadOwner}}
	for _, t := range []*token{&st.store, &st.commit} {
		if *t, err = newToken(s.rand); err != nil {
			return err
		}
	}
	return s.found(space, st)
}

// found makes a namespace that lacks nothing else the store of a state. The state comes
// last.
func (s *Store) found(space fsguard.Dir, st *state) error {
	text := encodeState(nil, st)
	if st.exchange {
		length := toBlocks(int64(len(text)))
		text = padded(text, length)[:length]
		for n := range uint64(spares) {
			err := makeFile(space, spareName(n), func(f fsguard.File) error {
				_, err := f.WriteAt(padded(nil, length)[:length], 0)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	if err := space.WriteFile(formatFile, encodeFormat(st.store)); err != nil {
		return err
	}
	if err := space.Sync(); err != nil {
		return err
	}
	if err := space.WriteFile(stateFile, text); err != nil {
		return err
	}
	return space.Sync()
}

// makeFile makes a file whose content is durable when its name becomes so.
func makeFile(in fsguard.Dir, name string, fill func(fsguard.File) error) error {
	f, err := in.Create(name)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// whole waits until no Create is at work and says what is missing of the store.
func whole(ctx context.Context, fsys fsguard.FS, dir string, o *Options, readOnly bool) error {
	root, err := openRoot(fsys, dir, o, readOnly)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := lockWithin(ctx, root, fsguard.Shared); err != nil {
		return err
	}
	return complete(root, dir)
}

// complete says what is missing of the store in root, or nil. Called under the
// root's lock. A namespace without a state and without an object is a creation that
// was interrupted; whatever else is missing was there once.
func complete(root fsguard.Dir, dir string) error {
	space, err := openDir(root, namespaceDir)
	if errors.Is(err, fs.ErrNotExist) {
		return noStore(root, dir)
	}
	if err != nil {
		return err
	}
	defer space.Close()
	_, err = space.Lstat(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		if err := nothingToLose(space); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w", dir, ErrInterruptedInit)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{formatFile, lockFile, objectsDir} {
		switch _, err := space.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			return &CorruptError{File: name, Offset: -1, Reason: "missing"}
		case err != nil:
			return err
		}
	}
	return nil
}

// nothingToLose proves that a namespace without a state holds nothing but what a
// creation makes before it: known names, and no object.
func nothingToLose(space fsguard.Dir) error {
	names, err := space.ReadDir()
	if err != nil {
		return err
	}
	for _, name := range names {
		switch name {
		case objectsDir, holdersDir:
			d, err := openDir(space, name)
			if err != nil {
				return err
			}
			inside, err := d.ReadDir()
			if err := errors.Join(err, d.Close()); err != nil {
				return err
			}
			if len(inside) > 0 {
				return &CorruptError{File: stateFile, Offset: -1, Reason: "missing, although " + name + "/ holds " + inside[0]}
			}
			continue
		case formatFile, lockFile, reserveFile:
		default:
			if !isTemp(name) && !isSpare(name) {
				return &CorruptError{File: stateFile, Offset: -1, Reason: "missing, beside a file that is not the store's: " + name}
			}
		}
		info, err := space.Lstat(name)
		if err != nil {
			return err
		}
		if err := admitPlain(name, info); err != nil {
			return err
		}
	}
	return nil
}

// undo removes an interrupted creation, so that it can begin again. Nothing of it is
// used again, directories included: what interrupted it may have been a failed sync,
// and a name that a failed sync covered is not made durable by a later one.
func undo(root fsguard.Dir) error {
	space, err := openDir(root, namespaceDir)
	if err != nil {
		return err
	}
	names, err := space.ReadDir()
	for _, name := range names {
		if name == objectsDir || name == holdersDir {
			err = errors.Join(err, space.RemoveDir(name))
		} else {
			err = errors.Join(err, space.Remove(name))
		}
	}
	if err := errors.Join(err, space.Close()); err != nil {
		return err
	}
	return root.RemoveDir(namespaceDir)
}
