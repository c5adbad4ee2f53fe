//go:build unix

package worker_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

// A ledger stands for a database of one's own, with a table of what was done:
//
//	CREATE TABLE done (message TEXT PRIMARY KEY)
type ledger struct {
	done    map[string]bool
	balance int
}

// book is one transaction of that database:
//
//	BEGIN;
//	INSERT INTO done (message) VALUES ($1) ON CONFLICT DO NOTHING;  -- no row: roll back, it is done
//	UPDATE account SET balance = balance + $2;
//	COMMIT;
func (l *ledger) book(message string, amount int) (booked bool) {
	if l.done[message] {
		return false
	}
	l.done[message] = true
	l.balance += amount
	return true
}

// A transaction of one's own database cannot join the ack: they are two commits on
// two systems, and the process can die between them. So the database comes first, with
// the message's ID under a unique constraint in the same transaction, and the ack
// second. A delivery that is repeated finds the row and only acks.
//
// Acking first would lose the booking if the process died in between.
func Example_yourOwnTransaction() {
	store, done := openStore()
	defer done()
	payments := queue.New[int](store, "payments")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if _, err := payments.Enqueue(ctx, 100, queue.EnqueueOptions{ID: "payment-1"}); err != nil {
		fmt.Println(err)
		return
	}
	go stopWhenComplete(ctx, store, stop)

	db := &ledger{done: map[string]bool{}}
	err := worker.Run(ctx, payments, func(_ context.Context, m *queue.Received[int]) error {
		booked := db.book(m.Receipt.ID, m.Value)
		fmt.Printf("attempt %d booked: %v\n", m.Attempt(), booked)
		if m.Attempt() == 1 {
			return errors.New("the process dies here, before the ack") // what that comes to
		}
		return nil
	}, quick)
	fmt.Println("balance", db.balance, "ended:", err)
	// Output:
	// attempt 1 booked: true
	// attempt 2 booked: false
	// balance 100 ended: <nil>
}
