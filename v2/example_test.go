//go:build unix

package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"example.com/holdfast/queue"
	holdfast "example.com/holdfast/v2"
)

// workOff opens the store in dir, or makes it; accepts an update and works it off.
func workOff(ctx context.Context, dir string, update []byte) error {
	store, err := holdfast.OpenOrCreate(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer store.Close()

	m := queue.Message{ID: "update-42", Payload: update, IfExists: queue.Keep}
	if _, err := store.Enqueue(ctx, "bot/inbox", m); err != nil {
		return err
	}
	// From here on the update survives SIGKILL and the loss of power.
	claimed, err := store.Claim(ctx, "bot/inbox", queue.ClaimOptions{Lease: time.Minute})
	if err != nil {
		return err
	}
	for _, d := range claimed.Deliveries {
		fmt.Printf("attempt %d: %s\n", d.Receipt.Attempt, d.Payload)
		if err := store.Ack(ctx, d.Receipt); err != nil {
			return err // errors.Is(err, queue.ErrLost): in other hands by now
		}
	}
	return nil
}

func Example() {
	parent, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)

	update := []byte(`{"chat_id": 9007199254740993, "text": "hello 👋"}`)
	if err := workOff(context.Background(), filepath.Join(parent, "store"), update); err != nil {
		log.Fatal(err)
	}
	// Output:
	// attempt 1: {"chat_id": 9007199254740993, "text": "hello 👋"}
}
