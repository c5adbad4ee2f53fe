//go:build unix

package worker_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"example.com/holdfast/queue"
	holdfast "example.com/holdfast/v2"
	"example.com/holdfast/worker"
)

// openStore makes a store in a directory of its own, for one example.
func openStore() (store *holdfast.Store, done func()) {
	dir, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		panic(err)
	}
	store, err = holdfast.Create(context.Background(), filepath.Join(dir, "store"), nil)
	if err != nil {
		panic(err)
	}
	return store, func() {
		store.Close()
		os.RemoveAll(dir)
	}
}

// stopWhenComplete ends an example when everything is settled. A program goes on.
func stopWhenComplete(ctx context.Context, store queue.Store, stop func()) {
	store.Wait(ctx, queue.WaitOptions{})
	stop()
}

// quick has short delays and no log: for examples.
var quick = worker.Options{
	Retry:  worker.RetryPolicy{Base: time.Millisecond, Max: 10 * time.Millisecond},
	Logger: slog.New(slog.DiscardHandler),
}
