//go:build unix

package holdfast

import (
	"context"
	"errors"
	"path/filepath"

	"example.com/holdfast/internal/fsguard"
)

// ErrSourceBusy is returned by Source.Hold when another program is handing the directory
// over.
var ErrSourceBusy = errors.New("another import of this directory is at work")

// A Source is a v1 directory on its way into another store; package migrate takes it
// there. Nothing here keeps programs of the protocol off the directory: whoever uses a
// Source has stopped and fenced them. docs/migrating.md tells what that means.
type Source struct {
	s    *Store
	held []fsguard.Dir // whose flocks keep other importers off; none: not taken
}

// OpenSource opens a queue directory, and the failed directory if Options name one. Unlike
// Open it also opens one that was handed over. It changes nothing. By Options.ClaimBy Recover
// puts back what a retirement took: RenameNoReplace never makes a link, whatever left the
// retirement.
func OpenSource(dir string, o *Options) (*Source, error) {
	s, err := open(dir, o)
	if err != nil {
		return nil, about(atFault(dir, o), err)
	}
	s.source = true
	return &Source{s: s}, nil
}

// Close gives back the descriptors, and lets other importers in.
func (x *Source) Close() error {
	var errs []error
	for _, d := range x.held {
		errs = append(errs, d.Close()) // and with it the flock
	}
	return errors.Join(append(errs, x.s.Close())...)
}

// Dir is the queue directory, absolute.
func (x *Source) Dir() string { return x.s.queue.path }

// FailedDir is the failed directory, absolute; empty: none.
func (x *Source) FailedDir() string {
	if x.s.fail == nil {
		return ""
	}
	return x.s.fail.path
}

// Hold keeps other importers off both directories until Close, by flock on the directories
// themselves: no file is made, and the death of the process ends it. Programs of the
// protocol do not look at it. ErrSourceBusy: another importer holds one. Any other error:
// flock does not work here, and the directory cannot be handed over.
func (x *Source) Hold() error {
	for _, d := range []*directory{x.s.queue, x.s.fail} {
		if d == nil {
			continue
		}
		own, err := d.admit()
		if err != nil {
			return about(d.path, err)
		}
		held, err := own.TryLock(fsguard.Exclusive)
		if err == nil && !held {
			err = &Error{File: d.path, What: ErrSourceBusy}
		}
		if err != nil {
			return about(d.path, errors.Join(err, own.Close()))
		}
		x.held = append(x.held, own)
	}
	return nil
}

// Recover finishes what a crash left of the transitions of id, under its transfer lock: a
// retirement, a claim with two names, a quarantine with two names. On nil the entry has one
// name and that is durable. A record that does not say which entry is which is
// ErrPathMismatch, and nothing was changed.
func (x *Source) Recover(ctx context.Context, id string) error {
	return about(x.Dir(), x.s.transfer(ctx, id, func(t *transfer) error {
		if err := t.settled(); err != nil {
			return err
		}
		_, durable, err := t.standing()
		if err != nil || durable {
			return err
		}
		return t.sync()
	}))
}

// RemoveLock is that of a Store: for a directory that was handed over, too.
func (x *Source) RemoveLock(file string) (HeldLock, error) { return x.s.RemoveLock(file) }

// Sync makes the names in both directories durable, whoever made them. ErrUncertain: call
// again.
func (x *Source) Sync() error {
	for _, d := range []*directory{x.s.queue, x.s.fail} {
		if d == nil {
			continue
		}
		if err := d.within(func(dir fsguard.Dir) error { return syncDir(dir, d.path) }); err != nil {
			return err
		}
	}
	return nil
}

// failedPath names a file in the failed directory for people.
func (x *Source) failedPath(name string) string { return filepath.Join(x.FailedDir(), name) }
