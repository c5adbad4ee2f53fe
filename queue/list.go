package queue

import "time"

// State is where a message stands.
type State string

const (
	Ready      State = "ready"      // pending and due: the next claim may take it
	Scheduled  State = "scheduled"  // pending until NotBefore
	Blocked    State = "blocked"    // pending behind an older generation, or its key
	Processing State = "processing" // leased to a worker, who moves it on
	Failed     State = "failed"     // at rest as evidence; the operator moves it on
)

// An Entry is what a look at one message shows. Looking moves nothing.
type Entry struct {
	Queue, ID, Generation string
	State                 State
	Seq                   uint64 // the enqueue sequence: order of delivery
	EnqueuedAt            time.Time
	NotBefore             time.Time // zero: none
	Key                   string
	Attempts              uint64
	Excused               uint64
	Lapses                uint64
	LastError             string
	PayloadBytes          int64
	Object                string // where the payload lies, for people who look closer

	// Set while processing.
	Receipt  Receipt
	Deadline time.Time // zero: none
	Overdue  bool
	Label    string
	Fence    uint64

	// Set on a returned message: reaped, retried, released or reprocessed.
	Returned string

	// Set on a failed message.
	FailedName string
	Namespace  string
	FailedAt   time.Time

	// Payload is set by Peek and Show.
	Payload []byte
}

// ListOptions shapes a listing. The zero value gives the first 100 entries.
type ListOptions struct {
	After string // Page.Next of the page before. Empty: from the start
	Limit int    // the most entries of a page, 10,000 at most. Zero: 100
}

// A Page is a part of a listing. Each page is its own snapshot; a message that
// moves between two pages may be seen twice or not at all.
type Page struct {
	Entries  []Entry
	Next     string // pass as After for the next page. Empty: this was the last
	Revision uint64
	Settled  bool // as in Status
}

// FailedOptions names failed messages.
type FailedOptions struct {
	Namespace string // Empty: the default one
	Queue     string // only those that came from this queue. Empty: all
}
