package worker

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// T30: the clock steps, or the machine sleeps, while messages are held.
func TestJumps(t *testing.T) {
	for _, c := range []struct {
		name string
		by   time.Duration
	}{
		{"a suspend of 120 s", 120 * time.Second},
		{"one hour forward", time.Hour},
		{"one hour back", -time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.enqueue("ours")
				s.put("mail", "theirs", "")
				w := s.start(Options{}, func(ctx context.Context, _ *queue.Received[string]) error { return sleep(ctx, 5*time.Minute) })
				synctest.Wait()
				other, err := s.store.Claim(t.Context(), "mail", queue.ClaimOptions{Lease: time.Minute})
				if err != nil || len(other.Deliveries) != 1 {
					t.Fatal(other, err)
				}
				s.pass(8 * time.Second)
				s.jump(c.by)
				s.tap.made()
				s.pass(10 * time.Second) // a reaping would be due at 15 s
				synctest.Wait()
				want(t, "store calls after the jump", s.tap.made(), []string{"extend ours"})
				want(t, "jump told", s.event(EventJumped).Delay, c.by)
				// The other one renews too, a little later.
				s.pass(20 * time.Second)
				if _, err := s.store.Extend(t.Context(), other.Deliveries[0].Receipt, time.Minute); err != nil {
					t.Fatal(err)
				}
				s.pass(40 * time.Second)
				if calls := s.tap.made(); !slices.Contains(calls, "reap mail") {
					t.Errorf("calls %v, want a reaping one lease after the jump", calls)
				}
				want(t, "reaped or lost", s.seen(EventReaped, EventLost), []string(nil))
				if err := s.store.Ack(t.Context(), other.Deliveries[0].Receipt); err != nil {
					t.Error(err)
				}
				s.pass(4 * time.Minute)
				w.wantStop()
				s.wantCounters("claimed 2, completed 2")
			})
		})
	}
}

// A jump while a claim is on its way: what it brings is renewed before anything else.
func TestJumpDuringAClaim(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		s.tap.after = func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error) {
			if call == "claim mail 1" {
				s.jump(2 * time.Minute)
			}
			return outs, err
		}
		w := s.start(Options{}, func(ctx context.Context, _ *queue.Received[string]) error { return sleep(ctx, 5*time.Second) })
		synctest.Wait()
		want(t, "store calls", s.tap.made(), []string{"reap mail", "claim mail 1", "extend a"})
		s.pass(time.Minute)
		w.wantStop()
		s.wantCounters("claimed 1, completed 1")
	})
}

// A jump that an idle worker sees only when it is about to reap.
func TestJumpBeforeReaping(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("theirs")
		if _, err := s.store.Claim(t.Context(), "mail", queue.ClaimOptions{Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return nil })
		synctest.Wait()
		s.jump(time.Hour)
		s.tap.made()
		s.pass(DefaultLease)
		for _, call := range s.tap.made() {
			if strings.HasPrefix(call, "reap") {
				t.Error("reaped within a lease of the jump")
			}
		}
		s.pass(DefaultReapEvery)
		want(t, "reaped in the end", s.seen(EventReaped), []string{"reaped theirs"})
		w.wantStop()
	})
}

// The loop woke long after its timer: the process was stopped. Reaping waits a lease.
func TestStoppedProcess(t *testing.T) {
	w := &worker{o: GroupOptions{Logger: slog.New(slog.DiscardHandler)}, lease: time.Minute}
	var err error
	if w.o, err = w.o.checked(); err != nil {
		t.Fatal(err)
	}
	w.base = t.Context()
	var told []time.Duration
	w.o.Observe = func(e Event) { told = append(told, e.Delay.Round(time.Second)) }
	start := time.Now()
	for _, c := range []struct {
		name string
		wake time.Duration // the timer, from the last turn
		away time.Duration // what the turn took
		put  bool
	}{
		{"in time", time.Minute, time.Minute, false},
		{"a little late", time.Minute, 79 * time.Second, false},
		{"a third of a lease late", time.Minute, 80 * time.Second, true},
		{"no timer", 0, time.Hour, false},
	} {
		told, w.delays = nil, 0
		// The clocks are read inside of tick, so the turn before is put back instead.
		w.now = time.Now().Add(-c.away)
		w.seen = w.now.Round(0)
		w.wake = time.Time{}
		if c.wake > 0 {
			w.wake = w.now.Add(c.wake)
		}
		w.reapAt = start
		w.tick()
		if put := w.reapAt.After(start); put != c.put || len(told) > 0 != c.put {
			t.Errorf("%s: reaping put off: %v, told %v; want %v", c.name, put, told, c.put)
		}
	}
}

// Jumps that come again and again do not put reaping off for ever.
func TestEndlessJumps(t *testing.T) {
	inScene(t, func(s *scene) {
		w := s.start(Options{ReapEvery: time.Minute}, func(context.Context, *queue.Received[string]) error { return nil })
		synctest.Wait()
		s.tap.made()
		for range 10 {
			s.pass(50 * time.Second)
			s.jump(10 * time.Minute)
			s.enqueue("wake") // it sees the jump now
			synctest.Wait()
		}
		n := 0
		for _, call := range s.tap.made() {
			if call == "reap mail" {
				n++
			}
		}
		if n == 0 {
			t.Error("never reaped")
		}
		w.wantStop()
	})
}

// While a store call hangs, the others cannot renew either: reaping waits a lease.
func TestCallThatHangs(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("theirs", "ours")
		theirs, err := s.store.Claim(t.Context(), "mail", queue.ClaimOptions{Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		s.tap.before = func(call string) error {
			if call == "ack ours, claim mail 1" {
				time.Sleep(2 * time.Minute)
			}
			return nil
		}
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return nil })
		s.pass(2*time.Minute + 30*time.Second)
		if _, err := s.store.Extend(t.Context(), theirs.Deliveries[0].Receipt, time.Minute); err != nil {
			t.Fatal(err)
		}
		s.pass(40 * time.Second)
		want(t, "events", s.seen(), []string{"jumped", "acked ours"})
		w.wantStop()
	})
}
