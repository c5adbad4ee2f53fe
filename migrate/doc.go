//go:build unix

// Package migrate takes a v1 queue directory over into a queue of a v2 store: once, whole,
// and only after the old programs were stopped and fenced. docs/migrating.md is the
// operator's side of it.
//
// # What arrives
//
// A pending entry arrives pending, a claimed one as a message that was claimed once and
// given back, a failed one among the failed messages; each under its own ID, with its
// bytes as they are in the file, and with the file's modification time as its time of
// enqueue. An ID that is claimed and pending at once arrives as two messages, the claimed
// one first in the line. Equal bytes under two IDs stay two messages. v1 keeps no order
// and no count of attempts; the line is the claimed ones, then the pending ones, each by
// time and ID.
//
// # What a crash leaves
//
// Import can be cut off at any moment and run again. It goes
//
//	look ▸ check all ▸ recover ▸ check all ▸ markers, open ▸ import open ▸ bring … ▸ look again ▸ import closed ▸ marker, closed
//
// Until the marker is written nothing was begun. It is a file in the v1 directory with the
// token of the import and the manifest: which files are meant, and what is in them. Until the
// closing commit of the store nobody can claim anything of what was brought, and Abandon
// takes all of it back. From that commit on the v2 queue is the queue: a re-run only brings
// the marker up to date. The v1 files stay until RemoveSource.
//
// The failed directory has a marker too, which says with which queue directory it goes: so
// that its evidence does not come over twice, and neither directory is taken for the
// other. It is the second one written and the first one removed; what is open is the
// queue directory's to tell.
//
// # The fence
//
// The look before the closing commit finds what a program did that was not fenced, and
// then nothing is closed. It is a net, not the fence: what is written between that look
// and the commit, or later, nobody finds.
package migrate
