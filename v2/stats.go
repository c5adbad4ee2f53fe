//go:build unix

package holdfast

import "sync/atomic"

// Stats are what this handle did since it was opened: counted in memory, told without the
// lock and without a look at the disk. They say how busy the handle is and what its calls
// cost, and nothing of the store's other handles and processes; where the queues stand is
// [Store.Status]'s to say. Every number only grows.
//
// The counters are read one after the other while work goes on, so two of them may be a
// commit apart.
type Stats struct {
	// Calls were served under the lock, looks and refused ones among them, in Rounds
	// rounds. Calls that come at the same time share a round and so a commit: Calls/Rounds
	// is how many on average, LargestRound how many at most. A round that could not get the
	// lock at all, or a call that gave up before, is not counted.
	Calls, Rounds, LargestRound uint64

	// Commits changed the store and are durable. Retries are commits that were decided
	// anew because there was no room for all that they held.
	Commits, Retries uint64

	// Uncertain commits may have happened or not: their callers were told ErrUncertain.
	Uncertain uint64

	// LockWaits are the times that a caller who came alone found the lock taken, by another
	// process or another handle, and went to wait for it. Several callers at once always go
	// by the way that waits, and are not counted here.
	LockWaits uint64

	// Parses are the times that state.json was read and checked anew: by Open, and after
	// commits of others.
	Parses uint64

	// Syncs are the calls of fsync that Commits took, and BytesWritten what those wrote:
	// payloads, runs and the state, without the padding of the latter and without the
	// objects that were prepared ahead.
	Syncs, BytesWritten uint64

	// ObjectsMade are the payload objects that commits made, ObjectsPrepared those that they
	// made ahead besides, for many commits each, and PreparedUsed the commits that put
	// their payloads into one of these.
	ObjectsMade, ObjectsPrepared, PreparedUsed uint64

	// RunsSealed are the runs that commits moved a queue's middle, or failed messages, out
	// into; RunsRead are runs that were read from the disk.
	RunsSealed, RunsRead uint64

	// LastRevision is that of the newest commit of this handle; 0: there is none.
	LastRevision uint64
}

// counters are what Stats tells, beside commits and parses. The run that owns the pipeline
// adds; anybody reads.
type counters struct {
	calls, rounds, largest       atomic.Uint64
	retries, uncertain, waits    atomic.Uint64
	syncs, bytes                 atomic.Uint64
	made, prepared, used, sealed atomic.Uint64
	revision                     atomic.Uint64
}

// Stats tells what this handle did since it was opened. It may be called at any time, also
// after Close.
func (s *Store) Stats() Stats {
	c := &s.counted
	return Stats{
		Calls: c.calls.Load(), Rounds: c.rounds.Load(), LargestRound: c.largest.Load(),
		Commits: uint64(s.commits.Load()), Retries: c.retries.Load(), Uncertain: c.uncertain.Load(),
		LockWaits: c.waits.Load(), Parses: uint64(s.parses.Load()),
		Syncs: c.syncs.Load(), BytesWritten: c.bytes.Load(),
		ObjectsMade: c.made.Load(), ObjectsPrepared: c.prepared.Load(), PreparedUsed: c.used.Load(),
		RunsSealed: c.sealed.Load(), RunsRead: s.runs.reads.Load(),
		LastRevision: c.revision.Load(),
	}
}

// served counts a round of so many calls.
func (c *counters) served(calls int) {
	c.calls.Add(uint64(calls))
	c.rounds.Add(1)
	if n := uint64(calls); n > c.largest.Load() { // nobody else adds
		c.largest.Store(n)
	}
}

// wrote counts a commit that is durable.
func (c *counters) wrote(w *writing, objects []object, state int, revision uint64) {
	bytes := uint64(state)
	for _, o := range objects {
		bytes += uint64(len(o.data))
		switch {
		case o.file == runFile:
			c.sealed.Add(1)
		case o.ready != nil:
			c.used.Add(1)
		default:
			c.made.Add(1)
		}
	}
	c.bytes.Add(bytes)
	c.syncs.Add(uint64(w.syncs))
	if w.prepared != nil {
		c.prepared.Add(1)
	}
	c.revision.Store(revision)
}
