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

func TestRenewalsShareACommit(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b", "c")
		w := s.start(Options{Concurrency: 4, ReapEvery: time.Hour}, func(ctx context.Context, _ *queue.Received[string]) error {
			return sleep(ctx, 70*time.Second)
		})
		s.pass(10 * time.Second)
		s.enqueue("d") // claimed later, renewed with the others
		synctest.Wait()
		s.tap.made()
		s.pass(55 * time.Second)
		one := "extend a, extend b, extend c, extend d"
		want(t, "store calls from 10 s to 65 s", s.tap.made(), []string{one, one, one})
		w.wantStop()
		want(t, "lost", s.seen(EventLost, EventReaped), []string(nil))
		s.wantCounters("claimed 4, completed 4")
	})
}

// A claim that is lost is refused; the others are renewed at once, without it.
func TestRenewalRefusedByOne(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b", "c")
		w := s.start(Options{Concurrency: 3, ReapEvery: time.Hour}, func(ctx context.Context, _ *queue.Received[string]) error {
			return sleep(ctx, 50*time.Second)
		})
		synctest.Wait()
		s.take("b")
		s.tap.made()
		s.pass(30 * time.Second)
		want(t, "store calls", s.tap.made(), []string{"extend a, extend b, extend c", "extend a, extend c", "claim mail 1", "wait mail"})
		s.pass(30 * time.Second)
		want(t, "events of the lost one", s.seen(EventLost, EventDropped), []string{"lost b", "dropped b"})
		want(t, "the others", len(s.seen(EventAcked)), 2)
		w.wantStop()
	})
}

// A handler that ignores the loss of its lease holds its slot and nothing else.
func TestLostAndStuck(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		free := make(chan struct{})
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { <-free; return nil })
		synctest.Wait()
		taken := s.take("a")
		s.pass(time.Minute)
		want(t, "events", s.seen(), []string{"lost a", "stuck a"})
		want(t, "what it is blamed for", errors.Is(s.event(EventStuck).Err, queue.ErrLost), true)
		if err := s.store.Ack(t.Context(), taken); err != nil {
			t.Error(err)
		}
		close(free)
		synctest.Wait()
		want(t, "events", s.seen(), []string{"lost a", "stuck a", "dropped a"})
		w.wantStop()
	})
}

// Until the store says that a lease is lost it may still be ours, and the work goes on.
func TestRenewalFailsForAWhile(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		s.tap.before = func(call string) error {
			if call == "extend a" {
				return errDisk
			}
			return nil
		}
		w := s.start(Options{ReapEvery: time.Second}, func(ctx context.Context, _ *queue.Received[string]) error {
			return sleep(ctx, 5*time.Minute)
		})
		s.pass(2 * time.Minute) // longer than the lease
		s.tap.heal()
		s.pass(4 * time.Minute)
		w.wantStop()
		for _, kind := range []EventKind{EventReaped, EventLost} { // it did not reap its own
			want(t, string(kind), s.seen(kind), []string(nil))
		}
		want(t, "in the end", s.seen(EventAcked), []string{"acked a"})
		if n := len(s.seen(EventStoreFailed)); n < 8 || n > 14 {
			t.Errorf("%d failures told in 100 s, want about 10: they are spaced", n)
		}
		s.wantCounters("claimed 1, completed 1")
	})
}

// A store so slow that a renewal is owed again when one returns still gets settled.
func TestSlowStoreIsSettledAllTheSame(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("long", "short")
		s.tap.before = func(string) error { time.Sleep(25 * time.Second); return nil }
		w := s.start(Options{Concurrency: 2}, func(ctx context.Context, m *queue.Received[string]) error {
			if m.Value == "short" {
				return nil
			}
			return sleep(ctx, 10*time.Minute)
		})
		s.pass(3 * time.Minute)
		want(t, "settled", s.seen(EventAcked), []string{"acked short"})
		s.pass(10 * time.Minute)
		want(t, "settled in the end", s.seen(EventAcked, EventLost), []string{"acked short", "acked long"})
		s.tap.heal()
		w.wantStop()
	})
}

// A lease is counted from before the call that gave it: the store may have read its
// clock at once and answered late.
func TestLeaseIsCountedFromTheBeginOfItsCall(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		var at []time.Duration
		s.tap.before = func(call string) error {
			switch call {
			case "extend a":
				s.locked(func() { at = append(at, s.at()) })
				fallthrough
			case "claim mail 1":
				time.Sleep(15 * time.Second)
			}
			return nil
		}
		w := s.start(Options{ReapEvery: time.Hour}, func(ctx context.Context, _ *queue.Received[string]) error { return sleep(ctx, time.Minute) })
		s.pass(70 * time.Second)
		want(t, "renewals begun", at, []time.Duration{20 * time.Second, 40 * time.Second, 60 * time.Second})
		s.tap.heal()
		w.wantStop()
	})
}

// The lease of an answer that the store does not take yet is kept alive too.
func TestUnsettledAnswerIsRenewed(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		s.tap.before = func(call string) error {
			if strings.HasPrefix(call, "ack") {
				return errDisk
			}
			return nil
		}
		w := s.start(Options{ReapEvery: time.Second, StoreFailures: -1}, func(context.Context, *queue.Received[string]) error { return nil })
		s.pass(3 * time.Minute)
		s.tap.heal()
		s.pass(time.Minute)
		want(t, "events", s.seen(EventReaped, EventLost, EventAcked), []string{"acked a"})
		w.wantStop()
		s.wantCounters("claimed 1, completed 1")
	})
}

// A renewal may be what finds out that an uncertain settlement has happened.
func TestRenewalSettlesADoubt(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		acks := 0
		s.tap.before = func(call string) error {
			if strings.HasPrefix(call, "ack") {
				if acks++; acks > 1 {
					return errDisk
				}
			}
			return nil
		}
		s.tap.after = func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error) {
			if strings.HasPrefix(call, "ack") {
				return nil, &queue.UncertainError{Outcomes: outs, Err: errDisk}
			}
			return outs, err
		}
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return nil })
		s.pass(30 * time.Second)
		want(t, "events", s.seen(EventLost, EventAcked), []string{"acked a"})
		w.wantStop()
	})
}
