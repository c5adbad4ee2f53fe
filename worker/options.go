package worker

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"example.com/holdfast/queue"
)

// Defaults and bounds of the options.
const (
	DefaultLease         = time.Minute
	DefaultGrace         = 10 * time.Second
	DefaultDrain         = 20 * time.Second
	DefaultReapEvery     = 15 * time.Second
	DefaultBase          = 2 * time.Second
	DefaultMaxDelay      = time.Hour
	DefaultStoreFailures = 20

	MaxConcurrency = 1000
	MinLease       = 100 * time.Millisecond
)

// Options shapes a [Run]. The zero value works; a bad value is an error.
type Options struct {
	// Concurrency is how many handlers run at once, [MaxConcurrency] at most. Zero: 1.
	Concurrency int

	// Lease is how long a claim lasts unless renewed; it is renewed at a third of it
	// while the handler runs. The messages of a process that dies come back after it
	// at the latest. From [MinLease] to queue.MaxLease. Zero: 1 minute.
	Lease time.Duration

	// Timeout is the time limit of a handler for one message; then its context is
	// cancelled with [ErrTimeout]. Zero: none.
	Timeout time.Duration

	// Grace is how long after its context was cancelled a handler may still run before
	// it is reported as stuck and its lease is no longer renewed. Zero: 10 s.
	Grace time.Duration

	// Retry says when a message that failed is tried again, and how often.
	Retry RetryPolicy

	// Drain is how long running handlers may go on, uncancelled, after the context of
	// Run was cancelled. Zero: 20 s. Negative: not at all.
	Drain time.Duration

	// ReapEvery is the time between two reapings of the queue, spread by a tenth to
	// either side so that workers started together part. Zero: 15 s.
	ReapEvery time.Duration

	// CollectEvery is the time between two calls of Collect, spread as ReapEvery is; the
	// first comes after one. Zero: it is never called.
	CollectEvery time.Duration

	// Collect frees the room of messages that have left the store, for an engine that
	// does not do so by itself: of v2 it is the store's Collect. It is called beside the
	// handlers, never twice at once, and its context ends when the drain begins; Run waits
	// for it. An error is logged, and it is called again when its time comes. Nil:
	// CollectEvery must be zero.
	Collect func(context.Context) error

	// Label says who claims, for people who look. At most 128 bytes. Empty: none.
	Label string

	// Fair rotates over keys; see queue.ClaimOptions. False: oldest first.
	Fair bool

	// StoreFailures is how many times in a row one kind of store call (claim, settle,
	// renew, wait) may fail before Run gives up, with back-off from 100 ms doubling to
	// 30 s in between: by default some five minutes. Zero: 20. Negative: never.
	// Reapings that fail are logged and repeated with the same back-off, however many
	// they are: a worker that cannot bring back the messages of others can do its own.
	// One that is fatal ends Run like any.
	StoreFailures int

	// Fatal names further store errors that end Run at once, because no repetition can
	// help. queue.ErrInvalid, queue.ErrClosed and errors.ErrUnsupported always do. Nil:
	// none beside them. Every other error is tried again, StoreFailures times, logged
	// each time: the worker cannot know which errors of an engine pass, and an operator
	// may mend a store under a worker that waits. A panic in it is logged, and the
	// error then counts as not fatal.
	Fatal func(error) bool

	// Logger takes the log. Nil: slog.Default().
	Logger *slog.Logger

	// Observe is told of everything that happens, for metrics. It is called by the
	// loop itself, one event at a time and outside of locks: it must be quick. A panic
	// in it is logged and does no harm. Nil: nobody is told.
	Observe func(Event)

	seams seams
}

// GroupOptions shapes a [Group]. Each field is that of [Options], for all queues of
// the group together.
type GroupOptions struct {
	Concurrency   int
	Grace         time.Duration
	Drain         time.Duration
	ReapEvery     time.Duration
	CollectEvery  time.Duration
	Collect       func(context.Context) error
	Label         string
	StoreFailures int
	Fatal         func(error) bool
	Logger        *slog.Logger
	Observe       func(Event)

	// Weighted draws the queue of each free slot at random by weight. False: strict;
	// a queue is claimed from only while nothing is due in those added before it.
	Weighted bool

	seams seams
}

// QueueOptions shapes one queue of a [Group]. Each field but Weight is that of
// [Options].
type QueueOptions struct {
	Lease   time.Duration
	Timeout time.Duration
	Retry   RetryPolicy
	Fair    bool

	// Weight is the queue's share of the free slots in a weighted group, while others
	// have messages due too. Zero: 1.
	Weight int
}

// seams are what tests put in place of the system.
type seams struct {
	wall func(now time.Time) time.Time          // what the wall clock says now; nil: as now does
	draw func(most time.Duration) time.Duration // uniform in [0, most]; nil: math/rand/v2
}

func (s seams) checked() seams {
	if s.wall == nil {
		s.wall = func(now time.Time) time.Time { return now }
	}
	if s.draw == nil {
		s.draw = func(most time.Duration) time.Duration { return rand.N(most + 1) }
	}
	return s
}

func (o Options) group() GroupOptions {
	return GroupOptions{
		Concurrency: o.Concurrency, Grace: o.Grace, Drain: o.Drain, ReapEvery: o.ReapEvery, Label: o.Label,
		CollectEvery: o.CollectEvery, Collect: o.Collect,
		StoreFailures: o.StoreFailures, Fatal: o.Fatal, Logger: o.Logger, Observe: o.Observe, seams: o.seams,
	}
}

func (o Options) queue() QueueOptions {
	return QueueOptions{Lease: o.Lease, Timeout: o.Timeout, Retry: o.Retry, Fair: o.Fair}
}

// checked gives the options with their defaults filled in, or says what is wrong.
func (o GroupOptions) checked() (GroupOptions, error) {
	if o.Concurrency < 0 || o.Concurrency > MaxConcurrency {
		return o, fmt.Errorf("concurrency %d: from 1 to %d: %w", o.Concurrency, MaxConcurrency, queue.ErrInvalid)
	}
	if o.Concurrency == 0 {
		o.Concurrency = 1
	}
	if err := queue.CheckText("label", o.Label); err != nil {
		return o, err
	}
	if err := atLeast("grace", &o.Grace, DefaultGrace, 1); err != nil {
		return o, err
	}
	if err := atLeast("reaping interval", &o.ReapEvery, DefaultReapEvery, time.Millisecond); err != nil {
		return o, err
	}
	if o.CollectEvery < 0 || o.CollectEvery > 0 && o.Collect == nil {
		return o, fmt.Errorf("collecting every %s: from 0, and with Collect: %w", o.CollectEvery, queue.ErrInvalid)
	}
	if o.Drain == 0 {
		o.Drain = DefaultDrain
	}
	if o.StoreFailures == 0 {
		o.StoreFailures = DefaultStoreFailures
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.seams = o.seams.checked()
	return o, nil
}

// checked is as [GroupOptions.checked].
func (o QueueOptions) checked() (QueueOptions, error) {
	if err := atLeast("lease", &o.Lease, DefaultLease, MinLease); err != nil {
		return o, err
	}
	if o.Timeout < 0 {
		return o, fmt.Errorf("time limit %s: from 0: %w", o.Timeout, queue.ErrInvalid)
	}
	if o.Weight < 0 || o.Weight > 1e6 {
		return o, fmt.Errorf("weight %d: from 1 to 1000000: %w", o.Weight, queue.ErrInvalid)
	}
	if o.Weight == 0 {
		o.Weight = 1
	}
	var err error
	o.Retry, err = o.Retry.checked()
	return o, err
}

// atLeast fills in the default of a duration and checks its bounds.
func atLeast(what string, d *time.Duration, zero, least time.Duration) error {
	if *d == 0 {
		*d = zero
	}
	if *d < least || *d > queue.MaxLease {
		return fmt.Errorf("%s %s: from %s to %s: %w", what, *d, least, queue.MaxLease, queue.ErrInvalid)
	}
	return nil
}
