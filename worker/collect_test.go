package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// Collecting is asked for only when told to, beside the handlers: a long one keeps no
// renewal waiting, none begins beside another, and Run ends it.
func TestCollects(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("long")
		handled, collected := make(chan struct{}), make(chan struct{})
		o := Options{Lease: time.Minute, CollectEvery: time.Hour, Collect: func(ctx context.Context) error {
			s.note("begin")
			select {
			case <-collected:
				s.note("end")
				return errors.New("tried again when its time comes")
			case <-ctx.Done():
				s.note("cut off")
				return ctx.Err()
			}
		}}
		w := s.start(o, func(ctx context.Context, _ *queue.Received[string]) error {
			select {
			case <-handled:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		s.pass(53 * time.Minute)
		want(t, "before its time", s.noted(), []string(nil))
		s.pass(14 * time.Minute)
		want(t, "at its time", s.noted(), []string{"begin"})
		s.pass(3 * time.Hour)
		want(t, "while one is under way", s.noted(), []string{"begin"})
		want(t, "leases lost", s.seen(EventLost), []string(nil))
		close(handled)
		s.pass(time.Second)
		want(t, "acked beside it", s.seen(EventAcked), []string{"acked long"})
		collected <- struct{}{}
		s.pass(67 * time.Minute)
		want(t, "an hour after its end", s.noted(), []string{"begin", "end", "begin"})
		w.wantStop()
		want(t, "after the drain", s.noted(), []string{"begin", "end", "begin", "cut off"})
	})
}

// A panic in it is told as an error, and harms nobody.
func TestCollectPanics(t *testing.T) {
	inScene(t, func(s *scene) {
		n := 0
		w := s.start(Options{CollectEvery: time.Minute, Collect: func(context.Context) error {
			n++
			panic("out of luck")
		}}, func(context.Context, *queue.Received[string]) error { return nil })
		s.pass(3*time.Minute + time.Second*30)
		s.enqueue("a")
		s.pass(time.Second)
		want(t, "acked", s.seen(EventAcked), []string{"acked a"})
		w.wantStop()
		if n < 2 {
			t.Errorf("called %d times", n)
		}
	})
}

func TestCollectOptions(t *testing.T) {
	for _, o := range []Options{{CollectEvery: -1}, {CollectEvery: time.Hour}} {
		if _, err := o.group().checked(); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%+v: %v", o.CollectEvery, err)
		}
	}
}
