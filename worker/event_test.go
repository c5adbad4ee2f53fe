package worker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// A panic of the observer, or of the log, does no harm.
func TestObserverThatPanics(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b")
		o := s.options(Options{Observe: func(Event) { panic("metrics are down") }})
		var log bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](s.tap, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, o)
		})
		synctest.Wait()
		w.wantStop()
		s.wantCounters("claimed 2, completed 2")
		if !strings.Contains(log.String(), "metrics are down") {
			t.Errorf("log: %s", log.String())
		}
	})
	inScene(t, func(s *scene) {
		s.enqueue("a")
		o := s.options(Options{})
		o.Logger = slog.New(angry{})
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](s.tap, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, o)
		})
		synctest.Wait()
		w.wantStop()
		want(t, "events", s.seen(), []string{"acked a", "draining"})
	})
}

type angry struct{ slog.Handler }

func (angry) Enabled(context.Context, slog.Level) bool  { return true }
func (angry) Handle(context.Context, slog.Record) error { panic("no log") }
func (a angry) WithAttrs([]slog.Attr) slog.Handler      { return a }
func (a angry) WithGroup(string) slog.Handler           { return a }

// What the log says, line by line, and that it never has a payload in it.
func TestLog(t *testing.T) {
	inScene(t, func(s *scene) {
		for _, id := range []string{"a", "b", "c", "d"} {
			m := queue.Message{ID: id, Payload: []byte(`"secret-` + id + `"`)}
			if _, err := s.store.Enqueue(t.Context(), "mail", m); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		o := s.options(Options{})
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](s.tap, "mail"), func(_ context.Context, m *queue.Received[string]) error {
				switch m.Receipt.ID {
				case "b":
					return errFlaky
				case "c":
					return Fail(fmt.Errorf("no such user"))
				case "d":
					return Discard("too old")
				}
				return nil
			}, o)
		})
		synctest.Wait()
		w.wantStop()
		want(t, "log", log.String(), strings.Join([]string{
			`level=INFO msg="worker: retried" queue=mail id=b attempt=1 action=retry failures=1 delay=2s error="no answer from the server"`,
			`level=ERROR msg="worker: failed" queue=mail id=c attempt=1 action=fail failures=1 failed_name=c error="no such user"`,
			`level=INFO msg="worker: discarded" queue=mail id=d attempt=1 action=discard error="discarded: too old"`,
			`level=INFO msg="worker: draining"`,
		}, "\n")+"\n")
	})
}

// A message whose payload the store could not deliver is told of, and the slot asks for
// the next one.
func TestDamagedDeliveryIsTold(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("bad", "good")
		s.tap.after = func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error) {
			last := &outs[len(outs)-1].Claimed
			if len(last.Deliveries) == 1 && last.Deliveries[0].Receipt.ID == "bad" {
				*last = queue.Claimed{Damaged: []*queue.DamagedError{{Queue: "mail", ID: "bad", FailedName: "bad", Reason: "short"}}}
			}
			return outs, err
		}
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return nil })
		synctest.Wait()
		want(t, "store calls", s.tap.made(), []string{"reap mail", "claim mail 1", "claim mail 1", "ack good, claim mail 1", "wait mail"})
		want(t, "events", s.seen(), []string{"damaged bad", "acked good"})
		want(t, "kept as", s.event(EventDamaged).FailedName, "bad")
		w.wantStop()
	})
}

// Every claimed message comes to exactly one end.
func TestEachClaimHasOneEnd(t *testing.T) {
	inScene(t, func(s *scene) {
		for i := range 60 {
			s.enqueue(fmt.Sprint(i))
		}
		n := 0
		w := s.start(Options{Concurrency: 5, Timeout: 40 * time.Second, Retry: RetryPolicy{MaxFailures: 3}}, func(ctx context.Context, m *queue.Received[string]) error {
			var turn int
			s.locked(func() { n++; turn = n % 7 })
			switch turn {
			case 0:
				return errFlaky
			case 1:
				panic("x")
			case 2:
				return Snooze(time.Second)
			case 3:
				return Fail(errFlaky)
			case 4:
				time.Sleep(150 * time.Second) // stuck, and lost
			}
			return sleep(ctx, time.Second)
		})
		s.pass(time.Hour)
		w.wantStop()
		ends := map[EventKind]bool{EventAcked: true, EventDiscarded: true, EventRetried: true, EventFailed: true, EventSnoozed: true, EventReleased: true, EventLost: true, EventUnsettled: true}
		open := map[string]int{}
		for _, e := range s.events {
			claim := fmt.Sprint(e.ID, " ", e.Attempt)
			if e.Kind == EventClaimed {
				open[claim]++
			} else if ends[e.Kind] {
				open[claim]--
			}
		}
		for claim, n := range open {
			if n != 0 {
				t.Errorf("claim %s: %+d ends are missing", claim, n)
			}
		}
		if len(s.seen(EventStuck)) == 0 || len(s.seen(EventLost)) == 0 {
			t.Error("nothing was stuck and lost: the test is too tame")
		}
		want(t, "left", s.status("mail").Unacked(), 0)
	})
}

// A panic is logged with its stack once: what became of the message says only what it
// was. A drain says how long it may last only where it waits for handlers.
func TestLogOfAPanicAndADrain(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b")
		var log bytes.Buffer
		o := s.options(Options{Concurrency: 2, Drain: 30 * time.Second})
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](s.tap, "mail"), func(ctx context.Context, m *queue.Received[string]) error {
				if m.Value == "a" {
					panic("out of luck")
				}
				return sleep(ctx, 20*time.Second)
			}, o)
		})
		s.pass(time.Millisecond)
		w.wantStop()
		want(t, "stacks logged", strings.Count(log.String(), "event_test.go:"), 1)
		for _, line := range []string{
			`msg="worker: retried" queue=mail id=a attempt=1 action=retry failures=1 delay=2s error="the handler panicked: out of luck"` + "\n",
			`msg="worker: draining" count=1 delay=30s` + "\n",
		} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("log:\n%s\nwant in it %s", log.String(), line)
			}
		}
	})
}
