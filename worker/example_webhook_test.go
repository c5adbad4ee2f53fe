//go:build unix

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

type webhook struct {
	URL  string `json:"url"`
	Body string `json:"body"`
}

// A spool of webhooks: what is to be sent survives a crash, and is sent until the
// other side takes it. The message's ID is the idempotency key, for it may be sent
// twice: the process can die between the answer and the ack.
func Example_webhookSpool() {
	store, done := openStore()
	defer done()
	hooks := queue.New[webhook](store, "webhooks")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Println("received", r.Header.Get("Idempotency-Key"))
	}))
	defer server.Close()

	if _, err := hooks.Enqueue(ctx, webhook{URL: server.URL, Body: "paid"}, queue.EnqueueOptions{ID: "invoice-7"}); err != nil {
		fmt.Println(err)
		return
	}
	go stopWhenComplete(ctx, store, stop)

	err := worker.Run(ctx, hooks, func(ctx context.Context, m *queue.Received[webhook]) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Value.URL, strings.NewReader(m.Value.Body))
		if err != nil {
			return worker.Fail(err) // no repetition can help
		}
		req.Header.Set("Idempotency-Key", m.Receipt.ID)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		answer.Body.Close()
		switch {
		case answer.StatusCode < 300:
			return nil
		case answer.StatusCode < 500:
			return worker.Fail(errors.New(answer.Status))
		}
		fmt.Println("not yet:", answer.Status)
		return errors.New(answer.Status)
	}, quick)
	fmt.Println("ended:", err)
	// Output:
	// not yet: 503 Service Unavailable
	// received invoice-7
	// ended: <nil>
}
