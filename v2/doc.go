//go:build unix

// Package holdfast is a durable JSON queue in a directory: any number of processes
// of one machine share it, without a server and without a hard link.
//
// # The promise
//
// A call that returns nil has made its transition durable: it survives SIGKILL at
// any instant and, as far as the filesystem keeps its word about a sync, the loss of
// power. Every transition is in the store wholly or not at all. An answer that rests
// on the work of others is given only when that work is durable. What cannot be
// known is said: [queue.ErrUncertain] when a failed commit may survive or not,
// [ErrStaleLock] when a process died inside one. Nothing is guessed from a time or a
// process id. docs/durability.md has the assumptions and what each crash leaves.
//
// # The life of a message
//
// [Store.Enqueue] accepts a message into a queue: it is pending. [Store.Claim] leases
// the oldest due ones, [Store.Load] a named one; the worker gets a [queue.Receipt].
// With it the message is settled: [Store.Ack] removes it, [Store.Retry] and
// [Store.Release] return it, [Store.Fail] sets it aside among the failed messages,
// where it stays until [Store.Reprocess] or [Store.Purge]. A receipt is good for
// exactly one claim: after the next one it is refused with [queue.ErrStale], and with
// [queue.ErrGone] once the message has left. A claim that nobody settles ends by
// [Store.Reap]: at its deadline, which [Store.Extend] moves, or at once when its
// process is proven dead. Delivery is at least once. Package worker does all this for
// a handler; docs/states.md has the states and what a receipt is good for in each.
//
// # The directory
//
//	ROOT/.fs-safe-queue-v2/
//	    format.json             written once; the lock's turnstile
//	    state.json              everything else; replaced by every commit
//	    objects/TOKEN/payload.json   payloads, immutable
//	    objects/TOKEN/run.json       a block of pending messages of a deep queue, immutable
//	    holders/TOKEN           one per process that claims, locked while it lives
//	    reserve                 room that lets settling work on a full disk
//	    .state-transfer.lock    held with flock by whoever reads or changes the state
//
// docs/format-v2.md has every byte.
//
// # Goroutines and processes
//
// A [Store] and all its methods may be used by any number of goroutines. Who calls while
// nobody else does makes the commit itself; else one goroutine of the store works while
// calls wait, and takes together whatever waits into one commit. Another watches for the
// commits of others while calls wait for messages. Handles exclude each other across
// processes, and in one process too. A child made by fork shares the locks of its parent
// and must not use its handles.
//
// # Limits
//
// One commit writes the whole state: about 150 bytes for each message that stands in it.
// Those are all that are leased, returned, failed or have a key; of the other pending ones
// of a queue only the first and the last few hundred, more with the square root of their
// number, for the middle lies in runs. Every commit waits for the disk twice. Payloads of
// settled messages and runs that were taken back stay on the disk until Collect. A handle
// that enqueues steadily keeps an object ready, of 1 MiB at most, and two descriptors on it;
// Close removes one that nothing is in, a kill leaves it. Its two state files stay open. A
// commit may wait 0.1 ms, and 1 ms while they come, for callers that were answered together.
// Network filesystems are refused; Windows has no flock.
package holdfast
