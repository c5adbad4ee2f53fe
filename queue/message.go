package queue

import (
	"fmt"
	"time"
)

// A Message is what a producer hands in.
type Message struct {
	// ID names the message in its queue; see [CheckID]. Empty: a UUIDv7 is made.
	ID string

	// Payload is one JSON value. It comes back byte for byte.
	Payload []byte

	// Key puts the message in a lane: messages of one key are delivered in order of
	// their enqueue and one at a time, and a message that came back holds the later
	// ones of its key until it has ended. A message takes its place in its lane when it
	// is due for the first time and no older generation of its ID is in flight: one that
	// is scheduled holds nobody until then. At most [MaxNameBytes] bytes; see
	// [CheckText]. Empty: no lane.
	Key string

	// NotBefore is the earliest time at which the message is due, kept to the
	// millisecond, never earlier than asked. Zero: at once.
	NotBefore time.Time

	// IfExists says what happens when the ID is live already. The zero value
	// refuses the message with ErrDuplicate.
	IfExists IfExists
}

// IfExists is what an enqueue does when it meets a live message of its ID.
type IfExists int

const (
	Refuse  IfExists = iota // refuse the newcomer with ErrDuplicate
	Keep                    // keep the live one and report it as success
	Replace                 // supersede the pending generation; a claimed one is never touched, the newcomer waits behind it
)

func (x IfExists) String() string {
	switch x {
	case Refuse:
		return "refuse"
	case Keep:
		return "keep"
	case Replace:
		return "replace"
	}
	return fmt.Sprintf("IfExists(%d)", int(x))
}

// ParseIfExists reads what [IfExists.String] writes.
func ParseIfExists(s string) (IfExists, error) {
	for _, x := range []IfExists{Refuse, Keep, Replace} {
		if s == x.String() {
			return x, nil
		}
	}
	return 0, fmt.Errorf("%q is not refuse, keep or replace: %w", s, ErrInvalid)
}

// Enqueued says what became of a message.
type Enqueued struct {
	Queue      string
	ID         string
	Generation string // names this acceptance; two enqueues of equal bytes differ
	Revision   uint64 // the store's revision in which it became durable, or is known to be
	Kept       bool   // the ID was live and the message said Keep: this is the live one
}

// NoDeadline as a lease makes one that ends only by settlement, by proof of
// death or by the operator.
const NoDeadline time.Duration = -1

// DefaultLease is the lease of a claim that names none.
const DefaultLease = 5 * time.Minute

// ClaimOptions shapes a claim. The zero value claims one message for
// [DefaultLease].
type ClaimOptions struct {
	// Max is the most messages to claim, 10,000 at most. Zero: 1.
	Max int

	// MaxBytes ends a claim of several before the message with which their payloads
	// would have more bytes than this. The first is claimed whatever it has. Zero: no
	// bound.
	MaxBytes int64

	// Lease is how long the claim is the worker's alone, from 1 ms to 100 years.
	// Zero: [DefaultLease]. [NoDeadline]: for ever. Past its deadline the claim
	// still stands, and its receipt is still good, until the message is reaped or
	// taken over by Load; a plain Claim does not give it out again. At now = deadline
	// a lease is over.
	Lease time.Duration

	// Label says who claims, for people who look. At most 128 bytes. Empty: none.
	Label string

	// Fair rotates over keys instead of taking the oldest due message: each turn
	// takes the oldest of the next key, in the order of the keys' bytes and after the
	// one that was served last; the messages without a key share one turn. The place
	// in the rotation is kept in the queue.
	Fair bool

	// WithoutHolder names no holder in the lease: the claim is meant to outlive
	// this process, and the death of the process does not end it. A lease without
	// holder and without deadline can be taken over by Load; one that names a holder
	// only when that is proven dead, which in an engine that ends with its process it
	// never is.
	WithoutHolder bool
}

// LoadOptions shapes a Load. The zero value leases for [DefaultLease].
type LoadOptions struct {
	Lease         time.Duration // as in ClaimOptions
	Label         string        // as in ClaimOptions
	WithoutHolder bool          // as in ClaimOptions
}

// A Delivery is one message in the hands of a worker.
type Delivery struct {
	Receipt  Receipt
	Payload  []byte    // the bytes that were enqueued
	Key      string    // empty: none
	Fence    uint64    // the store's claim number: grows with every claim of the store, never repeats
	Deadline time.Time // when the lease ends; zero: no deadline

	EnqueuedAt time.Time // to the millisecond
	LastError  string    // what Retry kept last; empty: none

	// Failures counts the attempts that ended in a real failure so far: attempts
	// before this one, less the excused and the lapsed.
	Failures uint64
	Lapses   uint64 // claims of this generation that ended by reaping
}

// Attempt counts the claims of the generation, this one included: the fencing token
// of this claim.
func (d Delivery) Attempt() uint64 { return d.Receipt.Attempt }

// A Claimed is the result of a claim. Both lists empty: nothing is due. Behind very many
// damaged messages it may end before it comes to a whole one: then it has at least as many,
// the damaged ones counted, as were asked for, and the next claim goes on.
type Claimed struct {
	Deliveries []Delivery
	Damaged    []*DamagedError // messages that were moved to failed instead
}

// ReleaseOptions shapes a release. The zero value returns the message at once.
type ReleaseOptions struct {
	Delay time.Duration // until the message is due again (a snooze). Zero: at once
}

// RetryOptions shapes a retry.
type RetryOptions struct {
	Delay       time.Duration // until the message is due again. Zero: at once
	MaxFailures uint64        // at this many real failures, this one among them, the message goes to failed. Zero: 20
	Cause       string        // kept as the last error, cut at 1 KiB on a rune. Empty: the last error stays
}

// Returned says where Retry or Reap sent a message.
type Returned struct {
	Queue, ID  string
	FailedName string    // set: it reached the cap and is failed under this name
	NotBefore  time.Time // when it is due again; zero: at once
	Attempt    uint64    // of the claim that ended

	// Set by Reap.
	Cause  ReapCause
	Lapses uint64 // of the generation, this one among them
}

// A ReapCause is why a lease was ended.
type ReapCause string

const (
	ByDeadline ReapCause = "deadline" // it was past its deadline
	ByProof    ReapCause = "proof"    // its holder is proven dead
	ByOperator ReapCause = "operator" // it was named
)

// FailOptions shapes a Fail.
type FailOptions struct {
	Cause string // kept as the last error, cut at 1 KiB on a rune. Empty: the last error stays
	As    string // the failed name. Empty: the ID
}

// ReapOptions shapes a reaping.
type ReapOptions struct {
	Queues    []string // none: every queue
	Limit     int      // the most leases to end. Zero: 100
	MaxLapses uint64   // at this many lapses, this one among them, a message goes to failed. Zero: 10

	// Receipt names one claim to end whatever its deadline: the operator's act.
	// Nil: only leases past their deadline or with a holder proven dead.
	Receipt *Receipt
}

// ReprocessOptions shapes a reprocessing.
type ReprocessOptions struct {
	Namespace string // the failed namespace. Empty: the default one
}

// ClearOptions shapes a clearing.
type ClearOptions struct {
	Leased bool // remove leased messages too; their workers then meet ErrGone
}

// PurgeOptions shapes a purge.
type PurgeOptions struct {
	Namespace string // the failed namespace. Empty: the default one
}
