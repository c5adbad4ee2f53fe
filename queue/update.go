package queue

import "time"

// A Change is one step of an [Store.Update]. The types that implement it are the
// ones of this file: what a producer or a worker does. What an operator does
// (clear, purge, reap, reprocess, pause) is a call of its own.
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
	Claimed  Claimed
	Returned Returned
	Deadline time.Time
	Failed   string // the failed name
}
