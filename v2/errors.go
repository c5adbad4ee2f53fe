//go:build unix

package holdfast

import (
	"errors"
	"fmt"

	"example.com/holdfast/queue"
)

// Opening or creating a store meets these.
var (
	// ErrNoStore is returned when the directory holds no store.
	ErrNoStore = errors.New("no store here")

	// ErrExists is returned by Create when the directory holds a store already.
	ErrExists = errors.New("a store is here already")

	// ErrNotEmpty is returned by Create when the directory holds anything that is
	// not a store's; the error names it.
	ErrNotEmpty = errors.New("the directory is not empty")

	// ErrInterruptedInit is returned when a Create was cut off here. Nothing was
	// ever accepted into such a store; ResumeCreate finishes it.
	ErrInterruptedInit = errors.New("the creation of this store was interrupted")

	// ErrInterruptedRestore is returned when a Restore was cut off here. Nothing was ever
	// accepted into this directory; remove what is in it, and restore again.
	ErrInterruptedRestore = errors.New("a restore was interrupted here")

	// ErrUnsafe is returned when the directory belongs to somebody else, can be
	// written by others, or holds a symbolic or hard link or another type of file
	// where the store has its own.
	ErrUnsafe = errors.New("not safe to use")

	// ErrFilesystem is returned when the filesystem lacks what the store stands
	// on: flock, or a directory sync; or when it is a network filesystem.
	ErrFilesystem = errors.New("the filesystem is not supported")

	// ErrVersion is returned when the store says that it is of another version, or
	// uses a feature that this program does not know. Use a newer program.
	ErrVersion = errors.New("the store needs another version of this program")

	// ErrBound is returned when the store is whole but larger than this program's
	// Options.MaxStateBytes let it read. Open it with a larger bound.
	ErrBound = errors.New("the store is larger than this program's bound")

	// ErrBusy is returned by Open, and by a look that did not wait for the lock
	// (Options.LookAfter), when other processes committed so fast that state.json could
	// not be read between two commits, or a collection was at work. Nothing is wrong: call
	// it again.
	ErrBusy = errors.New("the store changes too fast to be read without its lock")

	// ErrCorrupt is returned when a file of the store is not what the format says.
	// The store stops; nothing is repaired in passing.
	ErrCorrupt = errors.New("the store is corrupt")
)

// ErrBackup is returned by Restore when what it reads is not a whole copy that Backup has
// made, or not any more: a *BackupError names the file. Nothing was restored.
var ErrBackup = errors.New("not a whole copy of a store")

// Any call on an open store can meet these.
var (
	// ErrStaleLock is returned when the last owner of the transfer lock died inside
	// a transition or left an uncertain commit. The operator decides: Recover.
	ErrStaleLock = errors.New("the lock's last owner did not finish")

	// ErrReplaced is returned when the directory was moved, or a part of the store
	// was replaced under the open store. Close it and open it again.
	ErrReplaced = errors.New("the store was moved or replaced while open")

	// ErrDeferred is returned by Collect when somebody reads objects by their paths, as a
	// backup does. What was removed until then was nobody's. Call it again when that is
	// done.
	ErrDeferred = errors.New("objects are being read: nothing can be removed now")

	// ErrReadOnly is returned when a store that was opened for looking is asked to
	// change something.
	ErrReadOnly = errors.New("the store was opened for looking only")

	// ErrImporting is returned by every call that would change a queue, or a message of
	// it, while an import into that queue is open: an *ImportingError names the import.
	// Looks go on. Run the import again until it closes, or abandon it.
	ErrImporting = errors.New("an import into the queue is open")

	// ErrNotImporting is returned when an import is gone on with that is not open: it was
	// closed, or abandoned. Nothing happened.
	ErrNotImporting = errors.New("the import is not open")

	// ErrUnresolved is returned by Resolve when the store no longer remembers
	// enough to say whether a commit happened. It never guesses.
	ErrUnresolved = errors.New("the store cannot tell any more")
)

// A CorruptError says which file breaks the format, where and how. It unwraps to
// [ErrCorrupt], or to [ErrVersion] when the file is of another version.
type CorruptError struct {
	File   string // relative to the store
	Offset int64  // -1: not at one place
	Reason string
	Err    error // ErrCorrupt or ErrVersion
}

func (e *CorruptError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s: at byte %d: %s", e.File, e.Offset, e.Reason)
}

func (e *CorruptError) Unwrap() error {
	if e.Err == nil {
		return ErrCorrupt
	}
	return e.Err
}

// A BackupError tells which file of a copy is not as it must be. It unwraps to
// [ErrBackup], and to what was found there if that is an error too.
type BackupError struct {
	Entry  string // as it is named in the copy
	Reason string
	Err    error // nil: the reason says it all
}

func (e *BackupError) Error() string {
	return fmt.Sprintf("%q in the copy: %s", cutText(e.Entry, 256), e.Reason)
}

func (e *BackupError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrBackup}
	}
	return []error{ErrBackup, e.Err}
}

// A StaleLockError tells what the dead owner left in the lock. It unwraps to
// [ErrStaleLock].
type StaleLockError struct{ Owner queue.Owner }

func (e *StaleLockError) Error() string {
	o := e.Owner
	switch {
	case o.Token == "":
		return "the lock holds an owner record that cannot be read: its owner died inside a transition"
	case o.Uncertain:
		return fmt.Sprintf("the lock's owner (pid %d on %s, since %s) left a commit that may survive or not", o.PID, o.Host, o.Since.Format("2006-01-02 15:04:05Z07:00"))
	}
	return fmt.Sprintf("the lock's owner (pid %d on %s, since %s) died inside a transition", o.PID, o.Host, o.Since.Format("2006-01-02 15:04:05Z07:00"))
}

func (e *StaleLockError) Unwrap() error { return ErrStaleLock }

// An ImportingError tells which import is open into which queue. It unwraps to
// [ErrImporting].
type ImportingError struct {
	Queue string
	Token ImportToken
}

func (e *ImportingError) Error() string {
	return fmt.Sprintf("import %s into queue %s is open: run it again until it closes, or abandon it", e.Token, e.Queue)
}

func (e *ImportingError) Unwrap() error { return ErrImporting }

// NeedsOperator reports whether err says that the store cannot be used until somebody
// acts: recovers it, restores it, opens it otherwise. No repetition of a call helps. It
// serves as worker.Options.Fatal. queue.ErrUncertain is none: the next call resolves it. Nor is
// ErrImporting: the import may be at work.
func NeedsOperator(err error) bool {
	if errors.Is(err, queue.ErrUncertain) {
		return false
	}
	for _, target := range []error{
		ErrStaleLock, ErrCorrupt, ErrVersion, ErrBound, ErrReplaced, ErrUnsafe, ErrReadOnly, ErrNoStore, ErrInterruptedInit,
		ErrInterruptedRestore, ErrFilesystem,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
