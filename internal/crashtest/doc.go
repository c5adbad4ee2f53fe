//go:build unix

// Package crashtest proves what a protocol on the filesystem promises after a
// crash. Only tests import it.
//
// It has four tools, each behind or over the interfaces of package fsguard:
//
//   - [Disk] is a filesystem in memory that knows what is durable. [Disk.Process]
//     gives a process on it; [Process.Kill] is SIGKILL; [Disk.Images] gives every
//     disk that may be found after a power loss.
//   - [Wrap] numbers the operations of any fsguard.FS and fails one, or lets the
//     process die before or after one.
//   - [Explore], [ExploreErrors], [ExploreUncertain] run a [Scenario] once for every
//     operation in it, with the crash or the error there, and let the scenario check each
//     outcome. [Explored], [Table] and [PrintExplored] tell what was
//     explored.
//   - [Interleave] runs several processes on one disk, one operation of one of them at
//     a time, in every order with few preemptions and in some others; it kills each at
//     each step, and takes the power away.
//
// # Interleavings
//
// [Interleave] runs a [Play] in a bubble of package testing/synctest, which tells when
// everything is at rest: every goroutine of every client waits for the scheduler, or for
// another one of its client. Then one of the operations that wait is let through. A Lock
// that is not to be had waits there too, so that of several that wait for one lock each
// is tried as the next. An order is a list of the steps at which somebody else goes on
// than whoever can; a finding prints it, and CRASHTEST_REPLAY replays it. What a client
// does between two operations, in its own memory, nobody interrupts: that is for the
// race detector.
//
// # The fault model
//
// In short. What is not synced may be lost, each name and each content for itself; it may
// come in any order; content may be torn. What was synced is neither lost nor changed.
// Outside of the model are disks that say done and have not, and bits that rot: tests of a
// store plant these by hand, for they are damage to be found, not crashes to be survived.
//
// SIGKILL loses the descriptors and the flocks of one process, nothing else: what
// it wrote stays visible to the others, and may still be lost by a later power
// loss. An operation happens wholly or not at all, except WriteFile, which is
// create, write, sync, rename and may be cut between any two.
//
// Power loss takes every process and leaves of the disk:
//
//   - Names. Each operation on a name (create, mkdir, link, rename, exchange, remove,
//     removedir) is durable once its directory, which of a link is that of the new
//     name, is synced after it. Until then it survives or not, whatever becomes of
//     the others: later ones may survive without earlier ones, and names without
//     content. A rename is one operation: the old name goes, the new one changes,
//     both or neither. So is a move within one directory, and an exchange: both names
//     have changed or neither has.
//   - Moves of a file to another directory. None leaves the file under neither name:
//     a journalling filesystem logs a rename across directories as one transaction.
//     The model is a little weaker than that: it happened, or it did not, or both
//     names stand. Once the target directory is synced the new name is durable, and
//     the old one gone or still there; once the source directory is synced the old
//     name is durably gone, and so the new one durably there. A file that was
//     replaced comes back only where the new name does not stand.
//   - What moves rest on. Where the target directory itself is lost, the file has its
//     old name, even after the source was synced: a move is not durable before the
//     path to its target is. A directory that files were moved out of is gone only
//     where these moves happened; else it is there, and the files in it. A sync that
//     makes its removal durable makes them durable too. What is done later to a name
//     that a move or such a removal has freed survives only with it, and a sync that
//     makes the one durable makes the other so.
//   - Content. A write or allocation is durable once a descriptor of that file is
//     synced after it. Until then the file may hold what it held when last synced
//     (nothing, if never), the new content, the first bytes of what was written
//     since (head), all but the first bytes (tail: later pages written, earlier
//     not), or the new length with zeros where it grew. Head and tail of an
//     overwrite in place are mixtures of old and new. In a file that had durable content,
//     any sectors of what was written since may be new and the others old, each write for
//     itself.
//   - Directories. The names in a directory and the name of the directory are
//     independent: a directory made and never synced may come back empty. Syncing
//     a directory does not make its own name durable; nor does syncing a file.
//   - A failed sync makes nothing durable, and later syncs, even on other
//     descriptors, answer nil without making durable what it had covered: the
//     kernel has marked those pages clean. Only what is written or renamed after
//     it is covered by the next sync. [Disk.SetForgiving] turns this off.
//
// Surviving name operations are applied in the order in which they were made, over
// the names that were durable, each as plain assignments: create makes its name
// mean the new inode, remove makes it mean nothing, rename does both, exchange makes
// each name mean what the other meant when it was done. So a rename
// that survives the loss of the create before it still makes the new name mean
// that inode. One rule is added: an inode that a surviving rename, exchange or move took away
// has no name left in that directory that an earlier, partly lost chain of renames
// gave it.
//
// What never happens: synced content or names are lost or changed; one file's
// bytes appear in another; bytes that nobody wrote appear, other than zeros where
// a file grew; a rename or an exchange is half done; an inode stands under two names unless it was
// linked or is moving to another directory; a mode, an owner or an mtime differs
// from what it was.
//
// Inode numbers are reused as soon as no name and no descriptor holds the inode,
// lowest first. An image never has two inodes of one number: the older gets
// another.
//
// A directory can be renamed where it is, but not be moved to another: that is
// EXDEV, as on overlayfs. A removed one that comes back holds what was durable in it
// and what else survived. Times are those of a wall clock that stands still until
// [Disk.SetTime] moves it.
//
// # What is explored
//
// Every operation that changes anything is a point twice, before it and after it. At each
// point every image is checked if there are at most Options.MaxImages, else a seeded sample
// that has each single loss, survival and tear; Stats.Exhaustive tells which it was. Then
// the disk as SIGKILL leaves it, what a power loss leaves after that was recovered, and at
// Options.SecondCrash points a second crash at each operation of the recovery. Outcomes that
// are alike are checked once. A finding ends in the command that repeats exactly it.
//
// # Details
//
// Permission bits are enforced for the owner, root or not. flock is per open
// description and as on Linux: a conversion gives up the old lock first, so a
// TryLock that cannot convert has lost it.
package crashtest
