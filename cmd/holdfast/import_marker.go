//go:build unix

package main

import (
	"errors"

	"example.com/holdfast/migrate"
	v1 "example.com/holdfast/v1"

	"example.com/holdfast/queue"
)

// aboutMarker says what comes next where a marker says that the directory is not for this
// import. A command about this store helps only if the marker names this store.
func (a *app) aboutMarker(c *importCall, err error, where *migrate.MarkerError, f *facts) error {
	there := *c
	there.queue = where.Queue
	switch {
	case where.Forgotten:
		return a.aboutForgotten(err, where, f)
	case errors.Is(err, migrate.ErrFailedTaken) && (c.abandon || c.remove):
		f.advice = "leave --failed out"
	case errors.Is(err, migrate.ErrFailedTaken):
		look := *c
		look.failed, look.dryRun = "", true
		f.run = a.importCommand(&look, look.again()...)
	case errors.Is(err, migrate.ErrOtherRole):
		f.advice = "name the directory of the queue with --from, and its failed directory with --failed"
	case where.Elsewhere && errors.Is(err, migrate.ErrClosedSource):
		f.advice = "that store has it; nothing of it goes into this one"
	case where.Elsewhere && c.remove:
		f.advice = "name that store (--dir): only it can tell that everything came over"
	case where.Elsewhere:
		f.advice = "go on with it there (--dir), or take it back there; if that store is lost for good, docs/migrating.md says what to do"
	case errors.Is(err, migrate.ErrClosedSource):
		f.run = "holdfast status {queue} --dir {dir}"
	case errors.Is(err, migrate.ErrNotClosed):
		there = importCall{from: c.from, queue: where.Queue}
		f.run = a.importCommand(&there, there.again()...)
	case c.abandon:
		f.run = a.importCommand(&there, "--abandon")
	case c.remove:
		f.run = a.importCommand(&there, "--remove-source")
	default:
		if where.Queue == c.queue { // with another failed directory than this
			there.failed = ""
		}
		f.run = a.importCommand(&there, there.again()...)
	}
	return err
}

// aboutForgotten leads out of a store that was put back from a copy older than the end of
// the import: by steps, each of which the next call names.
func (a *app) aboutForgotten(err error, where *migrate.MarkerError, f *facts) error {
	if where.Open {
		f.run = a.importCommand(&importCall{queue: where.Queue}, "--abandon")
		return hinted(err, "if it was: take back what is open there, then run this again")
	}
	f.run = "rm " + shellWord(where.Dir+"/"+v1.MarkerFile)
	if where.FailedDir != "" {
		f.run += " " + shellWord(where.FailedDir+"/"+v1.MarkerFile)
	}
	return hinted(err, "if it was: nothing of it is in the store; remove the markers, then import again: what had been done already comes again")
}

// aboutTaken tells the way out of IDs that are there already: live messages can be settled,
// or another queue be taken; names of failed messages are of a namespace, not of a queue.
func aboutTaken(err error, f *facts) error {
	f.run = "holdfast ls {queue} --dir {dir}"
	if errors.Is(err, queue.ErrDuplicate) {
		err = hinted(err, "take another queue, or let those messages be settled first")
	}
	if errors.Is(err, queue.ErrFailedExists) {
		if !errors.Is(err, queue.ErrDuplicate) {
			f.run = "holdfast failed ls --dir {dir}"
		}
		err = hinted(err, "if those failed messages came from the same shared failed directory, with another queue, leave --failed out; else reprocess or purge them first")
	}
	return err
}
