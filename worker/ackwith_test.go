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

// withMade gives the calls that settled, in short.
func (s *scene) withMade() []string {
	return slices.DeleteFunc(s.tap.made(), func(call string) bool {
		return !strings.Contains(call, "ack") && !strings.Contains(call, "retry") && !strings.Contains(call, "release")
	})
}

// withPending gives the IDs that are pending in "next".
func (s *scene) withPending() (ids []string) {
	s.t.Helper()
	b, err := s.store.Claim(s.t.Context(), "next", queue.ClaimOptions{Max: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range b.Deliveries {
		ids = append(ids, d.Receipt.ID)
	}
	return ids
}

// The ack, its follow-ups and a cursor are one commit, with the next claim in it.
func TestAckWithIsOneCommit(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b")
		w := s.start(Options{}, func(_ context.Context, m *queue.Received[string]) error {
			return AckWith(followUp(m.Value+"1"), followUp(m.Value+"2"), queue.CursorChange{Queue: "mail", Cursor: m.Value})
		})
		synctest.Wait()
		more := ", queue.EnqueueChange, queue.EnqueueChange, queue.CursorChange, claim mail 1"
		want(t, "store calls", s.withMade(), []string{"ack a" + more, "ack b" + more})
		w.wantStop()
		want(t, "events", s.seen(), []string{"acked a", "acked b", "draining"})
		want(t, "error of an ack", s.events[1].Err, error(nil))
		want(t, "follow-ups", s.withPending(), []string{"a1", "a2", "b1", "b2"})
		cursor, err := s.store.Cursor(t.Context(), "mail")
		if err != nil || cursor != "b" {
			t.Errorf("cursor %q, %v; want b", cursor, err)
		}
		s.wantCounters("claimed 2, completed 2")
	})
}

// withTogether has the acks of some messages meet in one commit, in that order, each
// with what with says. The commit comes when commit is called.
func withTogether(s *scene, o Options, ids []string, with func(id string) error) (w *worked, commit func()) {
	open := make(chan struct{})
	s.tap.before = func(call string) error {
		if strings.HasPrefix(call, "ack first") {
			<-open
		}
		return nil
	}
	hands := map[string]chan struct{}{}
	for _, id := range ids {
		hands[id] = make(chan struct{})
	}
	s.enqueue(append([]string{"first"}, ids...)...)
	o.Concurrency = len(ids) + 1
	w = s.start(o, func(_ context.Context, m *queue.Received[string]) error {
		if m.Value == "first" {
			return nil
		}
		if hand := hands[m.Value]; hand != nil {
			<-hand
		}
		return with(m.Value)
	})
	for _, id := range ids {
		synctest.Wait()
		close(hands[id])
	}
	synctest.Wait()
	s.tap.made()
	return w, func() { close(open) }
}

// A change that is refused is laid at the door of the message that brought it, and of
// no other in the commit.
func TestAckWithRefused(t *testing.T) {
	long := queue.EnqueueChange{Queue: "next", Message: queue.Message{ID: "no id", Payload: []byte("1")}}
	for _, c := range []struct {
		name  string
		extra queue.Change
		is    error
	}{
		{"duplicate", followUp("taken"), queue.ErrDuplicate},
		{"an ID that is none", long, queue.ErrInvalidName},
		{"a payload that is none", queue.EnqueueChange{Queue: "next", Message: queue.Message{Payload: []byte("{")}}, queue.ErrInvalidPayload},
		{"a cursor that is too long", queue.CursorChange{Queue: "mail", Cursor: strings.Repeat("x", 2000)}, queue.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.put("next", "taken", "")
				w, commit := withTogether(s, Options{Retry: RetryPolicy{Base: time.Hour}}, []string{"a", "b", "c"}, func(id string) error {
					if id == "b" {
						return AckWith(followUp("b1"), c.extra)
					}
					return AckWith(followUp(id + "1"))
				})
				commit()
				s.pass(time.Millisecond)
				w.wantStop()
				want(t, "events", s.seen(), []string{"acked first", "acked a", "retried b", "acked c", "draining"})
				e := s.event(EventRetried)
				var refused *queue.UpdateError
				if !errors.Is(e.Err, c.is) || !errors.As(e.Err, &refused) || refused.Index != 1 {
					t.Errorf("error %v, want the refusal of change 1", e.Err)
				}
				want(t, "failures", e.Failures, 1)
				entries, err := s.store.Show(t.Context(), "mail", "b")
				if err != nil {
					t.Fatal(err)
				}
				want(t, "last error kept", entries[0].LastError, e.Err.Error())
				want(t, "follow-ups", s.withPending(), []string{"taken", "a1", "c1"})
				s.wantCounters("claimed 4, completed 3, retried 1")
			})
		})
	}
}

// At the cap a refused change is the end of the message.
func TestAckWithRefusedAtTheCap(t *testing.T) {
	inScene(t, func(s *scene) {
		s.put("next", "taken", "")
		s.enqueue("a")
		w := s.start(Options{Retry: RetryPolicy{MaxFailures: 1}}, func(context.Context, *queue.Received[string]) error { return AckWith(followUp("taken")) })
		synctest.Wait()
		w.wantStop()
		want(t, "events", s.seen(), []string{"failed a", "draining"})
		if e := s.failed("a"); !strings.HasPrefix(e.LastError, "acked with changes: change 0 of the update refused") {
			t.Errorf("last error %q", e.LastError)
		}
	})
}

// A claim that is lost takes its follow-ups with it; the others are acked.
func TestAckWithOfALostClaim(t *testing.T) {
	inScene(t, func(s *scene) {
		taken := false
		w, commit := withTogether(s, Options{}, []string{"a", "b", "c"}, func(id string) error {
			if id == "b" && !taken {
				taken = true
				s.take("b")
			}
			return AckWith(followUp(id+"1"), followUp(id+"2"))
		})
		commit()
		synctest.Wait()
		w.wantStop()
		want(t, "events", s.seen(EventAcked, EventLost, EventRetried), []string{"acked first", "lost b", "acked a", "acked c"})
		want(t, "follow-ups", s.withPending(), []string{"a1", "a2", "c1", "c2"})
	})
}

// A store that is full is no failure of the message: it waits for room, alone, and keeps
// its lease meanwhile.
func TestAckWithFull(t *testing.T) {
	for _, c := range []struct {
		name  string
		index int // of the refusal among the changes of a; -1: of the whole commit
	}{{"refused", 2}, {"the disk", -1}} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				w, commit := withTogether(s, Options{}, []string{"b", "a"}, func(id string) error {
					if id == "a" {
						return AckWith(followUp("a1"), followUp("a2"))
					}
					return nil
				})
				s.withFull(c.index)
				commit()
				s.pass(DefaultLease * 3 / 2)
				want(t, "events while it is full", s.seen(EventAcked, EventRetried, EventLost, EventSnoozed), []string{"acked first", "acked b"})
				s.tap.heal()
				s.pass(time.Minute)
				w.wantStop()
				want(t, "events", s.seen(EventAcked, EventRetried, EventLost, EventReaped), []string{"acked first", "acked b", "acked a"})
				want(t, "follow-ups", s.withPending(), []string{"a1", "a2"})
			})
		})
	}
}

// withFull has the store refuse every follow-up, as it does when it is full.
func (s *scene) withFull(index int) {
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	s.tap.before = func(call string) error {
		i := strings.Index(call, "ack a, queue.Enqueue")
		switch {
		case i < 0:
			return nil
		case index < 0:
			return fmt.Errorf("the disk has 0 bytes left: %w", queue.ErrFull)
		}
		return &queue.UpdateError{Index: strings.Count(call[:i], ",") + index, Err: queue.ErrFull}
	}
}

// It does not wait for ever: the slot may be what makes room. Nor does it hold up the
// end of the worker.
func TestAckWithFullForLong(t *testing.T) {
	follow := func(context.Context, *queue.Received[string]) error { return AckWith(followUp("a1")) }
	t.Run("given back after so many tries", func(t *testing.T) {
		inScene(t, func(s *scene) {
			s.enqueue("a")
			s.withFull(1)
			w := s.start(Options{StoreFailures: 4}, follow)
			s.pass(2 * time.Second)
			want(t, "events", s.seen(), []string{"store failed a", "store failed a", "store failed a", "snoozed a"})
			e := s.event(EventSnoozed)
			want(t, "delay and error", fmt.Sprint(e.Delay, e.Err), fmt.Sprint(30*time.Second, queue.ErrFull))
			s.tap.heal()
			s.pass(time.Minute)
			w.wantStop()
			s.wantCounters("claimed 2, completed 1, released 1")
		})
	})
	t.Run("given back at the end", func(t *testing.T) {
		inScene(t, func(s *scene) {
			s.enqueue("a")
			s.withFull(1)
			w := s.start(Options{}, follow)
			s.pass(100 * time.Second) // it waits for some 10 s between tries by now
			began := s.at()
			w.wantStop()
			want(t, "took", s.at()-began, time.Duration(0))
			want(t, "events", s.seen(EventReleased, EventUnsettled), []string{"released a"})
			s.wantCounters("claimed 1, released 1")
		})
	})
}

// An uncertain commit that did happen is not taken for one whose follow-up is refused
// because it is there already.
func TestAckWithUncertain(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprintf("it happened %v", happened), func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.enqueue("a")
				once := false
				uncertain := func(call string, outs []queue.Outcome) error {
					if !strings.HasPrefix(call, "ack") || once {
						return nil
					}
					once = true
					return &queue.UncertainError{Outcomes: outs, Err: errDisk}
				}
				if happened {
					s.tap.after = func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error) {
						if u := uncertain(call, outs); u != nil {
							return nil, u
						}
						return outs, err
					}
				} else {
					s.tap.before = func(call string) error { return uncertain(call, nil) }
				}
				w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return AckWith(followUp("a1")) })
				s.pass(time.Second)
				w.wantStop()
				want(t, "events", s.seen(EventAcked, EventRetried, EventLost), []string{"acked a"})
				want(t, "follow-ups", s.withPending(), []string{"a1"})
				s.wantCounters("claimed 1, completed 1")
			})
		})
	}
}

// More follow-ups than one Update takes go into several.
func TestAckWithMoreThanOneCommitTakes(t *testing.T) {
	inScene(t, func(s *scene) {
		most := make([]queue.Change, MaxAckWith)
		for i := range most {
			most[i] = queue.CursorChange{Queue: "mail", Cursor: fmt.Sprint(i)}
		}
		w, commit := withTogether(s, Options{}, []string{"a", "b"}, func(string) error { return AckWith(most...) })
		commit()
		s.pass(time.Millisecond)
		w.wantStop()
		want(t, "events", s.seen(), []string{"acked first", "acked a", "acked b", "draining"})
	})
}

// A handler that settled its message itself, as it must not, does no harm, and the log
// says what to do instead. That is no warning; a loss after AckWith is one.
func TestSettledByTheHandler(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b")
		var log bytes.Buffer
		o := s.options(Options{})
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](s.tap, "mail"), func(ctx context.Context, m *queue.Received[string]) error {
				if err := s.store.Ack(ctx, m.Receipt); err != nil {
					t.Error(err)
				}
				if m.Value == "b" {
					return AckWith(followUp("b1"))
				}
				return nil
			}, o)
		})
		synctest.Wait()
		w.wantStop()
		want(t, "events", s.seen(), []string{"lost a", "lost b", "draining"})
		if err := s.events[1].Err; !errors.Is(err, queue.ErrGone) {
			t.Errorf("error %v, want ErrGone", err)
		}
		lines := strings.Split(log.String(), "\n")
		const hint = "settled elsewhere, perhaps by the handler itself: use AckWith"
		if !strings.Contains(lines[0], "level=INFO") || !strings.Contains(lines[0], hint) {
			t.Errorf("a: %s", lines[0])
		}
		if !strings.Contains(lines[1], "level=WARN") || strings.Contains(lines[1], hint) {
			t.Errorf("b: %s", lines[1])
		}
		want(t, "follow-ups", s.withPending(), []string(nil))
	})
}
