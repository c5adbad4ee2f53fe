//go:build unix

package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"example.com/holdfast/queue"
	holdfast "example.com/holdfast/v2"
	"example.com/holdfast/worker"
)

// A Mail is what the queue holds.
type Mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// run opens the store in dir, or makes it; accepts a mail, and sends what is there
// until ctx ends.
func run(ctx context.Context, dir string, send func(context.Context, Mail) error) error {
	store, err := holdfast.OpenOrCreate(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	mail := queue.New[Mail](store, "mail")

	m := Mail{To: "ann", Text: "hello"}
	if _, err := mail.Enqueue(ctx, m, queue.EnqueueOptions{ID: "welcome-ann", IfExists: queue.Keep}); err != nil {
		return err
	}
	// From here on the mail survives SIGKILL and the loss of power.

	return worker.Run(ctx, mail, func(ctx context.Context, m *queue.Received[Mail]) error {
		return send(ctx, m.Value) // nil: done for good; an error: again, after a back-off
	}, worker.Options{Concurrency: 4, Fatal: holdfast.NeedsOperator})
}

func Example() {
	parent, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)

	ctx, stop := context.WithCancel(context.Background())
	err = run(ctx, filepath.Join(parent, "store"), func(_ context.Context, m Mail) error {
		fmt.Printf("%s: %s\n", m.To, m.Text)
		stop()
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// ann: hello
}
