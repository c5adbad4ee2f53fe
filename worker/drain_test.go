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

func TestDrainLetsHandlersFinish(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b", "c")
		w := s.start(Options{Concurrency: 2}, func(ctx context.Context, _ *queue.Received[string]) error { return sleep(ctx, 15*time.Second) })
		synctest.Wait()
		s.tap.made()
		w.wantStop()
		want(t, "took", s.at(), 15*time.Second)
		want(t, "events", len(s.seen(EventAcked)), 2)
		for _, call := range s.tap.made() {
			if strings.Contains(call, "claim") || strings.Contains(call, "reap") {
				t.Errorf("call %q while draining", call)
			}
		}
		want(t, "handlers told of", s.event(EventDraining).Count, 2)
		s.wantCounters("claimed 2, completed 2")
		want(t, "left", s.status("mail").Pending, 1)
	})
}

// What is not done when the drain is over goes back, excused and due at once.
func TestDrainEnds(t *testing.T) {
	deaf := make(chan struct{})
	for _, c := range []struct {
		name   string
		h      Handler[string]
		took   time.Duration
		events []string
	}{
		{"a handler that obeys", func(ctx context.Context, _ *queue.Received[string]) error {
			<-ctx.Done()
			if context.Cause(ctx) != ErrDraining {
				t.Errorf("cause %v, want ErrDraining", context.Cause(ctx))
			}
			return ctx.Err()
		}, 20 * time.Second, []string{"draining", "released a"}},
		{"a handler that fails for that reason", func(ctx context.Context, _ *queue.Received[string]) error {
			return Fail(sleep(ctx, time.Hour))
		}, 20 * time.Second, []string{"draining", "released a"}},
		{"a handler that ends its work", func(ctx context.Context, _ *queue.Received[string]) error {
			<-ctx.Done()
			time.Sleep(900 * time.Millisecond)
			return nil
		}, 20900 * time.Millisecond, []string{"draining", "acked a"}},
		{"a handler that does not listen", func(ctx context.Context, _ *queue.Received[string]) error {
			<-deaf
			return nil
		}, 21 * time.Second, []string{"draining", "released a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				deaf = make(chan struct{})
				s.enqueue("a")
				w := s.start(Options{}, c.h)
				synctest.Wait()
				w.wantStop()
				want(t, "took", s.at(), c.took)
				want(t, "events", s.seen(), c.events)
				close(deaf)
				if st := s.status("mail"); c.events[1] == "released a" && (st.Ready != 1 || st.Counters.Released != 1) {
					t.Errorf("status %+v, want it ready again", st)
				}
				if c.events[1] == "released a" {
					e, err := s.store.Show(t.Context(), "mail", "a")
					if err != nil {
						t.Fatal(err)
					}
					want(t, "attempts and excused", [2]uint64{e[0].Attempts, e[0].Excused}, [2]uint64{1, 1})
				}
			})
		})
	}
}

func TestDrainAtOnce(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		w := s.start(Options{Drain: -1}, func(ctx context.Context, _ *queue.Received[string]) error { return sleep(ctx, time.Hour) })
		synctest.Wait()
		w.wantStop()
		want(t, "took", s.at(), 0*time.Second)
		want(t, "events", s.seen(), []string{"draining", "released a"})
	})
}

// A drain is longer than a lease: renewals go on in it.
func TestDrainKeepsLeases(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		w := s.start(Options{Drain: 5 * time.Minute}, func(ctx context.Context, _ *queue.Received[string]) error { return sleep(ctx, 4*time.Minute) })
		synctest.Wait()
		w.cancel()
		s.pass(3 * time.Minute)
		if reaped, err := s.store.Reap(t.Context(), queue.ReapOptions{}); len(reaped) > 0 || err != nil {
			t.Errorf("reaped %v, %v; want nothing to reap", reaped, err)
		}
		w.wantStop()
		s.wantCounters("claimed 1, completed 1")
	})
}

// A stuck handler is not waited for.
func TestDrainWithStuckHandler(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		free := make(chan struct{})
		w := s.start(Options{Timeout: time.Second}, func(context.Context, *queue.Received[string]) error { <-free; return nil })
		s.pass(12 * time.Second)
		w.wantStop()
		want(t, "took", s.at(), 12*time.Second)
		want(t, "events", s.seen(), []string{"stuck a", "draining", "released a"})
		close(free)
	})
}

// The claim of a commit that was under way when the drain began goes back.
func TestDrainDuringAClaim(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b")
		var w *worked
		known := make(chan struct{})
		s.tap.after = func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error) {
			if call == "ack a, claim mail 1" {
				<-known
				w.cancel()
				time.Sleep(time.Second)
			}
			return outs, err
		}
		w = s.start(Options{}, func(context.Context, *queue.Received[string]) error { return nil })
		close(known)
		s.pass(2 * time.Second)
		w.wantStop()
		want(t, "events", s.seen(), []string{"draining", "acked a", "released b"})
		s.wantCounters("claimed 2, completed 1, released 1")
	})
}

// The final ack never uses the cancelled context: one that was cut off with its claim
// is made again without it.
func TestFinalAckIsNotCancelled(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b")
		var w *worked
		known := make(chan struct{})
		s.tap.before = func(call string) error {
			if call == "ack a, claim mail 1" {
				<-known
				w.cancel()
				time.Sleep(time.Second)
				return context.Canceled
			}
			return nil
		}
		w = s.start(Options{}, func(context.Context, *queue.Received[string]) error { return nil })
		close(known)
		s.pass(2 * time.Second)
		w.wantStop()
		want(t, "store calls", s.tap.made(), []string{"reap mail", "claim mail 1", "ack a, claim mail 1", "ack a"})
		want(t, "events", s.seen(), []string{"draining", "acked a"})
	})
}

// A store that takes nothing any more is given ten seconds, and then Run says so.
func TestDrainWithoutSettlement(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		s.tap.before = func(call string) error {
			if strings.HasPrefix(call, "ack") || strings.HasPrefix(call, "extend") {
				return errDisk
			}
			return nil
		}
		w := s.start(Options{}, func(ctx context.Context, _ *queue.Received[string]) error { return sleep(ctx, time.Second) })
		synctest.Wait()
		err := w.stop()
		var left *UnsettledError
		if !errors.As(err, &left) || !errors.Is(err, errDisk) || len(left.Receipts) != 1 || left.Receipts[0].ID != "a" || left.Cause != nil {
			t.Errorf("Run: %v, want an UnsettledError of a", err)
		}
		want(t, "took", s.at(), 11*time.Second)
		want(t, "unsettled", s.event(EventUnsettled).Action, ActionAck)
		if n := len(s.seen(EventStoreFailed)); n < 7 || n > 12 {
			t.Errorf("%d tries told of, want about 8: they are spaced", n)
		}
	})
}

// A call that hangs is cut off at the end of the bound.
func TestDrainWithStoreThatHangs(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](wedged{s.tap}, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, s.options(Options{}))
		})
		s.pass(time.Second)
		err := w.stop()
		var left *UnsettledError
		if !errors.As(err, &left) {
			t.Errorf("Run: %v, want an UnsettledError", err)
		}
		want(t, "took", s.at(), 11*time.Second)
	})
}

// A wedged store answers no settlement before its context ends.
type wedged struct{ *tap }

func (w wedged) Update(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
	if _, ok := changes[0].(queue.AckChange); ok {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return w.tap.Update(ctx, changes...)
}

func TestCancelledBeforeItBegins(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := Run(ctx, queue.New[string](s.tap, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, s.options(Options{}))
		if err != nil {
			t.Error(err)
		}
		want(t, "store calls", s.tap.made(), []string(nil))
	})
}
