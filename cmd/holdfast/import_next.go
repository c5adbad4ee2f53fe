//go:build unix

package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"example.com/holdfast/migrate"
	v1 "example.com/holdfast/v1"

	"example.com/holdfast/queue"
)

// importCommand spells a call of import-v1 about the same directory, with these flags.
func (a *app) importCommand(c *importCall, flags ...string) string {
	words := []string{"holdfast", "import-v1"}
	if c.from != "" {
		words = append(words, "--from", shellWord(c.from))
	}
	if c.failed != "" {
		words = append(words, "--failed", shellWord(c.failed))
	}
	if c.queue != "" {
		words = append(words, "--queue", shellWord(c.queue))
	}
	return strings.Join(append(append(words, flags...), "--dir", shellWord(a.dir)), " ")
}

// again are the flags of the same import.
func (c *importCall) again(more ...string) []string {
	flags := []string{"--i-have-stopped-old-programs"}
	if c.dryRun {
		flags = []string{"--dry-run"}
	}
	if c.skip {
		flags = append(flags, "--skip-invalid")
	}
	if c.claimBy == "link" {
		flags = append(flags, "--claim-by", "link")
	}
	for _, lock := range c.locks {
		if !slices.Contains(c.spent, lock) {
			flags = append(flags, "--remove-lock", lock)
		}
	}
	return append(flags, more...)
}

// aboutSource are the errors that are about the v1 directory and not about the store.
var aboutSource = []error{
	migrate.ErrLocked, migrate.ErrAmbiguous, migrate.ErrUnimportable, migrate.ErrOtherImport, migrate.ErrClosedSource, migrate.ErrMarker,
	migrate.ErrFence, migrate.ErrNoImport, migrate.ErrNotClosed, migrate.ErrOtherRole, migrate.ErrFailedTaken, migrate.ErrSwapped,
	migrate.ErrInStore, migrate.ErrNothing,
}

// A hintedError says more than the error that it wraps, or in other words.
type hintedError struct {
	text string
	err  error
}

func (e *hintedError) Error() string { return e.text }
func (e *hintedError) Unwrap() error { return e.err }

func hinted(err error, more string) error { return &hintedError{err.Error() + "; " + more, err} }

// missingDirectory names the flag that named a directory which is not there, in place of
// what the library advises programs.
func (c *importCall) missingDirectory(file string, err error) error {
	flag := "--from"
	if file == c.failed {
		flag = "--failed"
	}
	why := "no such directory"
	if !errors.Is(err, fs.ErrNotExist) {
		why = "not a directory"
	}
	return &hintedError{flag + " " + file + ": " + why, err}
}

// aboutImport says what comes next after an error of an import.
func (a *app) aboutImport(c *importCall, err error) error {
	if err == nil {
		return nil
	}
	f := facts{queue: c.queue}
	var file *v1.Error
	if k := kindOf(err); slices.Contains(aboutSource, k.err) || errors.As(err, &file) {
		f.place = c.from
	}
	var source *v1.SourceError
	if errors.As(err, &source) {
		f.place = source.Dir
	}
	var where *migrate.MarkerError
	marked := errors.As(err, &where)
	var locks *migrate.LocksError
	var records *migrate.RecordsError
	switch {
	case errors.As(err, &locks) && locks.AtWork():
		look := *c
		look.dryRun = true
		f.run = a.importCommand(&look, look.again()...)
	case errors.As(err, &locks):
		more := []string{}
		for _, l := range locks.Locks {
			more = append(more, "--remove-lock", l.File)
		}
		f.run = a.importCommand(c, c.again(more...)...)
	case errors.As(err, &records):
		f.run = "ls -laR " + shellWord(filepath.Join(c.from, filepath.Dir(records.Records[0].File)))
	case errors.Is(err, migrate.ErrUnimportable):
		f.run = a.importCommand(c, c.again("--skip-invalid")...)
	case errors.Is(err, migrate.ErrFence):
		f.run = a.importCommand(c, "--abandon")
	case errors.Is(err, migrate.ErrMarker):
		f.run = "ls -l " + shellWord(c.from+"/"+v1.MarkerFile)
		if c.failed != "" {
			f.run += " " + shellWord(c.failed+"/"+v1.MarkerFile)
		}
	case marked:
		f.queue, f.place = where.Queue, where.Dir
		err = a.aboutMarker(c, err, where, &f)
	case errors.Is(err, migrate.ErrTaken):
		err = aboutTaken(err, &f)
	case errors.Is(err, migrate.ErrSwapped):
		other := *c
		other.from, other.failed, other.dryRun = c.failed, c.from, true
		f.run = a.importCommand(&other, other.again()...)
	case errors.Is(err, migrate.ErrNothing):
		f.run = "ls -la " + shellWord(c.from)
	case errors.Is(err, v1.ErrNoDirectory) && file != nil && c.abandon && file.File == c.from:
		f.place = file.File
		err = hinted(c.missingDirectory(file.File, err), "if it is lost, leave --from out")
		f.run = a.importCommand(&importCall{queue: c.queue}, "--abandon")
	case errors.Is(err, v1.ErrNoDirectory) && file != nil:
		err = c.missingDirectory(file.File, err)
		f.place, f.run = file.File, "ls -la "+shellWord(filepath.Dir(file.File))
	case errors.Is(err, v1.ErrHelperUnavailable):
		other := *c
		other.claimBy = "link"
		if c.claimBy == "link" {
			other.claimBy = "rename"
		}
		f.run = a.importCommand(&other, other.again()...)
	case errors.Is(err, v1.ErrUncertain), errors.Is(err, queue.ErrFull):
		f.run = a.importCommand(c, c.again()...)
	case errors.Is(err, v1.ErrPathMismatch), errors.Is(err, v1.ErrNotFile):
		f.run = "ls -la " + shellWord(c.from)
	case interrupted(err):
		if stopped := (*stoppedError)(nil); errors.As(err, &stopped) {
			f.run = a.importCommand(c, c.again()...)
		}
	case source != nil && errors.Is(err, fs.ErrPermission):
		f.run = "ls -la " + shellWord(source.Dir)
	case source != nil:
		f.run = "df " + shellWord(source.Dir)
	}
	return about(err, f)
}
