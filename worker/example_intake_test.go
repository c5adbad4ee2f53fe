//go:build unix

package worker_test

import (
	"context"
	"fmt"
	"strconv"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

type update struct {
	Offset int    `json:"offset"`
	Chat   int    `json:"chat"`
	Text   string `json:"text"`
}

// updates stands for a chat service that gives what comes behind an offset, again and
// again until it is asked for what comes behind that.
func updates(after int) []update {
	var all = []update{{1, 42, "hello"}, {2, 7, "hi"}, {3, 42, "are you there?"}}
	return all[min(after, len(all)):]
}

// The intake of a chat bot. A batch and the offset behind it are one commit, so a
// crash neither loses an update nor takes one twice. Each chat is a key: its updates are
// answered in order and one at a time, while other chats go on.
func Example_chatBotIntake() {
	store, done := openStore()
	defer done()
	inbox := queue.New[update](store, "bot/inbox")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	intake := func() error {
		cursor, err := store.Cursor(ctx, inbox.Name())
		if err != nil {
			return err
		}
		offset, _ := strconv.Atoi(cursor) // none yet: from the start
		var changes []queue.Change
		for _, u := range updates(offset) {
			m, err := inbox.Message(u, queue.EnqueueOptions{Key: fmt.Sprint("chat-", u.Chat)})
			if err != nil {
				return err
			}
			changes = append(changes, queue.EnqueueChange{Queue: inbox.Name(), Message: m})
			offset = u.Offset
		}
		if changes == nil {
			return nil
		}
		changes = append(changes, queue.CursorChange{Queue: inbox.Name(), Cursor: strconv.Itoa(offset)})
		_, err = store.Update(ctx, changes...)
		return err
	}
	for range 2 { // the second time nothing is new
		if err := intake(); err != nil {
			fmt.Println(err)
			return
		}
	}
	status, err := store.Status(ctx, queue.StatusOptions{Queues: []string{inbox.Name()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("taken in:", status.Queues[inbox.Name()].Counters.Enqueued)

	go stopWhenComplete(ctx, store, stop)
	answers := make(chan string, 3)
	o := quick
	o.Concurrency = 4
	err = worker.Run(ctx, inbox, func(_ context.Context, m *queue.Received[update]) error {
		if m.Value.Chat == 42 {
			answers <- m.Value.Text
		}
		return nil
	}, o)
	close(answers)
	for text := range answers {
		fmt.Println("chat 42:", text)
	}
	fmt.Println("ended:", err)
	// Output:
	// taken in: 3
	// chat 42: hello
	// chat 42: are you there?
	// ended: <nil>
}
