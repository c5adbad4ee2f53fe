//go:build unix

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

// Back-off, and a message that fails too often: it goes to failed with its last error,
// and comes back when the operator says so.
func Example_retryAndDeadLetters() {
	store, done := openStore()
	defer done()
	mail := queue.New[string](store, "mail")
	ctx := context.Background()
	if _, err := mail.Enqueue(ctx, "hello", queue.EnqueueOptions{ID: "m1"}); err != nil {
		fmt.Println(err)
		return
	}

	workOff := func(h worker.Handler[string]) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go stopWhenComplete(ctx, store, stop)
		o := quick
		o.Retry.MaxFailures = 3 // the default is 20, with delays of up to an hour
		if err := worker.Run(ctx, mail, h, o); err != nil {
			fmt.Println(err)
		}
	}
	workOff(func(_ context.Context, m *queue.Received[string]) error {
		fmt.Println("attempt", m.Attempt())
		return errors.New("the server does not answer")
	})

	failed, err := store.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range failed.Entries {
		fmt.Printf("failed %s: %s\n", e.FailedName, e.LastError)
		if err := store.Reprocess(ctx, e.FailedName, queue.ReprocessOptions{}); err != nil {
			fmt.Println(err)
		}
	}
	workOff(func(_ context.Context, m *queue.Received[string]) error {
		fmt.Printf("attempt %d, %d failures that count\n", m.Attempt(), m.Failures)
		return nil
	})
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// failed m1: the server does not answer
	// attempt 4, 0 failures that count
}

// A handler that is told when to come back, and one that waits for something without
// that being a failure.
func Example_retryAfterAndSnooze() {
	handler := func(_ context.Context, m *queue.Received[string]) error {
		switch m.Value {
		case "rate limited":
			return worker.RetryAfter(30*time.Second, errors.New("429 Too Many Requests"))
		case "shop closed":
			return worker.Snooze(time.Hour)
		case "address unknown":
			return worker.Fail(errors.New("550 no such mailbox"))
		case "too old":
			return worker.Discard("older than a day")
		}
		return nil
	}
	for _, value := range []string{"fine", "rate limited", "shop closed", "address unknown", "too old"} {
		r := worker.Try(context.Background(), handler, value, worker.TryOptions{})
		fmt.Printf("%s: %s\n", value, r.Action)
	}
	// Output:
	// fine: ack
	// rate limited: retry
	// shop closed: snooze
	// address unknown: fail
	// too old: discard
}
