package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
	"example.com/holdfast/worker"
)

// A Mail is what the queue "mail" holds.
type Mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

var errNoSuchUser = errors.New("no such user")

// send is the handler of the examples.
func send(_ context.Context, m *queue.Received[Mail]) error {
	switch {
	case m.Value.To == "":
		return worker.Fail(errNoSuchUser) // no repetition can help
	case !m.EnqueuedAt.IsZero() && time.Since(m.EnqueuedAt) > 24*time.Hour:
		return worker.Discard("older than a day")
	case m.Value.To == "busy":
		return worker.RetryAfter(5*time.Minute, errors.New("the server is busy"))
	}
	fmt.Printf("to %s: %s\n", m.Value.To, m.Value.Text)
	return nil
}

func ExampleRun() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New(nil)
	mail := queue.New[Mail](store, "mail")
	if _, err := mail.EnqueueBatch(ctx, []Mail{{"ann", "hello"}, {"", "nobody"}, {"bob", "good-bye"}}); err != nil {
		log.Fatal(err)
	}

	// A program would cancel on SIGTERM: see signal.NotifyContext.
	settled := 0
	err := worker.Run(ctx, mail, send, worker.Options{
		Timeout: time.Minute,
		Logger:  slog.New(slog.DiscardHandler),
		Observe: func(e worker.Event) {
			switch e.Kind {
			case worker.EventAcked, worker.EventFailed:
				if settled++; settled == 3 {
					cancel()
				}
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	st, err := store.Status(context.Background(), queue.StatusOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent:", st.Queues["mail"].Counters.Completed, "failed:", st.Queues["mail"].Failed)
	// Output:
	// to ann: hello
	// to bob: good-bye
	// sent: 2 failed: 1
}

// A handler is tested without a store.
func ExampleTry() {
	for _, m := range []Mail{{"ann", "hello"}, {"busy", "hello"}, {"", "hello"}} {
		r := worker.Try(context.Background(), send, m, worker.TryOptions{})
		fmt.Println(r.Action, r.DelayMax, r.Err)
	}
	// Output:
	// to ann: hello
	// ack 0s <nil>
	// retry 5m0s the server is busy
	// fail 0s no such user
}

// Urgent messages before all others, with four handlers at once.
func ExampleGroup() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New(nil)
	g := worker.NewGroup(store, worker.GroupOptions{Concurrency: 4, Logger: slog.New(slog.DiscardHandler)})
	worker.Add(g, queue.New[Mail](store, "urgent"), send, worker.QueueOptions{})
	worker.Add(g, queue.New[string](store, "log"), func(_ context.Context, m *queue.Received[string]) error {
		fmt.Println(m.Value)
		cancel()
		return nil
	}, worker.QueueOptions{Lease: 10 * time.Minute})
	if _, err := queue.New[string](store, "log").Enqueue(ctx, "nothing urgent", queue.EnqueueOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := g.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: nothing urgent
}
