package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// One stale claim among the answers that are settled together: the others are settled
// without it.
func TestUpdateRefusedByOneStaleClaim(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b", "c", "d")
		open := make(chan struct{})
		s.tap.before = func(call string) error {
			if strings.HasPrefix(call, "ack a") {
				<-open
			}
			return nil
		}
		hands := map[string]chan struct{}{}
		for _, id := range []string{"a", "b", "c", "d"} {
			hands[id] = make(chan struct{})
		}
		w := s.start(Options{Concurrency: 4}, func(_ context.Context, m *queue.Received[string]) error {
			<-hands[m.Value]
			return nil
		})
		for _, id := range []string{"a", "b", "c", "d"} {
			synctest.Wait()
			close(hands[id])
		}
		synctest.Wait()
		s.tap.made()
		taken := s.take("c")
		close(open)
		synctest.Wait()
		calls := slices.DeleteFunc(s.tap.made(), func(call string) bool { return call == "wait mail" })
		want(t, "store calls", calls, []string{"ack b, ack c, ack d, claim mail 4", "ack b, ack d, claim mail 4"})
		want(t, "events", s.seen(), []string{"acked a", "lost c", "acked b", "acked d"})
		want(t, "the lost answer", s.event(EventLost).Action, ActionAck)
		if err := s.store.Ack(t.Context(), taken); err != nil {
			t.Error(err)
		}
		w.wantStop()
		s.wantCounters("claimed 5, completed 4, reaped 1")
	})
}

// T15's kind: each store call fails in turn, a few times, for a reason that passes.
// Every message is settled in the end, once.
func TestTransientErrors(t *testing.T) {
	for _, op := range []string{"claim", "ack", "retry", "release", "extend", "reap", "wait"} {
		t.Run(op, func(t *testing.T) {
			inScene(t, func(s *scene) {
				var fails int
				s.tap.before = func(call string) (err error) {
					s.locked(func() {
						if strings.Contains(call, op) && fails < 3 {
							fails++
							err = errDisk
						}
					})
					return err
				}
				for i := range 6 {
					s.enqueue(fmt.Sprint(i))
				}
				first := map[string]bool{}
				w := s.start(Options{Concurrency: 2}, func(ctx context.Context, m *queue.Received[string]) error {
					var again bool
					s.locked(func() { again, first[m.Value] = first[m.Value], true })
					if again {
						return nil
					}
					switch m.Value {
					case "1":
						return errFlaky
					case "2":
						return Snooze(time.Minute)
					case "3":
						return sleep(ctx, 30*time.Second)
					}
					return nil
				})
				s.pass(5 * time.Minute)
				want(t, "faults", fails, 3)
				if n := len(s.seen(EventStoreFailed)); n < 2 || n > 3 {
					t.Errorf("%d failures told, want those faults that were not told by cutting a claim off", n)
				}
				w.wantStop()
				s.wantCounters("claimed 8, completed 6, retried 1, released 1")
				want(t, "lost or reaped", s.seen(EventLost, EventReaped, EventUnsettled), []string(nil))
			})
		})
	}
}

// A store that fails for good ends the worker after a bounded number of calls.
func TestWorkerGivesUp(t *testing.T) {
	for _, op := range []string{"claim", "ack", "extend", "wait"} {
		t.Run(op, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.tap.before = func(call string) error {
					if strings.HasPrefix(call, op) {
						return errDisk
					}
					return nil
				}
				s.enqueue("a")
				w := s.start(Options{StoreFailures: 5}, func(ctx context.Context, _ *queue.Received[string]) error {
					if op == "extend" {
						return sleep(ctx, time.Hour)
					}
					return nil
				})
				err := <-w.done
				var gave *StoreError
				if !errors.As(err, &gave) || !errors.Is(err, errDisk) || gave.Failures != 5 {
					t.Fatalf("Run: %v, want a StoreError after 5 failures", err)
				}
				op := strings.NewReplacer("ack", "settle", "extend", "renew").Replace(op)
				want(t, "call", gave.Op, op)
				var left *UnsettledError
				if got := errors.As(err, &left); got != (op == "settle") {
					t.Errorf("unsettled: %v, want it only where settling fails", err)
				}
				if op == "renew" {
					want(t, "released", s.seen(EventReleased), []string{"released a"})
				}
			})
		})
	}
}

// Some errors end the worker at once: no repetition can help.
func TestFatalErrors(t *testing.T) {
	errCorrupt := errors.New("the store is corrupt")
	for _, c := range []struct {
		name  string
		err   error
		fatal func(error) bool
		at    bool // at once
	}{
		{"closed", queue.ErrClosed, nil, true},
		{"invalid", &queue.UpdateError{Index: 0, Err: fmt.Errorf("x: %w", queue.ErrInvalidName)}, nil, true},
		{"unsupported", fmt.Errorf("update: %w", errors.ErrUnsupported), nil, true},
		{"named by the option", fmt.Errorf("state.json: %w", errCorrupt), func(err error) bool { return errors.Is(err, errCorrupt) }, true},
		{"not named", fmt.Errorf("state.json: %w", errCorrupt), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.tap.before = func(call string) error {
					if strings.HasPrefix(call, "claim") {
						return c.err
					}
					return nil
				}
				w := s.start(Options{Fatal: c.fatal}, func(context.Context, *queue.Received[string]) error { return nil })
				synctest.Wait()
				select {
				case err := <-w.done:
					if !c.at || !errors.Is(err, c.err) {
						t.Errorf("Run: %v", err)
					}
				default:
					if c.at {
						t.Error("the worker goes on")
					}
					w.wantStop()
				}
			})
		})
	}
}

func TestClosedStore(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		w := s.start(Options{}, func(ctx context.Context, _ *queue.Received[string]) error { return sleep(ctx, time.Minute) })
		s.pass(time.Second)
		s.store.Close()
		err := <-w.done
		var left *UnsettledError
		if !errors.Is(err, queue.ErrClosed) || !errors.As(err, &left) {
			t.Errorf("Run: %v, want ErrClosed and what is left", err)
		}
		if s.at() > 21*time.Second { // the renewal at 20 s meets it, or the reaping at 15 s
			t.Errorf("it took %s", s.at())
		}
	})
}

// A settlement that is refused for an odd reason waits alone, and is let go of in the
// end, in plain sight.
func TestSettlementRefusedOddly(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("odd", "b", "c")
		s.tap.before = func(call string) error {
			if i := strings.Index(call, "ack odd"); i >= 0 {
				return &queue.UpdateError{Index: strings.Count(call[:i], ","), Err: errDisk}
			}
			return nil
		}
		w := s.start(Options{Concurrency: 2, StoreFailures: 4}, func(context.Context, *queue.Received[string]) error { return nil })
		s.pass(10 * time.Second)
		want(t, "events", s.seen(EventAcked, EventLost), []string{"acked b", "acked c", "lost odd"})
		want(t, "why", s.event(EventLost).Err, errDisk)
		want(t, "told before", len(s.seen(EventStoreFailed)), 3)
		w.wantStop()
	})
}

// Fail finds a name that is free.
func TestFailNeverCollides(t *testing.T) {
	inScene(t, func(s *scene) {
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return Fail(errFlaky) })
		for range 2 {
			s.enqueue("a")
			synctest.Wait()
		}
		w.wantStop()
		s.wantCounters("claimed 2, failed 2")
		want(t, "events", s.seen(EventFailed), []string{"failed a", "failed a"})
		want(t, "the first name", s.events[1].FailedName, "a")
		if name := s.events[3].FailedName; !strings.HasPrefix(name, "a~") {
			t.Errorf("the second name: got %q, want a~ and the generation", name)
		}
	})
}

// Reapings that fail never end a worker by their number, only by a fatal error.
func TestReapingNeverGivesUp(t *testing.T) {
	inScene(t, func(s *scene) {
		s.tap.before = func(call string) error {
			if strings.HasPrefix(call, "reap") {
				return errDisk
			}
			return nil
		}
		w := s.start(Options{StoreFailures: 2}, func(context.Context, *queue.Received[string]) error { return nil })
		s.pass(time.Second)
		s.enqueue("a")
		s.pass(5 * time.Minute)
		want(t, "events", s.seen(EventAcked), []string{"acked a"})
		last := s.events[len(s.events)-1]
		want(t, "the last of them", fmt.Sprint(last.Kind, " ", last.Op, " ", last.Delay), "store failed reap 15s")
		if n := last.Count; n < 10 || n > 40 {
			t.Errorf("%d reapings failed in 5 minutes, want them spaced by 15 s in the end", n)
		}
		w.wantStop()
	})
	inScene(t, func(s *scene) {
		s.tap.before = func(call string) error {
			if strings.HasPrefix(call, "reap") {
				return queue.ErrClosed
			}
			return nil
		}
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return nil })
		var gave *StoreError
		if err := <-w.done; !errors.As(err, &gave) || gave.Op != "reap" || gave.Failures != 1 {
			t.Errorf("Run: %v, want a StoreError of the first reaping", err)
		}
	})
}

// A panic of Fatal says nothing about the error: the worker goes on.
func TestFatalThatPanics(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		fails := 0
		s.tap.before = func(call string) error {
			if fails++; fails < 3 {
				return errDisk
			}
			return nil
		}
		var log bytes.Buffer
		o := s.options(Options{Fatal: func(error) bool { panic("no idea") }})
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](s.tap, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, o)
		})
		s.pass(time.Second)
		w.wantStop()
		want(t, "events", s.seen(EventAcked, EventStoreFailed), []string{"store failed", "store failed", "acked a"})
		if !strings.Contains(log.String(), `msg="worker: the option Fatal panicked" panic="no idea"`) {
			t.Errorf("log: %s", log.String())
		}
	})
}
