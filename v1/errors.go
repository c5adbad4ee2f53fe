//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Code is a failure of the protocol by the name that the npm package gives it. The
// sentinels are Codes: errors.Is finds one, errors.As with a *Code tells which it is.
type Code string

func (c Code) Error() string { return string(c) }

// Returned by every call.
const (
	// ErrHelperUnavailable is returned when what the chosen mechanism or route needs does
	// not work here: a hard link is refused or imitated (see LinkError), the
	// no-replace rename is missing, descriptor-relative calls are insisted on and are not
	// there. Nothing was lost; a message may stand half claimed, and the next call that
	// can goes on with it.
	ErrHelperUnavailable = Code("helper-unavailable")

	// ErrPathMismatch is returned when a name is not what the protocol says it must be:
	// another file than was claimed, a file with more links than its step explains, a
	// retirement record that cannot be interpreted, a directory that was swapped.
	// Nothing was changed on that ground; look at the file that the error names.
	ErrPathMismatch = Code("path-mismatch")

	// ErrNotFile is returned when an entry's name is a directory, a symlink or another
	// thing than a plain file.
	ErrNotFile = Code("not-file")

	// ErrLockTimeout is returned when the transfer lock of an ID was held by others for
	// 45 s, or until the context ended: then it wraps the context's error too.
	ErrLockTimeout = Code("file_lock_timeout")

	// ErrLockStale is returned when the transfer lock of an ID is older than 30 s: its
	// holder may be dead, or slow. It is never taken over. See LockError.
	ErrLockStale = Code("file_lock_stale")
)

// Returned by calls that name an entry or write one.
const (
	// ErrInvalidPath is returned for an ID that cannot be a file name everywhere.
	ErrInvalidPath = Code("invalid-path")

	// ErrTooLarge is returned for an entry of more bytes than Options allow.
	ErrTooLarge = Code("too-large")

	// ErrAlreadyExists is returned by Fail when the failed directory holds another entry
	// of this ID. Both are kept.
	ErrAlreadyExists = Code("already-exists")
)

// What the npm package has no code for.
var (
	// ErrNotFound is returned by Load and Fail when the ID has no entry.
	ErrNotFound = errors.New("no such entry")

	// ErrInvalidJSON is returned when an entry is not one JSON value in UTF-8. The
	// entry stays where it is: Fail sets it aside.
	ErrInvalidJSON = errors.New("not one JSON value")

	// ErrMigration is returned by a load whose Migrate gave something that cannot be an
	// entry. The entry is as it was: the callback is at fault, so do not set it aside.
	ErrMigration = errors.New("the migration gave no entry")

	// ErrSettled is returned by Ack and Fail for a Claim that they have settled before, or
	// that was closed. Nothing was done.
	ErrSettled = errors.New("this claim was settled or closed")

	// ErrChanged is returned when somebody swapped a file while it was being read, or took
	// a temporary file away before it had its name. Nothing was done.
	ErrChanged = errors.New("the file was changed by somebody else")

	// ErrUncertain is returned when a step was taken and its directory could not be
	// synced, or when the step's own call cannot tell whether it was: what was asked may be
	// visible, and whether it survives the loss of power is open. The same call, made
	// again, finishes it.
	ErrUncertain = errors.New("perhaps done, and not known to be durable; call again")

	// ErrNoFailedDir is returned by Fail on a store that was opened without a failed
	// directory.
	ErrNoFailedDir = errors.New("the store has no failed directory")

	// ErrNoDirectory is returned by Open when a directory is missing or is none.
	ErrNoDirectory = errors.New("no such queue directory")

	// ErrImported is returned when the directory was handed over to a v2 store, or is
	// being handed over.
	ErrImported = errors.New("the directory was imported into a v2 store")

	// ErrOptions is returned for options that make no sense.
	ErrOptions = errors.New("invalid option")
)

// An Error is a failure at one file. Unwrap gives what happened, a Code or one of the
// other sentinels, and what the system said, if it said anything.
type Error struct {
	File string // relative to the queue directory, or a path
	What error
	Why  string // for people; may be empty
	Err  error  // may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v", e.File, e.What)
	if e.Why != "" {
		fmt.Fprintf(&b, ": %s", e.Why)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.What}
	}
	return []error{e.What, e.Err}
}

// A LinkError says that the call by which a route claims, restores or quarantines is
// not to be had here. It is an ErrHelperUnavailable.
type LinkError struct {
	Route    Route
	From, To string
	Errno    syscall.Errno // 0 if the call answered success
	Imitated bool          // the link turned out to be a symlink
}

func (e *LinkError) Error() string {
	what, next := "hard link", "ClaimBy: RenameNoReplace needs none"
	if e.Route == RenameNoReplace {
		what, next = "rename without replacing", "this filesystem needs hard links or a v2 store"
	}
	why := "made something else (links are imitated here)"
	if !e.Imitated {
		why = "was refused: " + e.Errno.Error()
	}
	return fmt.Sprintf("%v: the %s from %s to %s %s; %s", ErrHelperUnavailable, what, e.From, e.To, why, next)
}

func (e *LinkError) Unwrap() []error {
	if e.Errno == 0 {
		return []error{ErrHelperUnavailable}
	}
	return []error{ErrHelperUnavailable, e.Errno}
}

// A LockError says who holds the transfer lock of an ID, as far as its record tells.
// It is ErrLockStale or ErrLockTimeout. Store.Locks lists what stands, and
// Store.RemoveLock removes a lock whose holder you know to be gone.
type LockError struct {
	What Code
	Dir  string // the queue directory
	Lock Lock
	Err  error // why the wait ended before its time: the context's error; else nil
}

func (e *LockError) Error() string {
	who := "held by an owner that its record does not tell"
	if e.Lock.Owner != "" {
		who = "held by owner " + e.Lock.Owner
	}
	if strings.HasSuffix(e.Lock.File, reclaimSuffix) {
		who = "somebody was taking the lock away, " + who
	}
	s := fmt.Sprintf("%s: %v: %s for %v", filepath.Join(e.Dir, e.Lock.File), e.What, who, e.Lock.Age.Round(time.Second))
	if e.Lock.Stale() {
		s += "; it is never taken over: prove that its holder is gone, then remove that file"
	}
	if e.Err != nil {
		s += fmt.Sprintf("; stopped waiting: %v", e.Err)
	}
	return s
}

func (e *LockError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.What}
	}
	return []error{e.What, e.Err}
}
