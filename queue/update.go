package queue

import (
	"fmt"
	"time"
)

// A Change is one step of an [Store.Update]. The types that implement it are the
// ones of this file: what a producer or a worker does. What an operator does
// (clear, purge, reap, reprocess, pause) is a call of its own.
//
// An engine applies the changes in order, each to what those before it made. A
// message that the Update itself enqueued may be claimed by it.
type Change interface{ change() }

type (
	// EnqueueChange is Store.Enqueue.
	EnqueueChange struct {
		Queue   string
		Message Message
	}
	// ClaimChange is Store.Claim.
	ClaimChange struct {
		Queue   string
		Options ClaimOptions
	}
	// AckChange is Store.Ack.
	AckChange struct{ Receipt Receipt }
	// ReleaseChange is Store.Release.
	ReleaseChange struct {
		Receipt Receipt
		Options ReleaseOptions
	}
	// RetryChange is Store.Retry.
	RetryChange struct {
		Receipt Receipt
		Options RetryOptions
	}
	// ExtendChange is Store.Extend.
	ExtendChange struct {
		Receipt Receipt
		Lease   time.Duration
	}
	// FailChange is Store.Fail.
	FailChange struct {
		Receipt Receipt
		Options FailOptions
	}
	// CursorChange sets the queue's cursor: an intake loop's offset, at most
	// 1 KiB, durable with the batch that it belongs to.
	CursorChange struct {
		Queue  string
		Cursor string
	}
)

func (EnqueueChange) change() {}
func (ClaimChange) change()   {}
func (AckChange) change()     {}
func (ReleaseChange) change() {}
func (RetryChange) change()   {}
func (ExtendChange) change()  {}
func (FailChange) change()    {}
func (CursorChange) change()  {}

// An Outcome is what one Change of an Update came to; the field that belongs to
// the change's type is set.
type Outcome struct {
	Enqueued Enqueued
	Claimed  Claimed   // empty: nothing was due
	Returned Returned  // of a retry
	Deadline time.Time // of an extension; zero: none
	Failed   string    // the failed name
}

// An UpdateError is returned by Update when a change was refused: none of them
// happened. It unwraps to the refusal.
type UpdateError struct {
	Index int // of the change
	Err   error
}

func (e *UpdateError) Error() string {
	return fmt.Sprintf("change %d of the update refused, none was made: %v", e.Index, e.Err)
}

func (e *UpdateError) Unwrap() error { return e.Err }
