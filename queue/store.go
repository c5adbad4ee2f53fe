package queue

import (
	"context"
	"time"
)

// A Store is a set of queues that share one failed index, one clock and one
// sequence of commits. An engine implements it; all methods are safe for
// concurrent use.
//
// Durability: a nil error means that the transition is durable in the sense of
// the engine (for a store on a disk: it survives the loss of power). On an error
// nothing changed, except where the error wraps [ErrUncertain] or [ErrDamaged];
// those say what may have. A call that failed may be made again: a settlement
// that had happened then answers ErrLost, and an enqueue under a caller's own ID
// answers ErrDuplicate, or the live message under Keep.
//
// Contexts: a cancelled context counts until the call enters a commit; from then
// on the call waits for that commit and returns its result.
type Store interface {
	// Enqueue accepts one message. Refusals: ErrDuplicate, ErrInvalid…,
	// ErrTooLarge, ErrFull.
	Enqueue(ctx context.Context, queue string, m Message) (Enqueued, error)

	// EnqueueBatch accepts all the messages in one commit, in order, or none of
	// them; a refusal is a *BatchError. Its size is bounded by memory and by the
	// engine's state only.
	EnqueueBatch(ctx context.Context, queue string, ms []Message) ([]Enqueued, error)

	// Claim leases the oldest due messages. Nothing due is an empty result.
	Claim(ctx context.Context, queue string, o ClaimOptions) (Claimed, error)

	// Load claims one named message whatever its schedule, its place among the messages
	// of its key, and a pause. It takes over a lease that is past its deadline, one whose
	// holder is proven dead, and one that has neither deadline nor holder; that counts
	// as a lapse. Refusals: ErrNotFound; ErrLeased, also when another message of its key
	// is leased; a *DamagedError moved the message to failed.
	Load(ctx context.Context, queue, id string, o LoadOptions) (Delivery, error)

	// Ack settles a message for good. Refusals: ErrStale, ErrGone.
	Ack(ctx context.Context, r Receipt) error

	// Release returns a message, excused: at once, or after a delay (a snooze).
	// Refusals: ErrStale, ErrGone.
	Release(ctx context.Context, r Receipt, o ReleaseOptions) error

	// Retry returns a message after a failure, or moves it to failed at the cap,
	// under a name that is free: its ID, or ID~generation. It reports which.
	// MaxFailures of 1 therefore fails a message at once without ErrFailedExists.
	// Refusals: ErrStale, ErrGone.
	Retry(ctx context.Context, r Receipt, o RetryOptions) (Returned, error)

	// Extend moves the deadline to now + lease (zero: [DefaultLease]) and returns it,
	// zero for [NoDeadline]. A reaped message that nobody claimed since goes back into
	// processing, and the lapse is forgotten; the holder stays what it was, none after a
	// proof of its death. Refusals: ErrStale, also for a reaped one while another message
	// of its key is leased; ErrGone.
	Extend(ctx context.Context, r Receipt, lease time.Duration) (time.Time, error)

	// Fail moves a message to the failed ones and returns its failed name, which all
	// queues of a failed namespace share: a worker that fails the same IDs in several
	// queues names them apart, as by queue and ID. Refusals: ErrStale, ErrGone,
	// ErrFailedExists.
	Fail(ctx context.Context, r Receipt, o FailOptions) (string, error)

	// ReplacePayload gives a claimed message another payload; the generation and
	// the claim stay. Refusals: ErrStale, ErrGone, ErrInvalidPayload, ErrTooLarge.
	ReplacePayload(ctx context.Context, r Receipt, payload []byte) error

	// Reap ends leases that are past their deadline or whose holder is proven dead, in
	// order of the queues' names and the oldest messages of each first, and returns their messages, or moves
	// them to failed at the cap of lapses, under a name that is free. One named claim
	// is ended whatever its deadline; refusals are then ErrStale (also of a claim that
	// came back already) and ErrGone. Nothing over is an empty result.
	Reap(ctx context.Context, o ReapOptions) ([]Returned, error)

	// Reprocess returns a failed message to its queue, at its old place and ahead of
	// any pending generation of its ID. Its attempts so far are excused and its lapses
	// forgotten; the last error stays. Refusals: ErrNotFailed; ErrInFlight and ErrFull,
	// and the evidence stays.
	Reprocess(ctx context.Context, failedName string, o ReprocessOptions) error

	// Clear removes the pending and returned messages of a queue, and the leased
	// ones when asked, and says how many.
	Clear(ctx context.Context, queue string, o ClearOptions) (uint64, error)

	// Purge removes a failed message. Refusals: ErrNotFailed.
	Purge(ctx context.Context, failedName string, o PurgeOptions) error

	// Pause makes claims of a queue find nothing until Resume; enqueue, settling and
	// Load go on. Pausing a paused queue, and resuming one that is not, are no errors.
	Pause(ctx context.Context, queue string) error
	Resume(ctx context.Context, queue string) error

	// SetFailedNamespace says where messages of a queue that fail from now on are
	// kept. Empty: the default one, which queues begin with. Queues with the same
	// namespace share its failed names. What has failed stays where it is.
	SetFailedNamespace(ctx context.Context, queue, namespace string) error

	// Update makes several changes in one commit, in order and across queues: all of
	// them or none; see [Change], also for the batch form of each call. An outcome
	// stands at the index of its change. A refusal is an *UpdateError; a claim that
	// finds nothing is none, but see Outcome.Claimed.
	Update(ctx context.Context, changes ...Change) ([]Outcome, error)

	// Cursor reads a queue's cursor; empty: none was set.
	Cursor(ctx context.Context, queue string) (string, error)

	// Peek shows the next n messages (1 to 10,000) that a claim would take, payloads
	// included.
	Peek(ctx context.Context, queue string, n int) ([]Entry, error)

	// List shows the live messages of a queue in order of their enqueue sequence.
	List(ctx context.Context, queue string, o ListOptions) (Page, error)

	// Show shows the live generations of one ID, the older first, payloads
	// included. None: ErrNotFound.
	Show(ctx context.Context, queue, id string) ([]Entry, error)

	// ListFailed shows failed messages in order of their names.
	ListFailed(ctx context.Context, f FailedOptions, o ListOptions) (Page, error)

	// ShowFailed shows one failed message, payload included. None: ErrNotFailed.
	ShowFailed(ctx context.Context, failedName string, f FailedOptions) (Entry, error)

	// Status gives the gauges and counters of queues in one snapshot.
	Status(ctx context.Context, o StatusOptions) (Status, error)

	// Wait returns the final Status when one snapshot shows everything asked for
	// complete. It parks between changes. An unsettled store is an error.
	Wait(ctx context.Context, o WaitOptions) (Status, error)

	// WaitDue returns nil when one snapshot shows a message that a claim of one of
	// the queues (none named: of any queue) would take at that time. It parks until a
	// commit, in this process or another, or the passing of time makes one due. Another
	// claimer may still be first.
	WaitDue(ctx context.Context, queues ...string) error

	// Close ends the use of the store and waits for commits under way. Calls that
	// have not entered one answer ErrClosed. Claims stay as they are.
	Close() error
}
