//go:build unix

package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"example.com/holdfast/queue"
	holdfast "example.com/holdfast/v2"
	"example.com/holdfast/worker"
)

// On the store on disk too, the ack of a message and the claim of the next one are one
// commit.
func TestOneCommitForEachMessageOnDisk(t *testing.T) {
	store, err := holdfast.Create(t.Context(), filepath.Join(t.TempDir(), "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	revision := func() uint64 {
		t.Helper()
		st, err := store.Status(context.Background(), queue.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return st.Revision
	}
	q := queue.New[int](store, "mail")
	const messages = 10
	if _, err := q.EnqueueBatch(t.Context(), make([]int, messages)); err != nil {
		t.Fatal(err)
	}
	before := revision()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	acked := 0
	err = worker.Run(ctx, q, func(context.Context, *queue.Received[int]) error { return nil }, worker.Options{
		Logger: slog.New(slog.DiscardHandler),
		Observe: func(e worker.Event) {
			if e.Kind == worker.EventAcked {
				if acked++; acked == messages {
					cancel()
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The first claim, and one for each ack.
	if got, want := revision()-before, uint64(1+messages); got != want {
		t.Errorf("%d commits for %d messages, want %d", got, messages, want)
	}
	st, err := store.Status(context.Background(), queue.StatusOptions{})
	if err != nil || !st.Complete() {
		t.Errorf("status %+v, %v: want it complete", st, err)
	}
}

// With a producer that keeps ahead, a message costs two commits: its enqueue, and the ack
// that claims the next one.
func TestTwoCommitsForEachMessageOnDisk(t *testing.T) {
	store, err := holdfast.Create(t.Context(), filepath.Join(t.TempDir(), "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	revision := func() uint64 {
		t.Helper()
		st, err := store.Status(context.Background(), queue.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return st.Revision
	}
	const messages = 10
	before := revision()
	q := queue.New[int](store, "mail")
	produce := func(n int) error {
		if n == messages {
			return nil
		}
		_, err := q.Enqueue(context.Background(), n, queue.EnqueueOptions{})
		return err
	}
	if err := produce(0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = worker.Run(ctx, q, func(_ context.Context, m *queue.Received[int]) error { return produce(m.Value + 1) }, worker.Options{
		Logger: slog.New(slog.DiscardHandler),
		Observe: func(e worker.Event) {
			if e.Kind == worker.EventAcked {
				if st, err := store.Status(context.Background(), queue.StatusOptions{}); err != nil || st.Complete() {
					cancel()
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Two for each, and the first claim.
	if got, want := revision()-before, uint64(2*messages+1); got != want {
		t.Errorf("%d commits for %d messages, want %d", got, messages, want)
	}
}

// A store that is closed under the worker ends it.
func TestStoreOnDiskClosed(t *testing.T) {
	store, err := holdfast.Create(t.Context(), filepath.Join(t.TempDir(), "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New[int](store, "mail")
	if _, err := q.Enqueue(t.Context(), 1, queue.EnqueueOptions{}); err != nil {
		t.Fatal(err)
	}
	err = worker.Run(t.Context(), q, func(context.Context, *queue.Received[int]) error { return store.Close() },
		worker.Options{Logger: slog.New(slog.DiscardHandler)})
	var left *worker.UnsettledError
	if !errors.Is(err, queue.ErrClosed) || !errors.As(err, &left) || len(left.Receipts) != 1 {
		t.Errorf("Run: %v, want ErrClosed and the message that is left", err)
	}
}
