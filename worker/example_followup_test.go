//go:build unix

package worker_test

import (
	"context"
	"fmt"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

// One message leads to others: an order that was packed has its mail sent. The ack and
// the follow-up are one commit, so that a crash at any moment leaves either the order to
// be packed again or the mail to be sent, and never both or none.
func Example_followUp() {
	store, done := openStore()
	defer done()
	orders, mails := queue.New[string](store, "orders"), queue.New[string](store, "mails")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	if _, err := orders.Enqueue(ctx, "two hats", queue.EnqueueOptions{ID: "order-7"}); err != nil {
		fmt.Println(err)
		return
	}
	go stopWhenComplete(ctx, store, stop)

	g := worker.NewGroup(store, worker.GroupOptions{Logger: quick.Logger})
	worker.Add(g, orders, func(_ context.Context, m *queue.Received[string]) error {
		fmt.Println("packing", m.Value)
		mail, err := mails.Message(m.Value+" are on their way", queue.EnqueueOptions{ID: m.Receipt.ID})
		if err != nil {
			return worker.Fail(err)
		}
		return worker.AckWith(queue.EnqueueChange{Queue: mails.Name(), Message: mail})
	}, worker.QueueOptions{Retry: quick.Retry})
	worker.Add(g, mails, func(_ context.Context, m *queue.Received[string]) error {
		fmt.Println("mail of", m.Receipt.ID+":", m.Value)
		return nil
	}, worker.QueueOptions{Retry: quick.Retry})
	fmt.Println("ended:", g.Run(ctx))
	// Output:
	// packing two hats
	// mail of order-7: two hats are on their way
	// ended: <nil>
}
