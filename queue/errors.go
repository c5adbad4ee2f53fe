package queue

import (
	"errors"
	"fmt"
	"time"
)

// A class is a sentinel that belongs to a wider one, without repeating its text.
type class struct {
	text string
	of   error
}

func (c *class) Error() string { return c.text }
func (c *class) Unwrap() error { return c.of }

func kind(text string, of error) error { return &class{text, of} }

// A producer or an operator meets these when what it hands in cannot be taken.
var (
	// ErrInvalid is wrapped by every error that says an argument is not
	// acceptable: nothing was attempted, and the same call fails again.
	ErrInvalid = errors.New("invalid argument")

	// ErrInvalidName is returned when a queue name, an ID, a failed name, a key
	// or a label breaks the naming rules; see [CheckID] and [CheckQueue].
	ErrInvalidName = kind("invalid name", ErrInvalid)

	// ErrInvalidPayload is returned when a payload is not one JSON value of
	// RFC 8259 in valid UTF-8, or nests too deeply.
	ErrInvalidPayload = kind("invalid payload", ErrInvalid)

	// ErrInvalidReceipt is returned when a receipt does not parse, or names
	// another store.
	ErrInvalidReceipt = kind("invalid receipt", ErrInvalid)

	// ErrTooLarge is returned when a payload or a text exceeds its bound.
	ErrTooLarge = kind("too large", ErrInvalid)

	// ErrDuplicate is returned when an ID is enqueued that is live already
	// (pending or processing) and the message does not say Keep or Replace.
	ErrDuplicate = errors.New("the ID is live already")

	// ErrFull is returned when an enqueue would pass a bound of the store: its
	// state, or the free space of its disk. Settling goes on.
	ErrFull = errors.New("the store is full")
)

// A consumer meets these when it asks for one named message.
var (
	// ErrNotFound is returned when no such message is there.
	ErrNotFound = errors.New("no such message")

	// ErrLeased is returned by Load when the message, or another one of its key, is
	// leased and that lease cannot be taken over.
	ErrLeased = errors.New("the message is leased")

	// ErrDamaged is returned by Load, and named in a claim's result, when a
	// payload cannot be delivered because its bytes are missing, short or
	// altered. The message was moved to the failed ones.
	ErrDamaged = errors.New("the payload is damaged")
)

// A consumer meets these when it settles with a receipt that is no longer good.
var (
	// ErrLost is wrapped by ErrStale and ErrGone: the message is no longer
	// yours. Drop the work; the message is in other hands or at rest.
	ErrLost = errors.New("the claim is lost")

	// ErrStale is returned when the generation is still there, under another
	// attempt or returned.
	ErrStale = kind("stale receipt", ErrLost)

	// ErrGone is returned when the generation has left: acked, cleared or failed.
	ErrGone = kind("the message is gone", ErrLost)
)

// An operator meets these among the failed messages.
var (
	// ErrFailedExists is returned by Fail when the failed name is taken. The
	// claim stays as it was; fail under another name.
	ErrFailedExists = errors.New("a failed message has that name")

	// ErrNotFailed is returned when no failed message has that name.
	ErrNotFailed = errors.New("no failed message has that name")

	// ErrInFlight is returned by Reprocess when a generation of the same ID is
	// processing or returned. The evidence stays.
	ErrInFlight = errors.New("a generation of that ID is in flight")
)

// Any caller can meet these.
var (
	// ErrUncertain is returned when a commit may or may not have happened: see
	// [UncertainError].
	ErrUncertain = errors.New("it is uncertain whether the commit happened")

	// ErrClosed is returned when the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// A LostError says what has become of a claim. It unwraps to [ErrStale] or
// [ErrGone], and so to [ErrLost].
type LostError struct {
	Queue, ID string
	Attempt   uint64 // of the receipt
	Current   uint64 // the message's attempt now: Attempt itself when it was returned; 0 when it is gone
	Reason    string // one clause, such as "claimed again" or "released"
	Err       error  // ErrStale or ErrGone
}

func (e *LostError) Error() string {
	if errors.Is(e.Err, ErrGone) {
		return fmt.Sprintf("%s/%s attempt %d: gone: %s", e.Queue, e.ID, e.Attempt, e.Reason)
	}
	if e.Current == e.Attempt {
		return fmt.Sprintf("%s/%s attempt %d: stale: %s", e.Queue, e.ID, e.Attempt, e.Reason)
	}
	return fmt.Sprintf("%s/%s attempt %d: stale: %s (now at attempt %d)", e.Queue, e.ID, e.Attempt, e.Reason, e.Current)
}

func (e *LostError) Unwrap() error { return e.Err }

// A DamagedError says which payload could not be delivered and under which
// failed name its evidence is kept. It unwraps to [ErrDamaged].
type DamagedError struct {
	Queue, ID  string
	FailedName string
	Reason     string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s/%s: damaged payload (%s); kept as failed %q", e.Queue, e.ID, e.Reason, e.FailedName)
}

func (e *DamagedError) Unwrap() error { return ErrDamaged }

// A BatchError is returned by EnqueueBatch when at least one message was
// refused. The batch is all or nothing: none of it was enqueued. It names every
// message that is invalid in itself; only where there is none, every one that the
// store refuses. It unwraps to every refusal in it.
type BatchError struct {
	Refused []Refusal // in the order of the batch
}

// A Refusal is one refused message of a batch.
type Refusal struct {
	Index int // position in the batch
	Err   error
}

func (e *BatchError) Error() string {
	if len(e.Refused) == 0 {
		return "batch refused"
	}
	first := e.Refused[0]
	return fmt.Sprintf("batch refused, nothing was enqueued: %d refused, the first at index %d: %v", len(e.Refused), first.Index, first.Err)
}

// Unwrap gives every refusal, so that errors.Is finds any of them.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Refused))
	for i, r := range e.Refused {
		errs[i] = r.Err
	}
	return errs
}

// An UncertainError is returned to every caller of a commit that may survive or
// not: a sync of names failed, or one of data and then what should have taken it
// back. It carries what the
// call would have returned, so that a caller whose commit proves to have
// happened can go on; ask the store's Resolve. It unwraps to [ErrUncertain] and
// to the cause.
type UncertainError struct {
	Store    string // store id
	Revision uint64 // the revision that the commit would have
	Commit   string // its commit token
	Base     string // the commit token of the revision before it

	Enqueued []Enqueued // what Enqueue would have returned
	// Good only once Resolve says that the commit happened: the claim of another
	// worker may else come to have the same receipt.
	Deliveries []Delivery      // what Claim or Load would have returned
	Damaged    []*DamagedError // what Claim would have reported beside them
	Returned   []Returned      // what Retry or Reap would have returned
	Deadline   time.Time       // what Extend would have returned
	Failed     string          // what Fail would have returned
	Cleared    uint64          // what Clear would have returned
	Outcomes   []Outcome       // what Update would have returned; of its deliveries the same holds
	Refused    error           // the refusal that the call would have met

	Err error // the cause
}

func (e *UncertainError) Error() string {
	return fmt.Sprintf("uncertain whether revision %d happened: %v", e.Revision, e.Err)
}

// Unwrap gives ErrUncertain and the cause.
func (e *UncertainError) Unwrap() []error { return []error{ErrUncertain, e.Err} }
