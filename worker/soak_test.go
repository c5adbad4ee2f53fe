package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// T13: eight slots of two workers, errors and panics, and somebody who polls the
// status all the time.
func TestManyMessages(t *testing.T) {
	const messages = 2000
	inScene(t, func(s *scene) {
		q := queue.New[int](s.tap, "mail")
		values := make([]int, messages)
		for i := range values {
			values[i] = i
		}
		if _, err := q.EnqueueBatch(context.Background(), values); err != nil {
			t.Fatal(err)
		}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		draw := rand.New(rand.NewPCG(seed, 0))
		done := map[int]int{}
		h := func(ctx context.Context, m *queue.Received[int]) error {
			var luck int
			s.locked(func() { luck = draw.IntN(100) })
			if err := sleep(ctx, time.Duration(luck)*time.Millisecond); err != nil {
				return err
			}
			switch {
			case luck < 5:
				return errFlaky
			case luck == 5:
				panic("out of luck")
			}
			s.locked(func() { done[m.Value]++ })
			return nil
		}
		var workers []*worked
		for range 2 {
			workers = append(workers, s.run(func(ctx context.Context) error {
				return Run(ctx, q, h, s.options(Options{Concurrency: 4, Retry: RetryPolicy{Base: time.Second, Max: 10 * time.Second}}))
			}))
		}
		polls := 0
		for st := s.status("mail"); ; st = s.status("mail") {
			polls++
			c := st.Counters
			if c.Enqueued-c.Completed-c.Failed != st.Unacked() || st.Ready+st.Scheduled+st.Blocked != st.Pending || st.Processing > 8 {
				t.Fatalf("poll %d: the gauges do not add up: %+v", polls, st)
			}
			if st.Complete() {
				if c.Completed != messages {
					t.Errorf("complete with %d of %d settled", c.Completed, messages)
				}
				break
			}
			time.Sleep(7 * time.Millisecond)
		}
		synctest.Wait()
		for _, w := range workers {
			w.wantStop()
		}
		for i := range messages {
			if done[i] != 1 {
				t.Errorf("message %d done %d times", i, done[i])
			}
		}
		c := s.status("mail").Counters
		if c.Claimed != c.Completed+c.Retried || c.Retried == 0 || polls < 100 {
			t.Errorf("counters %+v after %d polls", c, polls)
		}
		want(t, "events", fmt.Sprint(len(s.seen(EventAcked)), len(s.seen(EventRetried)), len(s.seen(EventLost, EventStuck, EventReaped))),
			fmt.Sprint(messages, c.Retried, 0))
	})
}
