//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"example.com/holdfast/internal/fsguard"
)

// pins are the descriptors through which an open store is used. The two locks
// live on the descriptors of format and lock, so every handle has its own.
type pins struct {
	root    fsguard.Dir
	space   fsguard.Dir // the namespace
	objects fsguard.Dir
	format  fsguard.File // the turnstile
	lock    fsguard.File // the transfer lock

	rootID, spaceID, objectsID, formatID, lockID fsguard.Identity

	spent   bool // a sync failed on one of these: they are not to be synced again
	doubted bool // a sync of the namespace failed outside of a commit
	chains  bool // commits may exchange files on this filesystem
}

// pin opens the store's files and admits each: a directory or a plain file of one
// link, never through a symlink.
func pin(fsys fsguard.FS, dir string, o *Options, readOnly bool) (*pins, error) {
	p := &pins{}
	done := false
	defer func() {
		if !done {
			p.close()
		}
	}()
	var err error
	if p.root, err = openRoot(fsys, dir, o, readOnly); err != nil {
		return nil, err
	}
	if p.space, err = openDir(p.root, namespaceDir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, noStore(p.root, dir)
		}
		return nil, err
	}
	if err := admitOwner(p.space, o, readOnly); err != nil {
		return nil, err
	}
	if p.chains, err = chainsOn(p.space); err != nil {
		return nil, err
	}
	if p.format, err = openFile(p.space.Open, formatFile); err != nil {
		return nil, err
	}
	open := p.space.OpenWrite
	if readOnly {
		open = p.space.Open
	}
	if p.lock, err = openFile(open, lockFile); err != nil {
		return nil, err
	}
	if p.objects, err = openDir(p.space, objectsDir); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		of interface{ Info() (fsguard.Info, error) }
		to *fsguard.Identity
	}{{p.root, &p.rootID}, {p.space, &p.spaceID}, {p.objects, &p.objectsID}, {p.format, &p.formatID}, {p.lock, &p.lockID}} {
		info, err := x.of.Info()
		if err != nil {
			return nil, err
		}
		*x.to = info.Identity
	}
	done = true
	return p, nil
}

// noStore says of a root without a namespace what it is instead.
func noStore(root fsguard.Dir, dir string) error {
	switch _, err := root.Lstat(restoringDir); {
	case err == nil:
		return fmt.Errorf("%s: %w", dir, ErrInterruptedRestore)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return fmt.Errorf("%s: %w", dir, ErrNoStore)
}

// openRoot pins dir and checks that it is the caller's own, on a filesystem that a
// store can stand on.
func openRoot(fsys fsguard.FS, dir string, o *Options, readOnly bool) (fsguard.Dir, error) {
	root, err := fsys.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: %w", dir, ErrNoStore, err)
	}
	if err != nil {
		return nil, typed(err)
	}
	space, err := root.Space()
	if err == nil && space.Network {
		err = fmt.Errorf("%s is on %s, a network filesystem, where locks and syncs cannot be trusted: %w", dir, space.Type, ErrFilesystem)
	}
	if err == nil {
		err = admitOwner(root, o, readOnly)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// admitOwner refuses a directory that somebody else owns or may write. A look
// changes nothing, so it only refuses what others could write into.
func admitOwner(d fsguard.Dir, o *Options, readOnly bool) error {
	if o.AllowUnsafeRoot {
		return nil
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	if uid := uint32(os.Geteuid()); info.UID != uid && !readOnly {
		return fmt.Errorf("%s belongs to user %d, not to %d: %w", d.Name(), info.UID, uid, ErrUnsafe)
	}
	if perm := info.Mode.Perm(); perm&0o022 != 0 {
		return fmt.Errorf("%s has mode %04o, others may write it: %w", d.Name(), perm, ErrUnsafe)
	}
	return nil
}

// openDir opens a directory that must be there once the namespace is.
func openDir(in fsguard.Dir, name string) (fsguard.Dir, error) {
	d, err := in.OpenDir(name)
	return d, typed(err)
}

func openFile(open func(string) (fsguard.File, error), name string) (fsguard.File, error) {
	f, err := open(name)
	return f, typed(err)
}

// typed puts the store's own sentinel on an error of the filesystem layer that says
// something is there which must not be.
func typed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fsguard.ErrSymlink), errors.Is(err, fsguard.ErrNotPlain), errors.Is(err, fsguard.ErrLinked):
		return fmt.Errorf("%w: %w", err, ErrUnsafe)
	}
	return err
}

// readmit checks that every path still names what is pinned. Identity is exact: the
// descriptors held open keep their inode numbers from being used again.
func (p *pins) readmit(fsys fsguard.FS, dir string) error {
	info, err := fsys.Stat(dir)
	if err := same(dir, info, err, p.rootID); err != nil {
		return err
	}
	for _, x := range []struct {
		in   fsguard.Dir
		name string
		id   fsguard.Identity
		file bool
	}{
		{p.root, namespaceDir, p.spaceID, false},
		{p.space, objectsDir, p.objectsID, false},
		{p.space, formatFile, p.formatID, true},
		{p.space, lockFile, p.lockID, true},
	} {
		info, err := x.in.Lstat(x.name)
		if err := same(x.name, info, err, x.id); err != nil {
			return err
		}
		if x.file {
			if err := admitPlain(x.name, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// renew opens objects/ anew after a sync failed, perhaps that of its descriptor: none
// is synced again on a descriptor where it failed.
func (p *pins) renew() error {
	if !p.spent {
		return nil
	}
	d, err := openDir(p.space, objectsDir)
	if err != nil {
		return err
	}
	info, err := d.Info()
	if err := same(objectsDir, info, err, p.objectsID); err != nil {
		return errors.Join(err, d.Close())
	}
	_ = p.objects.Close() // given up: nothing is lost by its failing
	p.objects = d
	return nil
}

// admitPlain says why what stands at name is not a file of the store's, or nil.
func admitPlain(name string, info fsguard.Info) error {
	if !info.Plain() {
		return fmt.Errorf("%s is not a plain file with one link: %w", name, ErrUnsafe)
	}
	return nil
}

// same says why what stands at a path is not what is pinned, or nil.
func same(name string, info fsguard.Info, err error, id fsguard.Identity) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is gone: %w", name, ErrReplaced)
	case err != nil:
		return err
	case info.Identity != id:
		return fmt.Errorf("%s is another file than before: %w", name, ErrReplaced)
	}
	return nil
}

func (p *pins) close() {
	// Nothing was written through these that a close could lose: every file that
	// matters was synced, and a failed close changes nothing about it.
	for _, d := range []fsguard.Dir{p.objects, p.space, p.root} {
		if d != nil {
			_ = d.Close()
		}
	}
	for _, f := range []fsguard.File{p.lock, p.format} {
		if f != nil {
			_ = f.Close()
		}
	}
}
