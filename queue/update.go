package queue

import (
	"fmt"
	"time"
)

// A Change is one step of an [Store.Update]. The types that implement it are the
// ones of this file; each refuses what its call refuses.
//
// An engine applies the changes in order, each to what those before it made. A
// message that the Update itself enqueued may be claimed by it.
//
// Many of one kind in one commit, the batch form of each call:
//
//	Enqueue                         EnqueueBatch; across queues an EnqueueChange each
//	Claim                           its Max; across queues a ClaimChange each
//	Load                            a LoadChange each
//	Ack, Release, Retry, Extend,
//	Fail, ReplacePayload            the change of that name each
//	Reap                            its Limit; of named claims a ReapChange each
//	Reprocess, Purge                the change of that name each
//	Clear                           is one: of a whole queue
//	Pause, Resume,
//	SetFailedNamespace              none: a queue has one of each
//
// One refusal refuses an Update whole. Where each message is to have an answer of its
// own, make the calls at the same time: an engine on a disk puts them in one commit too.
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
	// LoadChange is Store.Load. A damaged message is no refusal: it moves to failed,
	// and stands in Outcome.Claimed.
	LoadChange struct {
		Queue, ID string
		Options   LoadOptions
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
	// ReplacePayloadChange is Store.ReplacePayload.
	ReplacePayloadChange struct {
		Receipt Receipt
		Payload []byte
	}
	// ReapChange is Store.Reap of one named claim, whatever its deadline: the
	// operator's act. It refuses a claim that came back already.
	ReapChange struct {
		Receipt   Receipt
		MaxLapses uint64 // as in ReapOptions
	}
	// ReprocessChange is Store.Reprocess.
	ReprocessChange struct {
		FailedName string
		Options    ReprocessOptions
	}
	// PurgeChange is Store.Purge.
	PurgeChange struct {
		FailedName string
		Options    PurgeOptions
	}
	// CursorChange sets the queue's cursor: an intake loop's offset, at most
	// 1 KiB, durable with the batch that it belongs to.
	CursorChange struct {
		Queue  string
		Cursor string
	}
)

func (EnqueueChange) change()        {}
func (ClaimChange) change()          {}
func (LoadChange) change()           {}
func (AckChange) change()            {}
func (ReleaseChange) change()        {}
func (RetryChange) change()          {}
func (ExtendChange) change()         {}
func (FailChange) change()           {}
func (ReplacePayloadChange) change() {}
func (ReapChange) change()           {}
func (ReprocessChange) change()      {}
func (PurgeChange) change()          {}
func (CursorChange) change()         {}

// An Outcome is what one Change of an Update came to; the field that belongs to
// the change's type is set.
type Outcome struct {
	Enqueued Enqueued
	Claimed  Claimed   // of a claim, empty: nothing was due; of a load, its one message
	Returned Returned  // of a retry or a reaping
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
