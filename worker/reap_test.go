package worker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// T09's kind: what a dead worker had comes back while another one runs, and the
// reaping is repeated while there is more than one call may end.
func TestReapsWhileRunning(t *testing.T) {
	inScene(t, func(s *scene) {
		for i := range 250 {
			s.enqueue(fmt.Sprint(i))
		}
		dead, err := s.store.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 250, Lease: 20 * time.Second})
		if err != nil || len(dead.Deliveries) != 250 {
			t.Fatal(err)
		}
		w := s.start(Options{Concurrency: 10}, func(context.Context, *queue.Received[string]) error { return nil })
		s.pass(DefaultReapEvery * 3 / 2)
		want(t, "reaped before the deadline", s.seen(EventReaped), []string(nil))
		s.tap.made()
		s.pass(DefaultReapEvery)
		want(t, "reaped after it", len(s.seen(EventReaped)), 250)
		reapings := 0
		for _, call := range s.tap.made() {
			if call == "reap mail" {
				reapings++
			}
		}
		want(t, "reapings", reapings, 3)
		w.wantStop()
		s.wantCounters("claimed 500, completed 250, reaped 250")
	})
}

// A message that kills its worker again and again goes to failed.
func TestCapOfLapses(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("killer")
		for range 3 {
			if _, err := s.store.Load(t.Context(), "mail", "killer", queue.LoadOptions{Lease: time.Second}); err != nil {
				t.Fatal(err)
			}
			s.pass(2 * time.Second)
		}
		w := s.start(Options{Retry: RetryPolicy{MaxLapses: 3}}, func(context.Context, *queue.Received[string]) error { return nil })
		synctest.Wait()
		w.wantStop()
		want(t, "failed name", s.event(EventReaped).FailedName, "killer")
		want(t, "lapses", s.event(EventReaped).Lapses, 3)
		want(t, "failed", s.status("mail").Failed, 1)
	})
}

// Should the worker reap a message of its own, it renews it before anything else: it
// has not lost it.
func TestReapsItsOwn(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](&hasty{tap: s.tap}, "mail"), func(ctx context.Context, _ *queue.Received[string]) error {
				return sleep(ctx, 30*time.Second)
			}, s.options(Options{Concurrency: 2}))
		})
		synctest.Wait()
		s.tap.made()
		s.pass(16 * time.Second)
		calls := s.tap.made()
		want(t, "store calls", calls[:2], []string{"reap mail", "extend a"})
		s.pass(time.Minute)
		want(t, "events", s.seen(EventReaped, EventLost, EventAcked), []string{"reaped a", "acked a"})
		w.wantStop()
	})
}

// A hasty store reaps a lease that is not over yet, the second time it is asked.
type hasty struct {
	*tap
	n int
}

func (h *hasty) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	returned, err := h.tap.Reap(ctx, o)
	if h.n++; h.n != 2 {
		return returned, err
	}
	e, err := h.tap.Show(ctx, "mail", "a")
	if err != nil {
		return nil, err
	}
	return h.tap.Store.Reap(ctx, queue.ReapOptions{Receipt: &e[0].Receipt})
}

// The interval is spread, so that workers started together do not reap together.
func TestReapingIsSpread(t *testing.T) {
	for _, c := range []struct {
		draw time.Duration
		want time.Duration
	}{{0, 13500 * time.Millisecond}, {1 << 62, 16500 * time.Millisecond}} {
		inScene(t, func(s *scene) {
			o := s.options(Options{})
			o.seams.draw = func(most time.Duration) time.Duration { return min(most, c.draw) }
			var at []time.Duration
			s.tap.before = func(call string) error {
				if call == "reap mail" {
					at = append(at, s.at())
				}
				return nil
			}
			w := s.run(func(ctx context.Context) error {
				return Run(ctx, queue.New[string](s.tap, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, o)
			})
			s.pass(20 * time.Second)
			w.wantStop()
			want(t, "reapings", at, []time.Duration{0, c.want})
		})
	}
}
