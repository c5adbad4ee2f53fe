//go:build unix

package holdfast

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

var trial13Messages = flag.Int("trial13.messages", 400, "messages of trial 13, which asks for 10000")

func init() { roles["trial 13 worker"] = trial13Worker }

// trial13Worker works with four slots until SIGTERM. Of the messages 5 % fail once and
// 1 % panic once.
func trial13Worker(args []string) error {
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("ready")
	return worker.Run(ctx, queue.New[string](s, "mail"), func(_ context.Context, m *queue.Received[string]) error {
		switch n := crc32.ChecksumIEEE([]byte(m.Receipt.ID)) % 100; {
		case m.Attempt() > 1:
		case n < 5:
			return errors.New("no luck")
		case n < 6:
			panic("a bug")
		}
		return nil
	}, worker.Options{
		Concurrency: 4, Fatal: NeedsOperator, Logger: slog.New(slog.DiscardHandler),
		Retry: worker.RetryPolicy{Base: time.Millisecond, Max: time.Millisecond},
	})
}

// T13: eight slots in two processes, while a third asks for the status again and
// again: in every snapshot the gauges add up, and complete comes after the last
// settlement and not before.
func TestTrial13EverySnapshotAddsUp(t *testing.T) {
	s, dir := newTestStore(t, nil)
	ctx := t.Context()
	n := uint64(*trial13Messages)
	var ms []queue.Message
	for i := range n {
		ms = append(ms, queue.Message{ID: fmt.Sprintf("m%05d", i), Payload: []byte(`"x"`)})
	}
	mustEnqueue(t, s, "mail", ms...)
	var workers []*process
	for range 2 {
		w := start(t, "trial 13 worker", dir)
		w.Line(t) // it listens to SIGTERM
		workers = append(workers, w)
	}
	snapshots := 0
	for {
		st, err := s.Status(ctx, queue.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		snapshots++
		q := st.Queues["mail"]
		c := q.Counters
		if q.Pending != q.Ready+q.Scheduled+q.Blocked || c.Enqueued-c.Completed-c.Failed != q.Unacked() || c.Claimed-c.Completed-c.Retried != q.Processing {
			t.Fatalf("snapshot %d does not add up: %+v", snapshots, q)
		}
		if st.Complete() != (c.Completed == n) {
			t.Fatalf("snapshot %d is complete: %v, with %d of %d completed", snapshots, st.Complete(), c.Completed, n)
		}
		if st.Complete() {
			break
		}
	}
	st, err := s.Status(ctx, queue.StatusOptions{})
	if c := st.Queues["mail"].Counters; err != nil || c.Failed != 0 || c.Reaped != 0 || c.Claimed != c.Completed+c.Retried || c.Retried == 0 {
		t.Errorf("in the end: %+v %v", c, err)
	}
	t.Logf("%d messages, %d snapshots between them: %+v", n, snapshots, st.Queues["mail"].Counters)
	for _, w := range workers {
		mustDo(t, w.Cmd.Process.Signal(syscall.SIGTERM))
		if lines, err := w.Rest(); err != nil || len(lines) > 0 {
			t.Errorf("a worker: %q %v", lines, err)
		}
	}
}
