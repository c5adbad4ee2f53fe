package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

func TestTimeLimit(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("obeys", "done-all-the-same")
		var cause error
		w := s.start(Options{Timeout: time.Second, Retry: RetryPolicy{Base: time.Hour}}, func(ctx context.Context, m *queue.Received[string]) error {
			deadline, ok := ctx.Deadline()
			if want := time.Now().Add(time.Second); !ok || !deadline.Equal(want) {
				t.Errorf("deadline %s, want %s", deadline, want)
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			if m.Value == "obeys" {
				return ctx.Err()
			}
			return nil
		})
		s.pass(3 * time.Second)
		w.wantStop()
		want(t, "events", s.seen(), []string{"retried obeys", "acked done-all-the-same", "draining"})
		want(t, "cause of the context", cause, ErrTimeout)
		e, err := s.store.Show(t.Context(), "mail", "obeys")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "last error", e[0].LastError, "the handler's time limit is over: context deadline exceeded")
		want(t, "elapsed", s.event(EventRetried).Elapsed, time.Second)
	})
}

// A handler that ignores its time limit keeps its slot and loses its lease: the message
// comes back and is done by another slot.
func TestStuckHandler(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("wedge")
		free := make(chan struct{})
		calls := 0
		w := s.start(Options{Concurrency: 2, Timeout: 30 * time.Second}, func(_ context.Context, m *queue.Received[string]) error {
			first := false
			s.locked(func() { calls++; first = calls == 1 })
			if first {
				<-free
				return errors.New("too late")
			}
			return nil
		})
		s.pass(40*time.Second - 1)
		want(t, "events within the grace", s.seen(), []string(nil))
		s.pass(1)
		want(t, "events after it", s.seen(), []string{"stuck wedge"})
		want(t, "what it is blamed for", s.event(EventStuck).Err, ErrTimeout)
		want(t, "renewals before it", len(s.seen(EventRenewed)), 1)
		s.tap.made()
		s.pass(2 * time.Minute)
		want(t, "events when the lease is over", s.seen(), []string{"stuck wedge", "reaped wedge", "acked wedge"})
		for _, call := range s.tap.made() {
			if strings.Contains(call, "extend") || strings.HasSuffix(call, "claim mail 2") && !strings.HasPrefix(call, "ack") {
				t.Errorf("call %q after the handler was found stuck", call)
			}
		}
		close(free)
		synctest.Wait()
		want(t, "events in the end", s.seen(), []string{"stuck wedge", "reaped wedge", "acked wedge", "lost wedge"})
		want(t, "what the late answer asked for", s.event(EventLost).Action, ActionRetry)
		s.enqueue("next-1", "next-2")
		synctest.Wait()
		want(t, "both slots are free", len(s.seen(EventAcked)), 3)
		w.wantStop()
		s.wantCounters("claimed 4, completed 3, reaped 1")
	})
}

// The answer of a stuck handler counts when it comes before the lease is over.
func TestStuckHandlerThatReturns(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("slow")
		w := s.start(Options{Timeout: time.Second}, func(context.Context, *queue.Received[string]) error {
			time.Sleep(15 * time.Second)
			return nil
		})
		s.pass(20 * time.Second)
		want(t, "events", s.seen(), []string{"stuck slow", "acked slow"})
		w.wantStop()
	})
}

// T04: the lease is over, another worker has the message. This one learns of it by its
// renewal, or by its settlement.
func TestLostLease(t *testing.T) {
	for _, c := range []struct {
		name   string
		h      Handler[string]
		events []string
	}{
		{"found by the renewal", func(ctx context.Context, _ *queue.Received[string]) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), queue.ErrStale) {
				t.Errorf("cause %v, want ErrStale", context.Cause(ctx))
			}
			return errFlaky
		}, []string{"lost a", "dropped a", "acked b"}},
		{"found by the settlement", func(context.Context, *queue.Received[string]) error {
			time.Sleep(10 * time.Second)
			return errFlaky
		}, []string{"lost a", "acked b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.enqueue("a")
				w := s.start(Options{}, func(ctx context.Context, m *queue.Received[string]) error {
					if m.Value == "b" {
						return nil
					}
					return c.h(ctx, m)
				})
				synctest.Wait()
				taken := s.take("a")
				s.enqueue("b")
				s.pass(time.Minute)
				want(t, "events", s.seen(), c.events)
				want(t, "lost to", errors.Is(s.event(EventLost).Err, queue.ErrStale), true)
				if err := s.store.Ack(t.Context(), taken); err != nil {
					t.Errorf("ack of the other worker: %v", err)
				}
				w.wantStop()
				s.wantCounters("claimed 3, completed 2, reaped 1")
			})
		})
	}
}

// take gives a message that a worker has to another one.
func (s *scene) take(id string) queue.Receipt {
	s.t.Helper()
	e, err := s.store.Show(s.t.Context(), "mail", id)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.store.Reap(s.t.Context(), queue.ReapOptions{Receipt: &e[0].Receipt}); err != nil {
		s.t.Fatal(err)
	}
	d, err := s.store.Load(s.t.Context(), "mail", id, queue.LoadOptions{Lease: time.Hour})
	if err != nil {
		s.t.Fatal(err)
	}
	return d.Receipt
}

// A handler that ignores the end of the drain is told of for that, where the grace is
// over first.
func TestStuckInDrain(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		free := make(chan struct{})
		w := s.start(Options{Grace: 500 * time.Millisecond}, func(context.Context, *queue.Received[string]) error { <-free; return nil })
		synctest.Wait()
		w.wantStop()
		want(t, "events", s.seen(), []string{"draining", "stuck a", "released a"})
		want(t, "what it is blamed for", s.event(EventStuck).Err, ErrDraining)
		close(free)
	})
}
