package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

func TestOneCommitForEachMessage(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b", "c")
		w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return nil })
		synctest.Wait()
		want(t, "store calls", s.tap.made(), []string{
			"reap mail",
			"claim mail 1",
			"ack a, claim mail 1",
			"ack b, claim mail 1",
			"ack c, claim mail 1",
			"wait mail",
		})
		s.enqueue("d")
		synctest.Wait()
		want(t, "store calls for one more", s.tap.made(), []string{"claim mail 1", "ack d, claim mail 1", "wait mail"})
		w.wantStop()
		s.wantCounters("claimed 4, completed 4")
	})
}

func TestIdleWorkerDoesNothing(t *testing.T) {
	inScene(t, func(s *scene) {
		w := s.start(Options{Concurrency: 4}, func(context.Context, *queue.Received[string]) error { return nil })
		synctest.Wait()
		want(t, "store calls at first", s.tap.made(), []string{"reap mail", "claim mail 4", "wait mail"})
		before := s.turns.Load()
		s.pass(time.Hour)
		calls := s.tap.made()
		for _, call := range calls {
			if call != "reap mail" {
				t.Errorf("call %q of an idle worker", call)
			}
		}
		if len(calls) != 240 {
			t.Errorf("%d reapings in an hour, want one every 15 s", len(calls))
		}
		// Each reaping is two turns of the loop: the timer, and the call's return.
		if turns := s.turns.Load() - before; turns != 2*240 {
			t.Errorf("%d turns of the loop, want 480", turns)
		}
		w.wantStop()
	})
}

func TestReadyAnswersShareACommit(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b", "c", "d", "e")
		disk := make(chan struct{})
		s.tap.before = func(call string) error {
			if call == "ack a, claim mail 1" {
				<-disk
			}
			return nil
		}
		hands := map[string]chan struct{}{}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			hands[id] = make(chan struct{})
		}
		w := s.start(Options{Concurrency: 4}, func(_ context.Context, m *queue.Received[string]) error {
			<-hands[m.Value]
			return nil
		})
		for _, id := range []string{"a", "b", "c", "d"} { // b, c and d while a is being acked
			synctest.Wait()
			close(hands[id])
		}
		synctest.Wait()
		close(disk)
		synctest.Wait()
		close(hands["e"])
		synctest.Wait()
		want(t, "store calls", s.tap.made(), []string{
			"reap mail", "claim mail 4",
			"ack a, claim mail 1",
			"ack b, ack c, ack d, claim mail 3", "wait mail",
			"ack e, claim mail 4",
		})
		w.wantStop()
	})
}

// T16: a message that fails at once, and good ones behind it.
func TestFailingMessageIsSpacedAndHoldsNobodyUp(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("bad")
		for i := range 20 {
			s.enqueue(fmt.Sprintf("good-%d", i))
		}
		var starts []time.Duration
		good := 0
		w := s.start(Options{Retry: RetryPolicy{Base: time.Second, MaxFailures: 5}}, func(_ context.Context, m *queue.Received[string]) error {
			if m.Value == "bad" {
				starts = append(starts, s.at())
				return errors.New("no")
			}
			good++
			return nil
		})
		synctest.Wait()
		if good != 20 || s.at() != 0 {
			t.Errorf("%d good ones done after %s, want all 20 at once", good, s.at())
		}
		s.pass(time.Minute)
		want(t, "starts", starts, []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second})
		w.wantStop()
		e := s.failed("bad")
		want(t, "last error", e.LastError, "no")
		want(t, "events", s.seen(EventRetried, EventFailed), []string{"retried bad", "retried bad", "retried bad", "retried bad", "failed bad"})
		want(t, "failures told", s.event(EventFailed).Failures, 5)
		s.wantCounters("claimed 25, completed 20, retried 4, failed 1")
	})
}

func TestMessageIsDeliveredWhole(t *testing.T) {
	inScene(t, func(s *scene) {
		s.put("mail", "a", "chat-42")
		var got queue.Received[string]
		w := s.start(Options{Label: "phone"}, func(_ context.Context, m *queue.Received[string]) error {
			got = *m
			e, err := s.store.Show(context.Background(), "mail", "a")
			if err != nil {
				return err
			}
			want(t, "label", e[0].Label, "phone")
			return nil
		})
		synctest.Wait()
		w.wantStop()
		want(t, "message", fmt.Sprint(got.Receipt.ID, got.Key, got.Attempt(), got.Fence, string(got.Payload), got.Value), `achat-421 1"a"a`)
		want(t, "deadline", got.Deadline.Sub(s.began), DefaultLease)
	})
}

// The next message of a key is claimed in the commit that acks the one before it, also
// when the queue seemed to hold nothing more.
func TestNextOfAKeyComesWithTheAck(t *testing.T) {
	inScene(t, func(s *scene) {
		s.put("mail", "a", "k")
		s.put("mail", "b", "k")
		w := s.start(Options{Concurrency: 3}, func(ctx context.Context, m *queue.Received[string]) error { return sleep(ctx, time.Second) })
		s.pass(5 * time.Second)
		want(t, "store calls", s.tap.made(), []string{
			"reap mail", "claim mail 3", "wait mail",
			"ack a, claim mail 3", "ack b, claim mail 3",
		})
		w.wantStop()
	})
}

func TestOthersFasterIsNoSpin(t *testing.T) {
	inScene(t, func(s *scene) {
		// A store that says that something is due, and has nothing.
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](liar{s.tap}, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, s.options(Options{}))
		})
		s.pass(time.Second - time.Millisecond)
		calls := len(s.tap.made())
		// One reaping, then a wait and a claim three times at once and each 50 ms.
		if most := 1 + 2*(1+3+20); calls > most {
			t.Errorf("%d store calls in a second, want at most %d", calls, most)
		}
		w.wantStop()
	})
}

type liar struct{ *tap }

func (l liar) WaitDue(ctx context.Context, _ ...string) error {
	l.note("wait")
	return ctx.Err()
}

func TestFairOverKeys(t *testing.T) {
	for _, c := range []struct {
		fair bool
		want []string
	}{{false, []string{"x1", "x2", "y1"}}, {true, []string{"x1", "y1", "x2"}}} {
		inScene(t, func(s *scene) {
			s.put("mail", "x1", "x")
			s.put("mail", "x2", "x")
			s.put("mail", "y1", "y")
			w := s.start(Options{Fair: c.fair}, func(_ context.Context, m *queue.Received[string]) error { s.note(m.Value); return nil })
			synctest.Wait()
			w.wantStop()
			want(t, "order", s.noted(), c.want)
		})
	}
}
