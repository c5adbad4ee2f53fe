//go:build unix

package peer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

// Worker is the v2 store behind package worker, which acks one message and claims the next
// in one commit.
func Worker() Peer {
	p := Holdfast()
	p.Key, p.Name = "worker", "holdfast v2, worker"
	p.How = "Package worker on the store: the handler enqueues the next message, and the worker acks this one with its next claim."
	p.Chains = workerChains
	p.NoSingles = true
	return p
}

// workerChains makes each handler enqueue the message that its slot works on next.
func workerChains(ctx context.Context, q Queue, workers int, next func() []byte, seen func([]byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// One is for the start: nothing is over before all chains have begun.
	var open atomic.Int64
	open.Store(1)
	done := func() {
		if open.Add(-1) == 0 {
			cancel(nil)
		}
	}
	enqueue := func() error {
		p := next()
		if p == nil {
			return nil
		}
		open.Add(1)
		return q.Enqueue(ctx, p)
	}
	handle := func(_ context.Context, m *queue.Received[json.RawMessage]) error {
		if err := errors.Join(seen(m.Payload), enqueue()); err != nil {
			cancel(err) // else a message that is in doubt would be tried again
			return err
		}
		return nil
	}

	started := make(chan error, 1)
	go func() {
		errs := make(chan error, workers)
		for range workers {
			go func() { errs <- enqueue() }()
		}
		var err error
		for range workers {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			cancel(err)
		}
		done()
		started <- err
	}()
	err := worker.Run(ctx, queue.New[json.RawMessage](q.(*holdfastQueue).store, queueName), handle, worker.Options{
		Concurrency: workers,
		Lease:       lease,
		Logger:      slog.New(slog.DiscardHandler),
		Observe: func(e worker.Event) {
			if e.Kind == worker.EventAcked {
				done()
			}
		},
	})
	err = errors.Join(err, <-started)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return err
}
