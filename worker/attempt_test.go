package worker

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// T18: each way in which a handler can fail to return is one failure, and the slot is
// free for the next message.
func TestHandlersThatDoNotReturn(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     func()
		cause string
	}{
		{"panic", func() { panic(errors.New("out of luck")) }, "the handler panicked: out of luck\n"},
		{"nil panic", func() { panic(nil) }, "the handler panicked: panic called with nil argument"},
		{"Goexit", runtime.Goexit, "the handler called runtime.Goexit\n"},
		{"Goexit while panicking", func() { defer runtime.Goexit(); panic("x") }, "the handler called runtime.Goexit\n"},
		{"panic with a value that panics when it is read", func() { panic(broke{}) }, "the handler panicked: %!v(PANIC="},
		{"panic while panicking", func() { defer func() { panic("second") }(); panic("first") }, "the handler panicked: second"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.enqueue("bad", "good")
				calls := 0
				w := s.start(Options{Retry: RetryPolicy{MaxFailures: 3}}, func(_ context.Context, m *queue.Received[string]) error {
					if m.Value == "bad" {
						calls++
						c.h()
					}
					return nil
				})
				synctest.Wait()
				want(t, "events at first", s.seen(), []string{"panicked bad", "retried bad", "acked good"})
				s.pass(time.Minute)
				w.wantStop()
				want(t, "calls", calls, 3)
				e := s.failed("bad")
				if !strings.HasPrefix(e.LastError, c.cause) || !strings.Contains(e.LastError, "attempt_test.go:") {
					t.Errorf("last error %q, want %q and the place", e.LastError, c.cause)
				}
				s.wantCounters("claimed 4, completed 1, retried 2, failed 1")
			})
		})
	}
}

// A value that ends its goroutine when it is read must not take the slot along.
func TestPanicWithValueThatCannotBeRead(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("bad", "good")
		w := s.start(Options{}, func(_ context.Context, m *queue.Received[string]) error {
			if m.Value == "bad" {
				panic(quitter{})
			}
			return nil
		})
		synctest.Wait()
		w.wantStop()
		want(t, "events", s.seen(), []string{"panicked bad", "retried bad", "acked good", "draining"})
	})
}

type quitter struct{}

func (quitter) Error() string { runtime.Goexit(); return "" }

// T18: a panic while the lease is being extended.
func TestPanicDuringRenewal(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		boom, disk := make(chan struct{}), make(chan struct{})
		s.tap.before = func(call string) error {
			if call == "extend a" {
				close(boom)
				<-disk
			}
			return nil
		}
		calls := 0
		w := s.start(Options{Retry: RetryPolicy{Base: time.Hour}}, func(context.Context, *queue.Received[string]) error {
			if calls++; calls == 1 {
				<-boom
				panic("boom")
			}
			return nil
		})
		s.pass(DefaultLease / 3)
		want(t, "events while the store is busy", s.seen(), []string{"panicked a"})
		close(disk)
		synctest.Wait()
		want(t, "events", s.seen(), []string{"panicked a", "retried a"})
		s.tap.heal()
		s.pass(2 * time.Hour)
		want(t, "events in the end", s.seen(EventAcked, EventLost), []string{"acked a"})
		w.wantStop()
		s.wantCounters("claimed 2, completed 1, retried 1")
	})
}

func TestPayloadThatDoesNotDecode(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("good")
		odd := `{"n": 9007199254740993}`
		if _, err := s.store.Enqueue(t.Context(), "mail", queue.Message{ID: "odd", Payload: []byte(odd)}); err != nil {
			t.Fatal(err)
		}
		s.enqueue("good-2")
		called := 0
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { called++; return nil })
		synctest.Wait()
		w.wantStop()
		want(t, "handler calls", called, 2)
		want(t, "events", s.seen(), []string{"acked good", "failed odd", "acked good-2", "draining"})
		e := s.failed("odd")
		want(t, "payload kept", string(e.Payload), odd)
		var fault *queue.DecodeError
		if err := s.event(EventFailed).Err; !errors.As(err, &fault) {
			t.Fatalf("event's error %v, want a DecodeError", err)
		}
		want(t, "cause", e.LastError, fault.Error())
	})
}

// A decoder is foreign code too.
type bomb struct{}

func (*bomb) UnmarshalJSON([]byte) error { panic("cannot read") }

func TestDecoderThatPanics(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[bomb](s.tap, "mail"), func(context.Context, *queue.Received[bomb]) error { return nil }, s.options(Options{}))
		})
		synctest.Wait()
		w.wantStop()
		want(t, "events", s.seen(), []string{"panicked a", "retried a", "draining"})
	})
}

func TestRawPayloadIsPassedAsItIs(t *testing.T) {
	inScene(t, func(s *scene) {
		raw := `{ "b":9007199254740993, "a":1.0, "z":-0, "e":1e400, "s":"<a&b>` + "\u2028" + `" }`
		if _, err := s.store.Enqueue(t.Context(), "mail", queue.Message{ID: "a", Payload: []byte(raw)}); err != nil {
			t.Fatal(err)
		}
		var got string
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[json.RawMessage](s.tap, "mail"), func(_ context.Context, m *queue.Received[json.RawMessage]) error {
				got = string(m.Value)
				return Fail(errFlaky)
			}, s.options(Options{}))
		})
		synctest.Wait()
		w.wantStop()
		want(t, "value", got, raw)
		want(t, "payload of the failed one", string(s.failed("a").Payload), raw)
	})
}
