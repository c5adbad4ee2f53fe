//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// A fakeStore takes what enqueue sends it and remembers only sizes. What a test
// does not script it must not call: the nil store inside panics.
type fakeStore struct {
	store
	batches   []int // messages per accepted batch
	mostBytes int
	held      [][]byte // payloads, kept only if keep is set
	keep      bool

	batch   func(ms []queue.Message) error // scripts an answer; nil: accept
	resolve func() (bool, error)
}

func (f *fakeStore) EnqueueBatch(ctx context.Context, q string, ms []queue.Message) ([]queue.Enqueued, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	done := make([]queue.Enqueued, len(ms))
	for i := range ms {
		done[i] = queue.Enqueued{Queue: q, ID: fmt.Sprint("m", i), Generation: "g", Revision: uint64(len(f.batches))}
	}
	if f.batch != nil {
		if err := f.batch(ms); err != nil {
			var u *queue.UncertainError
			if errors.As(err, &u) {
				u.Enqueued = done
			}
			return nil, err
		}
	}
	size := 0
	for _, m := range ms {
		size += len(m.Payload)
		if f.keep {
			f.held = append(f.held, m.Payload)
		}
	}
	f.batches = append(f.batches, len(ms))
	f.mostBytes = max(f.mostBytes, size)
	return done, nil
}

func (f *fakeStore) Resolve(context.Context, *queue.UncertainError) (bool, error) { return f.resolve() }
func (f *fakeStore) Close() error                                                 { return nil }

// accepted counts the messages taken.
func (f *fakeStore) accepted() (n int) {
	for _, b := range f.batches {
		n += b
	}
	return n
}

// with makes an engine that opens s, whatever is asked.
func with(s store) *engine {
	open := func(context.Context, string, *holdfast.Options) (store, error) { return s, nil }
	return &engine{create: open, resume: open, open: open, look: open}
}

// An overdueStore has nothing due, and two leases past their deadline.
type overdueStore struct{ store }

func (*overdueStore) Close() error { return nil }

func (*overdueStore) Claim(context.Context, string, queue.ClaimOptions) (queue.Claimed, error) {
	return queue.Claimed{}, nil
}

func (*overdueStore) Status(context.Context, queue.StatusOptions) (queue.Status, error) {
	return queue.Status{Settled: true, Queues: map[string]queue.QueueStatus{"mail": {Processing: 3, Overdue: 2}}}, nil
}

func (*overdueStore) List(context.Context, string, queue.ListOptions) (queue.Page, error) {
	return queue.Page{Settled: true, Entries: []queue.Entry{{ID: "w"}, {ID: "x", Overdue: true}, {ID: "y", Overdue: true}}}, nil
}
