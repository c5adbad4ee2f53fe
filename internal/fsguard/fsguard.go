//go:build unix

package fsguard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

var (
	// ErrSymlink is returned when a name that must not be a symlink is one.
	ErrSymlink = errors.New("is a symbolic link")

	// ErrNotPlain is returned when a name that must be a plain file is a
	// directory, a device, a FIFO or a socket, or a directory's name is no
	// directory.
	ErrNotPlain = errors.New("is not of the expected type")

	// ErrLinked is returned when a file has more than one link.
	ErrLinked = errors.New("has more than one hard link")

	// ErrTooLong is returned by ReadAll when a file goes on past the limit.
	ErrTooLong = errors.New("is longer than allowed")
)

// An Error says which operation failed on which name. Name is relative to the
// pinned directory, or the directory's own name for an operation on itself.
type Error struct {
	Op   Op
	Name string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Name, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// An Op is a kind of operation. A wrapper counts and fails operations by kind.
type Op string

// Every operation of the interfaces. AllOps lists them; an implementation's
// test checks that none was forgotten.
const (
	OpOpenRoot  Op = "openroot"
	OpStat      Op = "stat"
	OpSpace     Op = "space"
	OpInfo      Op = "info" // of a descriptor
	OpLstat     Op = "lstat"
	OpReadDir   Op = "readdir"
	OpOpenDir   Op = "opendir"
	OpMkdir     Op = "mkdir"
	OpCreate    Op = "create"
	OpOpen      Op = "open"
	OpWriteFile Op = "writefile"
	OpRename    Op = "rename"
	OpMove      Op = "move"    // to another directory
	OpMoveNew   Op = "movenew" // that replaces nothing
	OpExchange  Op = "exchange"
	OpLink      Op = "link"
	OpRemove    Op = "remove"
	OpRemoveDir Op = "removedir"
	OpSyncDir   Op = "syncdir"
	OpRead      Op = "read"
	OpWrite     Op = "write"
	OpAllocate  Op = "allocate"
	OpSync      Op = "sync"
	OpSyncData  Op = "syncdata" // of a file, without what only describes it
	OpLock      Op = "lock"
	OpUnlock    Op = "unlock"
	OpDup       Op = "dup"
	OpWatch     Op = "watch"
	OpClose     Op = "close"
)

// AllOps lists every Op.
var AllOps = []Op{
	OpOpenRoot, OpStat, OpSpace, OpInfo, OpLstat, OpReadDir, OpOpenDir, OpMkdir, OpCreate, OpOpen,
	OpWriteFile, OpRename, OpMove, OpMoveNew, OpExchange, OpLink, OpRemove, OpRemoveDir, OpSyncDir,
	OpRead, OpWrite, OpAllocate, OpSync, OpSyncData, OpLock, OpUnlock, OpDup, OpWatch, OpClose,
}

// An Identity is the exact identity of a file. While a descriptor on it is held
// open, no other file can have it.
type Identity struct{ Dev, Ino uint64 }

// An Info is what fstat or lstat told.
type Info struct {
	Identity
	Mode       fs.FileMode // type and permission bits
	Links      uint64
	Size       int64 // a hint: some filesystems answer 0 for a full file
	UID        uint32
	CtimeNanos int64 // changes with every change of the inode
	MtimeNanos int64 // of the content, as the filesystem or anybody says
}

// Plain reports whether the file is a plain file with one link.
func (i Info) Plain() bool { return i.Mode.IsRegular() && i.Links == 1 }

// A LockMode is how a lock is held.
type LockMode int

const (
	Shared LockMode = iota
	Exclusive
)

// A Locker takes and gives up the flock of one open file description. Two
// descriptions on one file exclude each other, in one process too. Closing the
// description, or the death of the process, releases the lock.
type Locker interface {
	// Lock waits in the kernel until the lock is held. An interrupted wait (EINTR)
	// goes on. It returns an error only when flock does not work here.
	Lock(mode LockMode) error

	// TryLock takes the lock if that needs no waiting, and reports whether it did.
	TryLock(mode LockMode) (bool, error)

	Unlock() error
}

// A Syncer can make its own content durable.
type Syncer interface{ Sync() error }

// DataOf is f as a Syncer whose Sync is SyncData, for SyncAll.
func DataOf(f File) Syncer { return Data{f} }

// A Data is what DataOf gives. A wrapper that looks for its own files in the targets of
// SyncAll looks into it.
type Data struct{ File File }

// Sync calls SyncData.
func (d Data) Sync() error { return d.File.SyncData() }

// FS opens directories by path and answers for the filesystem as a whole.
type FS interface {
	// OpenRoot pins the directory at path. Symlinks in path are followed.
	OpenRoot(path string) (Dir, error)

	// Stat follows path and tells what is there now: for comparing with a pinned
	// directory.
	Stat(path string) (Info, error)

	// SyncAll calls Sync on every target, at the same time where the
	// implementation can, and waits for all. It returns the errors joined, nil
	// only if all succeeded.
	SyncAll(targets ...Syncer) error

	// Watch watches for another file at name in the directory at path dir, symlinks
	// in dir followed. What happened before it returned is not told.
	// errors.ErrUnsupported: nothing is told here.
	Watch(dir, name string) (Watch, error)
}

// A Watch tells that a name in a directory may mean another file than before.
// Methods may be called concurrently.
type Watch interface {
	// C receives when another file was renamed over or exchanged with the name or made there, when
	// the name was removed or renamed, and when the watch was lost; not when the file
	// there, or any other name, changes. Signals that nobody has received yet are
	// one. C is never closed.
	C() <-chan struct{}

	// Lost reports that the watch may have missed something and tells no more:
	// events came too fast, the directory was moved, removed or unmounted, or reading
	// failed. Close it and make another.
	Lost() bool

	// Sure reports whether a watch that is not lost has missed nothing of what was
	// done through this mount of the filesystem.
	Sure() bool

	// Close ends the watch and gives back its descriptors.
	Close() error
}

// A Space tells what filesystem a directory is on.
type Space struct {
	Type    string // such as "ext4" or "nfs"; "0x…" when unknown
	Network bool   // locks and syncs cannot be trusted there
	Free    uint64 // bytes that the caller may still use
}

// A Dir is a pinned directory: it goes on meaning the same directory when its
// path is renamed. Methods may be called concurrently.
type Dir interface {
	Locker // flock on the directory's own descriptor

	// Name is the name or path that the directory was opened by.
	Name() string

	// Info is fstat of the pinned directory.
	Info() (Info, error)

	// Lstat tells what stands at name, never following it. A missing name is
	// fs.ErrNotExist and nothing else is.
	Lstat(name string) (Info, error)

	// ReadDir lists the names, sorted.
	ReadDir() ([]string, error)

	// OpenDir pins the directory at name; ErrSymlink or ErrNotPlain if it is none.
	// "." opens another description of this same directory.
	OpenDir(name string) (Dir, error)

	// Mkdir makes the directory name, mode 0700 whatever the umask; fs.ErrExist if
	// anything is there. Nothing is durable until Sync.
	Mkdir(name string) error

	// Create makes the file name, mode 0600 whatever the umask, open for reading
	// and writing; fs.ErrExist if anything is there. Nothing is durable until the
	// file and the directory are synced.
	Create(name string) (File, error)

	// Open opens the plain, singly linked file name for reading, without following
	// a link or blocking on a FIFO; ErrSymlink, ErrNotPlain or ErrLinked if it is
	// something else.
	Open(name string) (File, error)

	// OpenWrite is Open for reading and writing. It truncates nothing.
	OpenWrite(name string) (File, error)

	// WriteFile replaces name by a file of mode 0600 that holds data: temp file
	// named "." + name + digits, sync of the temp, rename. On return the content is durable,
	// the name only after Sync. A crash may leave the temp.
	WriteFile(name string, data []byte) error

	// Rename moves oldName over newName, atomically to every reader. Not durable
	// until Sync; on an error it may have happened. If both are names of one file,
	// nothing happens, with a nil error: oldName still stands.
	Rename(oldName, newName string) error

	// Move moves oldName over newName in the directory to, of the same kind of FS and
	// on the same filesystem, atomically to every reader: after a crash one of the two
	// names means the file, or both do, until both directories were synced. On an error
	// it may have happened. Of two names of one file it makes as little as Rename.
	// ErrForeign if to is of another kind of FS, here and below.
	Move(oldName string, to Dir, newName string) error

	// MoveNew is Move, to another directory or to this one, that replaces nothing:
	// fs.ErrExist if anything is at newName, be it the same file. errors.ErrUnsupported
	// where the system has no such call; what the kernel or filesystem refuses (ENOSYS,
	// EINVAL, EXDEV) comes back as is. It never falls back on another way.
	MoveNew(oldName string, to Dir, newName string) error

	// Exchange swaps what the names a and b of this directory mean, of whatever kind each
	// is, atomically to every reader and to a crash: until Sync either both names have
	// changed or neither. On an error it may have happened. fs.ErrNotExist if either is
	// missing; of two names of one file nothing happens, with a nil error.
	// errors.ErrUnsupported, beside the errno if there is one, where the system or this
	// filesystem cannot do it (EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP): it never falls back
	// on another way. An app on Android 8 is killed at the call, and must not make it.
	Exchange(a, b string) error

	// Link makes newName in the directory to, or here, a second name of the file oldName;
	// fs.ErrExist if anything is there. It never follows a symlink: where links to
	// symlinks can be made, newName is one then. The name is durable after Sync of to; on
	// an error it may have been made. Only the v1 store may call it: an app on Android is
	// refused. Where links are imitated it may answer nil and have made something else:
	// look.
	Link(oldName string, to Dir, newName string) error

	// Remove removes the file name; RemoveDir the empty directory name.
	Remove(name string) error
	RemoveDir(name string) error

	// Sync makes every name operation in this directory durable. After a failure
	// it must not be called on this Dir again.
	Sync() error

	// Space asks what filesystem this is and what room it has.
	Space() (Space, error)

	Close() error
}

// A File is an open plain file. Only ReadAt, Info and Dup may be called
// concurrently.
type File interface {
	Locker

	Name() string

	// Info is fstat of the descriptor.
	Info() (Info, error)

	// ReadAt is io.ReaderAt.
	ReadAt(p []byte, off int64) (int, error)

	// WriteAt is io.WriterAt. Not durable until Sync; a crash may leave any part.
	WriteAt(p []byte, off int64) (int, error)

	// Allocate gives the file room for size bytes, so that writing them later
	// cannot fail for want of space where the filesystem can promise that. The
	// file's length becomes size if it was less.
	Allocate(size int64) error

	// Sync makes the file's content durable, not its name. After a failure it must
	// not be called on this File again: the kernel may have dropped the data and
	// would answer nil.
	Sync() error

	// SyncData makes the file's content durable, and of what describes the file all that
	// it takes to read that back: its length, and where its blocks are. Not its mtime,
	// mode or owner, and not its name. That is fdatasync(2), which POSIX calls synchronized
	// I/O data integrity completion. Where the system has no such call it is Sync. After
	// a failure of either, neither must be called on this File again.
	SyncData() error

	// Dup gives a duplicate of the descriptor for a child process to inherit. It is
	// of this same open file description and has its lock: the lock lives until the
	// last of them is closed, wherever, or any of them unlocks it. It is
	// close-on-exec here; exec.Cmd.ExtraFiles hands it on. A simulated file answers
	// errors.ErrUnsupported.
	Dup() (*os.File, error)

	Close() error
}
