//go:build unix

// Package fsguard is every touch that Holdfast makes on a filesystem.
//
// [FS], [Dir] and [File] are interfaces, so that the same protocol code runs on
// the operating system ([OS]), on a simulated disk and under fault injection.
// The set is small on purpose: each method is one thing that a crash can fall
// before or after, and each says what is durable when it returns.
//
// A name is always one path component inside a pinned directory. Nothing is
// resolved through a symlink, nothing that is not a plain file with exactly one
// link is opened as a file, and identity is device and inode, compared exactly.
//
// [OS] reaches a name through the descriptor of its pinned directory. [Paths] is the
// same on plain path names, for the v1 store where it was told to do without
// descriptor-relative calls; [CheckRelative] tells whether the system has these.
//
// Only system calls that an Android app may make are used: no openat2, no
// faccessat2, no fchmodat2 (so never os.Root.Chmod), no statx. One exception is
// [Dir].Link, which SELinux answers with EACCES there. v2 never calls it. The v1 store
// does, on its link route alone: older writers know a claim by the link that made it,
// and the store has to go on with what they left.
package fsguard
