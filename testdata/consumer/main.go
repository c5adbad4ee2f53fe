// Consumer uses the store as a program outside this module would. CI builds it for
// linux and android, checks what it pulls in, and runs it.
//
//	consumer [DIR]
//
// Without DIR it works in a temporary directory and removes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/holdfast/queue"
	holdfast "example.com/holdfast/v2"
)

const inbox = "bot/inbox"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) > 1 {
		return use(ctx, os.Args[1])
	}
	parent, err := os.MkdirTemp("", "consumer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(parent)
	return use(ctx, filepath.Join(parent, "store"))
}

func use(ctx context.Context, dir string) (err error) {
	store, err := holdfast.OpenOrCreate(ctx, dir, &holdfast.Options{OnDeadOwner: holdfast.AutoRecover})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	return produceAndConsume(ctx, store)
}

// produceAndConsume needs only the contract: any engine would do.
func produceAndConsume(ctx context.Context, store queue.Store) error {
	m := queue.Message{ID: "update-42", Payload: []byte(`{"chat_id":9007199254740993}`), IfExists: queue.Keep}
	accepted, err := store.Enqueue(ctx, inbox, m)
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	fmt.Printf("%s/%s is durable in revision %d\n", accepted.Queue, accepted.ID, accepted.Revision)

	claimed, err := store.Claim(ctx, inbox, queue.ClaimOptions{Max: 10, Lease: time.Minute, Label: "consumer"})
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	for _, d := range claimed.Deliveries {
		fmt.Printf("attempt %d: %s\n", d.Receipt.Attempt, d.Payload)
		switch err := store.Ack(ctx, d.Receipt); {
		case errors.Is(err, queue.ErrLost):
			fmt.Println("in other hands by now:", err)
		case err != nil:
			return fmt.Errorf("ack: %w", err)
		}
	}

	status, err := store.Status(ctx, queue.StatusOptions{Queues: []string{inbox}})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if !status.Complete() {
		return fmt.Errorf("%s is not complete: %+v", inbox, status.Queues[inbox])
	}
	fmt.Printf("%s is complete\n", inbox)
	return nil
}
