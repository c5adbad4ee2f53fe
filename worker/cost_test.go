package worker

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"example.com/holdfast/queue"
)

// A spring is a store that costs nothing: so many messages flow from it, and every
// settlement is taken.
type spring struct {
	queue.Store
	left int
}

func (s *spring) Reap(context.Context, queue.ReapOptions) ([]queue.Returned, error) { return nil, nil }

func (s *spring) WaitDue(ctx context.Context, _ ...string) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *spring) Update(_ context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
	outs := make([]queue.Outcome, len(changes))
	for i, c := range changes {
		if c, ok := c.(queue.ClaimChange); ok {
			ds := make([]queue.Delivery, min(c.Options.Max, s.left))
			for i := range ds {
				s.left--
				ds[i] = queue.Delivery{Receipt: queue.Receipt{Queue: c.Queue, ID: "m", Attempt: 1}, Payload: []byte("1")}
			}
			outs[i].Claimed.Deliveries = ds
		}
	}
	return outs, nil
}

// What a worker allocates for each message, handler and decoding included, beside what
// the store does. Measured were 31 and 25.
func TestAllocationsForEachMessage(t *testing.T) {
	const messages = 6400
	for _, c := range []struct {
		slots, most int
	}{{1, 36}, {64, 32}} {
		ctx, cancel := context.WithCancel(t.Context())
		acked := 0
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Run(ctx, queue.New[int](&spring{left: messages}, "mail"), func(context.Context, *queue.Received[int]) error { return nil }, Options{
			Concurrency: c.slots,
			Logger:      slog.New(slog.DiscardHandler),
			Observe: func(e Event) {
				if e.Kind == EventAcked {
					if acked++; acked == messages {
						cancel()
					}
				}
			},
		})
		runtime.ReadMemStats(&after)
		cancel()
		each := (after.Mallocs - before.Mallocs) / messages
		if t.Logf("%d slots: %d allocations for each message", c.slots, each); err != nil || each > uint64(c.most) {
			t.Errorf("%d slots: %d allocations for each message, want %d at most; %v", c.slots, each, c.most, err)
		}
	}
}
