//go:build unix

package worker_test

import (
	"context"
	"fmt"
	"time"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

// A message for later. It waits in the store, so a restart does not forget it; the
// worker is woken when it is due.
func Example_delayedMessage() {
	store, done := openStore()
	defer done()
	reminders := queue.New[string](store, "reminders")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	due := time.Now().Add(50 * time.Millisecond)
	if _, err := reminders.Enqueue(ctx, "stand up", queue.EnqueueOptions{NotBefore: due}); err != nil {
		fmt.Println(err)
		return
	}
	err := worker.Run(ctx, reminders, func(_ context.Context, m *queue.Received[string]) error {
		fmt.Println(m.Value, "- too early:", time.Now().Before(due))
		stop()
		return nil
	}, quick)
	fmt.Println("ended:", err)
	// Output:
	// stand up - too early: false
	// ended: <nil>
}

// "Run once more after the running one": however often a rebuild is asked for while
// one is running, exactly one more follows, with what was asked for last. The ID is
// what is rebuilt; Replace supersedes the one that waits and never the one that runs.
func Example_onceMoreAfterTheRunningOne() {
	store, done := openStore()
	defer done()
	builds := queue.New[string](store, "builds")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ask := func(revision string) {
		if _, err := builds.Enqueue(ctx, revision, queue.EnqueueOptions{ID: "site", IfExists: queue.Replace}); err != nil {
			fmt.Println(err)
		}
	}
	ask("r1")
	go stopWhenComplete(ctx, store, stop)
	err := worker.Run(ctx, builds, func(_ context.Context, m *queue.Received[string]) error {
		fmt.Println("building", m.Value)
		if m.Value == "r1" { // meanwhile
			ask("r2")
			ask("r3")
			ask("r4")
		}
		return nil
	}, quick)
	fmt.Println("ended:", err)
	// Output:
	// building r1
	// building r4
	// ended: <nil>
}
