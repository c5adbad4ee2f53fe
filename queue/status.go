package queue

import "time"

// A Status is one snapshot of a store: everything in it was true at the same
// revision. It is a value for programs; what `holdfast status --json` prints has
// field names of its own.
type Status struct {
	Revision uint64

	// Settled says that the snapshot is committed and durable: taken under the
	// store's lock, with no dead owner's work open. Only a settled status can be
	// complete.
	Settled bool

	// Owner tells, where Settled is false because of one, whose unfinished work
	// was found. Nil otherwise.
	Owner *Owner

	// Queues has each queue that was asked for, an unknown one as empty; all
	// queues when none was named.
	Queues map[string]QueueStatus

	// Orphans and OrphanBytes count the objects that nothing refers to. They are
	// looked for only when StatusOptions.Orphans asks, else -1; so they are where it
	// cannot be known, for damage hides what is referred to.
	Orphans     int64
	OrphanBytes int64
}

// Complete reports whether every queue of the snapshot is complete. It is never
// true of an unsettled one. It says nothing about success, nor that no more will
// come.
func (s Status) Complete() bool {
	if !s.Settled {
		return false
	}
	for _, q := range s.Queues {
		if !q.Complete() {
			return false
		}
	}
	return true
}

// A QueueStatus holds the gauges of one queue and its counters.
type QueueStatus struct {
	Pending    uint64 // waiting to be claimed: Ready + Scheduled + Blocked
	Processing uint64 // leased

	Ready     uint64 // pending and due
	Scheduled uint64 // pending until a later time
	Blocked   uint64 // pending behind an older generation of its ID, or behind its key

	Overdue uint64 // processing past its deadline
	Failed  uint64 // failed messages that came from this queue
	Paused  bool

	// Importing says that an import into the queue is open: more will come, what is here
	// may be taken back, and the queue is not complete. An engine without imports never
	// says so.
	Importing bool

	// FailedNamespace is where messages of the queue that fail are kept. Empty: the
	// default one.
	FailedNamespace string

	Counters Counters
}

// Unacked is Pending + Processing: the messages that are not settled for good.
func (q QueueStatus) Unacked() uint64 { return q.Pending + q.Processing }

// Complete reports whether nothing is pending, nothing processing, and no import open.
func (q QueueStatus) Complete() bool { return q.Pending == 0 && q.Processing == 0 && !q.Importing }

// Counters are cumulative over the life of a queue and live in the same commit as
// what they count. They are never used to decide completion. They add up:
//
//	Enqueued + Reprocessed - Superseded - Completed - Failed - Cleared = Pending + Processing
//	Failed - Reprocessed - Purged                                      = failed messages
type Counters struct {
	Enqueued    uint64 `json:"enqueued"`
	Superseded  uint64 `json:"superseded"` // pending generations that a Replace removed
	Claimed     uint64 `json:"claimed"`    // claims, loads among them
	Completed   uint64 `json:"completed"`  // acks
	Retried     uint64 `json:"retried"`    // retries that returned the message
	Released    uint64 `json:"released"`
	Reaped      uint64 `json:"reaped"` // leases that ended without settlement
	Failed      uint64 `json:"failed"` // every way into the failed messages, damage included
	Reprocessed uint64 `json:"reprocessed"`
	Cleared     uint64 `json:"cleared"`
	Purged      uint64 `json:"purged"`
	Damaged     uint64 `json:"damaged"` // those of Failed whose payload was damaged
}

// An Owner is what a writer leaves in the store's lock while it is inside a
// transition.
type Owner struct {
	Token     string    `json:"token"` // empty: the record could not be read
	PID       int       `json:"pid"`   // for people only; never evidence
	Host      string    `json:"host"`
	Boot      string    `json:"boot"` // boot id; empty: unknown
	Since     time.Time `json:"since"`
	Uncertain bool      `json:"uncertain"` // it met uncertain completion and said so
}

// StatusOptions shapes a Status call.
type StatusOptions struct {
	Queues  []string // none: every queue
	Orphans bool     // count orphaned objects too, which lists a directory
}

// WaitOptions shapes a Wait.
type WaitOptions struct {
	Queues          []string // none: every queue. An unknown queue is empty
	Message         string   // wait until no generation of this ID is live in the one queue named
	IgnoreScheduled bool     // do not wait for messages that are not due yet, nor for what they hold back
}
