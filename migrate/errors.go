//go:build unix

package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "example.com/holdfast/v1"
)

// Import meets these before anything was begun: nothing was changed, but for locks that
// were named and interrupted transitions that were finished.
var (
	// ErrNotFenced is returned when the operator has not said that old programs are
	// stopped and fenced.
	ErrNotFenced = errors.New("old programs may still be at work: stop them, make sure that they cannot come back, and say so")

	// ErrLocked is returned when a transfer lock stands that was not named: a
	// *LocksError tells which.
	ErrLocked = errors.New("a transfer lock stands")

	// ErrAmbiguous is returned when a retirement record does not tell which entry is
	// which: a *RecordsError tells which.
	ErrAmbiguous = errors.New("a retirement record is ambiguous")

	// ErrUnimportable is returned when entries cannot be imported: a *ProblemsError
	// lists all of them.
	ErrUnimportable = errors.New("not every entry can be imported")

	// ErrTaken is returned when messages that did not come by this import have the IDs of
	// entries: a *ProblemsError lists them.
	ErrTaken = errors.New("the queue has messages of the same IDs")

	// ErrOtherImport is returned when the directory is being imported elsewhere, or by
	// the store's record into another queue: a *MarkerError tells where.
	ErrOtherImport = errors.New("the directory belongs to another import")

	// ErrClosedSource is returned when the directory was imported already: a *MarkerError
	// tells where.
	ErrClosedSource = errors.New("the directory was imported already")

	// ErrOtherRole is returned when a failed directory is named as the queue directory that
	// it is not, or the reverse: a *MarkerError tells what it was imported as.
	ErrOtherRole = errors.New("the directory was imported as something else")

	// ErrFailedTaken is returned when the failed directory went over with another queue
	// directory: a *MarkerError tells with which.
	ErrFailedTaken = errors.New("the failed directory was imported with another queue directory")

	// ErrSwapped is returned when the failed directory has names in it that only a queue
	// directory has. A *DirectoryError, as the next two.
	ErrSwapped = errors.New("looks like a queue directory: are --from and --failed swapped?")

	// ErrInStore is returned when a directory is one of a v2 store, or has a store in it.
	ErrInStore = errors.New("a v1 directory and a v2 store may not be in one another")

	// ErrNothing is returned when nothing in the queue directory tells that it is one.
	ErrNothing = errors.New("no v1 queue: no entry is in it, and nothing else of the protocol")

	// ErrMarker is returned when the marker in the directory is not what this package
	// writes.
	ErrMarker = errors.New("the import marker cannot be read")
)

// Import, Abandon and RemoveSource meet these once something was begun.
var (
	// ErrFence is returned when the directory is not as it was read: a program was not
	// fenced. The import stays open, and nothing of it can be claimed. A *ProblemsError
	// tells which files.
	ErrFence = errors.New("the fence did not hold: a program changed the directory during the import")

	// ErrNoImport is returned when there is no import to abandon, or to remove the
	// source of.
	ErrNoImport = errors.New("no import was begun")

	// ErrNotClosed is returned by RemoveSource when the import is not closed; and by all
	// three when the marker says that it is and the store, put back from an older copy,
	// does not: a *MarkerError with Forgotten.
	ErrNotClosed = errors.New("the import is not closed")
)

// A LocksError tells which transfer locks stand. It unwraps to ErrLocked.
type LocksError struct{ Locks []v1.HeldLock }

func (e *LocksError) Error() string {
	texts := make([]string, len(e.Locks))
	for i, l := range e.Locks {
		texts[i] = LockText(l)
	}
	next := "its age proves nothing: when you know that its owner is gone, name it as a lock to remove"
	if e.AtWork() {
		next = "a program is at work, or died just now: stop it and look again"
	}
	return fmt.Sprintf("%v: %s; %s", ErrLocked, some(texts), next)
}

// AtWork reports whether one of the locks is so young that its owner may well be at work
// at this moment.
func (e *LocksError) AtWork() bool {
	return slices.ContainsFunc(e.Locks, func(l v1.HeldLock) bool { return !l.Stale() })
}

func (e *LocksError) Unwrap() error { return ErrLocked }

// LockText tells of a lock in one line.
func LockText(l v1.HeldLock) string {
	s := l.File
	if l.ID != "" {
		s += " of " + l.ID
	}
	if l.Owner != "" {
		s += ", owner " + l.Owner
	}
	return fmt.Sprintf("%s, %v old", s, l.Age.Round(time.Second))
}

// A RecordsError tells which retirement records are ambiguous. It unwraps to ErrAmbiguous.
type RecordsError struct{ Records []v1.Record }

func (e *RecordsError) Error() string {
	texts := make([]string, len(e.Records))
	for i, r := range e.Records {
		texts[i] = r.File + ": " + r.Why
	}
	return fmt.Sprintf("%v: %s; docs/format-v1.md tells what may be in it", ErrAmbiguous, some(texts))
}

func (e *RecordsError) Unwrap() error { return ErrAmbiguous }

// A ProblemsError lists files. It unwraps to What, and to what is wrong with each.
type ProblemsError struct {
	What     error
	Problems []Problem
}

func (e *ProblemsError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return fmt.Sprintf("%v: %s", e.What, some(texts))
}

func (e *ProblemsError) Unwrap() []error {
	errs := []error{e.What}
	for _, p := range e.Problems {
		errs = append(errs, p.Err)
	}
	return errs
}

// String names the file once.
func (p Problem) String() string {
	text := p.Err.Error()
	if strings.HasPrefix(text, p.File+": ") {
		return text
	}
	return p.File + ": " + text
}

// some joins the first few.
func some(texts []string) string {
	const most = 3
	if len(texts) <= most {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(texts[:most], "; "), len(texts)-most)
}

// A MarkerError tells where a directory goes, or went. It unwraps to ErrOtherImport,
// ErrClosedSource, ErrNotClosed, ErrOtherRole or ErrFailedTaken.
type MarkerError struct {
	What                error
	Dir                 string
	Store, Queue, Token string
	Elsewhere           bool // Store is not the store that was to take it

	Forgotten bool   // the marker says closed, and its own store does not
	Open      bool   // if forgotten: the import is open in the store
	FailedDir string // if forgotten: a failed directory with a marker of the same import
	Why       string // may be empty
}

func (e *MarkerError) Error() string {
	which := "store"
	if e.Elsewhere {
		which = "another store,"
	}
	s := fmt.Sprintf("%s: %v: %s %s, queue %s, import %s", e.Dir, e.What, which, e.Store, e.Queue, e.Token)
	if e.Why != "" {
		s += ": " + e.Why
	}
	return s
}

func (e *MarkerError) Unwrap() error { return e.What }

// A DirectoryError says why a directory cannot be what it was named as. It unwraps to
// ErrSwapped, ErrInStore or ErrNothing.
type DirectoryError struct {
	Dir  string
	What error
	Why  string // may be empty
}

func (e *DirectoryError) Error() string {
	s := fmt.Sprintf("%s: %v", e.Dir, e.What)
	if e.Why != "" {
		s += ": " + e.Why
	}
	return s
}

func (e *DirectoryError) Unwrap() error { return e.What }
