package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// A Handler works on one message and says by what it returns what becomes of it:
//
//	nil                  acked: done for good
//	AckWith(changes...)  acked in one commit with what the handler wants enqueued
//	any other error      retried after a back-off; at the cap it goes to failed
//	RetryAfter(d, err)   retried after exactly d; at the cap it goes to failed
//	Snooze(d)            returned, excused, due after d
//	Fail(err)            to the failed messages at once
//	Discard(reason)      acked without having been done; logged and counted apart
//
// The answers may be wrapped; of several the outermost counts, and in a join the
// first. A panic and runtime.Goexit count as an error. The error's text, cut at
// queue.MaxErrorBytes, is kept with the message as its last error: no payload or
// secret belongs in it.
//
// The context is cancelled when the lease is lost, when the time limit is over, and
// at the end of a drain; context.Cause tells which (queue.ErrLost, [ErrTimeout],
// [ErrDraining]). A handler should return then. The message may be kept and read
// after the return, but settling it is the worker's: a handler that has something to
// enqueue with the ack returns [AckWith].
type Handler[T any] func(ctx context.Context, m *queue.Received[T]) error

// An answer is an error that says itself what becomes of the message.
type answer interface {
	error
	verdict(verdict) verdict // given that of any other error
}

// Snooze is returned by a handler to have the message again after d, at least 0. The
// attempt is excused: it counts towards no cap.
func Snooze(d time.Duration) error { return snooze{bounded(d)} }

type snooze struct{ delay time.Duration }

func (a snooze) Error() string { return fmt.Sprintf("snoozed for %s", a.delay) }

func (a snooze) verdict(v verdict) verdict {
	v.action, v.least, v.most = ActionSnooze, a.delay, a.delay
	return v
}

// RetryAfter is returned by a handler that failed, to be tried again after exactly
// d, at least 0. A nil err is one without a reason.
func RetryAfter(d time.Duration, err error) error { return &retryAfter{bounded(d), reason(err)} }

type retryAfter struct {
	delay time.Duration
	err   error
}

func (a *retryAfter) Error() string { return a.err.Error() }
func (a *retryAfter) Unwrap() error { return a.err }

func (a *retryAfter) verdict(v verdict) verdict {
	v.least, v.most = a.delay, a.delay
	return v
}

// Fail is returned by a handler when no repetition can help: the message goes to the
// failed ones at once, under its ID, or ID~generation where that name is taken. A nil
// err is one without a reason.
func Fail(err error) error { return &failure{reason(err)} }

type failure struct{ err error }

func (a *failure) Error() string { return a.err.Error() }
func (a *failure) Unwrap() error { return a.err }

func (a *failure) verdict(v verdict) verdict {
	v.action, v.least, v.most = ActionFail, 0, 0
	v.maxFailures = 1 // a Retry at its cap never collides in the failed names, as Fail may
	return v
}

// Discard is returned by a handler to be rid of a message that is not worth doing:
// it is acked, and nothing of it is kept but the log.
func Discard(reason string) error { return discard{reason} }

type discard struct{ reason string }

func (a discard) Error() string { return "discarded: " + a.reason }

func (a discard) verdict(v verdict) verdict {
	v.action, v.least, v.most = ActionDiscard, 0, 0
	return v
}

// bounded keeps a delay inside what every store takes.
func bounded(d time.Duration) time.Duration { return min(max(d, 0), queue.MaxLease) }

func reason(err error) error {
	if err == nil {
		return errors.New("no reason given")
	}
	return err
}
