package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// A foggy store meets uncertain commits, and can tell later what became of them.
type foggy struct {
	*tap
	resolve func(*queue.UncertainError) (bool, error)
}

func (f foggy) Resolve(_ context.Context, u *queue.UncertainError) (bool, error) { return f.resolve(u) }

// An uncertain commit of a settlement and a claim, in each way in which it can come out.
func TestUncertainCommit(t *testing.T) {
	errForgot := errors.New("the store cannot tell any more")
	for _, c := range []struct {
		name      string
		committed bool
		resolve   func(bool) (bool, error) // nil: the store cannot resolve
		calls     []string                 // after the uncertain one
		counters  string
		acked     []string
	}{
		{"it happened, and the store says so", true, func(is bool) (bool, error) { return is, nil },
			[]string{"ack b, claim mail 1", "wait mail"}, "claimed 2, completed 2", []string{"acked a", "acked b"}},
		{"it did not happen, and the store says so", false, func(is bool) (bool, error) { return is, nil },
			[]string{"ack a", "claim mail 1", "ack b, claim mail 1", "wait mail"}, "claimed 2, completed 2", []string{"acked a", "acked b"}},
		// b is leased to us and nobody works on it, until its lease is over.
		{"it happened, and the store forgot", true, func(bool) (bool, error) { return false, errForgot },
			[]string{"ack a", "claim mail 1", "wait mail", "claim mail 1", "ack b, claim mail 1", "wait mail"},
			"claimed 3, completed 2, reaped 1", []string{"acked a", "acked b"}},
		{"it happened, and the store does not resolve", true, nil,
			[]string{"ack a", "claim mail 1", "wait mail", "claim mail 1", "ack b, claim mail 1", "wait mail"},
			"claimed 3, completed 2, reaped 1", []string{"acked a", "acked b"}},
		{"it did not happen, and the store does not resolve", false, nil,
			[]string{"ack a", "claim mail 1", "ack b, claim mail 1", "wait mail"}, "claimed 2, completed 2", []string{"acked a", "acked b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.enqueue("a", "b")
				u := &queue.UncertainError{Revision: 4, Err: errDisk}
				once := false
				s.tap.after = func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error) {
					if call != "ack a, claim mail 1" || once || !c.committed {
						return outs, err
					}
					once = true
					s.tap.made()
					u.Outcomes = outs
					return nil, u
				}
				s.tap.before = func(call string) error {
					if call != "ack a, claim mail 1" || once || c.committed {
						return nil
					}
					once = true
					s.tap.made()
					u.Outcomes = make([]queue.Outcome, 2)
					return u
				}
				var store queue.Store = s.tap
				if c.resolve != nil {
					store = foggy{s.tap, func(got *queue.UncertainError) (bool, error) {
						if got != u {
							t.Errorf("asked about %v", got)
						}
						return c.resolve(c.committed)
					}}
				}
				w := s.run(func(ctx context.Context) error {
					return Run(ctx, queue.New[string](store, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, s.options(Options{}))
				})
				s.pass(2 * time.Minute)
				w.wantStop()
				calls := slices.DeleteFunc(s.tap.made(), func(call string) bool { return strings.HasPrefix(call, "reap") })
				want(t, "store calls", calls, c.calls)
				want(t, "acked", s.seen(EventAcked, EventLost), c.acked)
				want(t, "uncertainty told", errors.Is(s.event(EventUncertain).Err, queue.ErrUncertain), true)
				s.wantCounters(c.counters)
			})
		})
	}
}

// Each other settlement counts as done too, when it is refused after it may have
// happened.
func TestUncertainSettlements(t *testing.T) {
	for _, c := range []struct {
		name     string
		answer   error
		event    EventKind
		counters string
	}{
		{"discard", Discard("old"), EventDiscarded, "claimed 1, completed 1"},
		{"retry", RetryAfter(time.Hour, errFlaky), EventRetried, "claimed 1, retried 1"},
		{"snooze", Snooze(time.Hour), EventSnoozed, "claimed 1, released 1"},
		{"fail", Fail(errFlaky), EventFailed, "claimed 1, failed 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.enqueue("a")
				once := false
				s.tap.after = func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error) {
					if strings.HasPrefix(call, "claim") || once {
						return outs, err
					}
					once = true
					return nil, &queue.UncertainError{Outcomes: outs, Err: errDisk}
				}
				w := s.start(Options{}, func(context.Context, *queue.Received[string]) error { return c.answer })
				s.pass(time.Second)
				w.wantStop()
				want(t, "events", s.seen(c.event, EventLost, EventUnsettled), []string{string(c.event) + " a"})
				s.wantCounters(c.counters)
			})
		})
	}
}

// The refusal that an uncertain call would have met is dealt with as that refusal.
func TestUncertainRefusal(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a", "b")
		once := false
		s.tap.after = func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error) {
			if once || err == nil {
				return outs, err
			}
			once = true
			return nil, &queue.UncertainError{Refused: err, Err: errDisk}
		}
		store := foggy{s.tap, func(*queue.UncertainError) (bool, error) { return true, nil }}
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](store, "mail"), func(ctx context.Context, m *queue.Received[string]) error {
				return sleep(ctx, time.Second)
			}, s.options(Options{}))
		})
		s.pass(time.Millisecond)
		s.take("a")
		s.pass(5 * time.Second)
		want(t, "events", s.seen(EventLost, EventAcked), []string{"lost a", "acked b"})
		w.wantStop()
	})
}

// What an uncertain reaping brought back is told of once it is known to have happened.
func TestUncertainReaping(t *testing.T) {
	inScene(t, func(s *scene) {
		s.enqueue("a")
		if _, err := s.store.Claim(t.Context(), "mail", queue.ClaimOptions{Lease: time.Second}); err != nil {
			t.Fatal(err)
		}
		s.pass(2 * time.Second)
		w := s.run(func(ctx context.Context) error {
			return Run(ctx, queue.New[string](&foggyReap{tap: s.tap}, "mail"), func(context.Context, *queue.Received[string]) error { return nil }, s.options(Options{}))
		})
		s.pass(time.Second)
		w.wantStop()
		want(t, "events", s.seen(), []string{"uncertain", "reaped a", "acked a", "draining"})
	})
}

type foggyReap struct {
	*tap
	once bool
}

func (f *foggyReap) Resolve(context.Context, *queue.UncertainError) (bool, error) { return true, nil }

func (f *foggyReap) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	returned, err := f.tap.Reap(ctx, o)
	if f.once || err != nil {
		return returned, err
	}
	f.once = true
	return nil, &queue.UncertainError{Returned: returned, Err: errDisk}
}
