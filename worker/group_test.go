package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// group runs a group over queues, whose handlers note "queue/id" and take a second.
func (s *scene) group(o GroupOptions, names []string, weights ...int) *worked {
	p := s.options(Options{Concurrency: o.Concurrency})
	o.Observe, o.Logger = p.Observe, p.Logger
	if o.seams.draw == nil {
		o.seams = p.seams
	}
	g := NewGroup(s.tap, o)
	for i, name := range names {
		qo := QueueOptions{}
		if weights != nil {
			qo.Weight = weights[i]
		}
		Add(g, queue.New[string](s.tap, name), func(ctx context.Context, m *queue.Received[string]) error {
			s.note(name + "/" + m.Value)
			return sleep(ctx, time.Second)
		}, qo)
	}
	return s.run(g.Run)
}

func TestStrictGroup(t *testing.T) {
	inScene(t, func(s *scene) {
		for i := range 3 {
			s.put("low", fmt.Sprint(i), "")
		}
		w := s.group(GroupOptions{}, []string{"high", "low"})
		s.pass(1500 * time.Millisecond) // inside of low/1
		s.put("high", "0", "")
		s.put("high", "1", "")
		s.pass(10 * time.Second)
		want(t, "order", s.noted(), []string{"low/0", "low/1", "high/0", "high/1", "low/2"})
		w.wantStop()
		for _, call := range s.tap.made() {
			if strings.Count(call, "claim") > 1 {
				t.Errorf("a strict group claimed from two queues at once: %s", call)
			}
		}
	})
}

// Idle, a group waits for all its queues in one call and reaps them in one.
func TestGroupWaitsInOneCall(t *testing.T) {
	inScene(t, func(s *scene) {
		w := s.group(GroupOptions{Concurrency: 2}, []string{"x", "y", "z"})
		synctest.Wait()
		calls := s.tap.made()
		want(t, "last call", calls[len(calls)-1], "wait x y z")
		s.pass(time.Hour)
		for _, call := range s.tap.made() {
			if call != "reap x y z" {
				t.Errorf("call %q of an idle group", call)
			}
		}
		s.put("y", "0", "")
		synctest.Wait()
		want(t, "order", s.noted(), []string{"y/0"})
		s.pass(2 * time.Second)
		w.wantStop()
	})
}

// Free slots are drawn one by one, by weight, and claimed in one commit.
func TestWeightedGroup(t *testing.T) {
	inScene(t, func(s *scene) {
		for i := range 20 {
			s.put("big", fmt.Sprint(i), "")
			s.put("small", fmt.Sprint(i), "")
		}
		o := GroupOptions{Concurrency: 4, Weighted: true}
		turn := 0
		p := s.options(Options{})
		o.seams.wall = p.seams.wall
		o.seams.draw = func(most time.Duration) time.Duration {
			if most != 3 { // weights 3 and 1
				return most / 2
			}
			turn++
			return time.Duration(turn % 4)
		}
		w := s.group(o, []string{"big", "small"}, 3, 1)
		synctest.Wait()
		want(t, "store calls", s.tap.made(), []string{"reap big small", "claim big 3, claim small 1"})
		s.pass(3500 * time.Millisecond)
		w.wantStop()
		big, small := s.status("big").Counters.Completed, s.status("small").Counters.Completed
		want(t, "shares", [2]uint64{big, small}, [2]uint64{12, 4})
	})
}

// A queue of a weighted group that has nothing leaves its share to the others.
func TestWeightedGroupWithEmptyQueue(t *testing.T) {
	inScene(t, func(s *scene) {
		for i := range 8 {
			s.put("small", fmt.Sprint(i), "")
		}
		w := s.group(GroupOptions{Concurrency: 4, Weighted: true}, []string{"big", "small"}, 1000, 1)
		s.pass(1500 * time.Millisecond)
		want(t, "started", len(s.noted()), 8)
		w.wantStop()
	})
}

// Claims of one queue that fail hold up neither the settlements nor the other queues.
func TestGroupWithQueueThatCannotBeClaimed(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		t.Run(fmt.Sprintf("weighted %v", weighted), func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.put("bad", "0", "")
				for i := range 40 {
					s.put("good", fmt.Sprint(i), "")
				}
				s.tap.before = func(call string) error {
					if strings.Contains(call, "claim bad") {
						return errDisk
					}
					return nil
				}
				w := s.group(GroupOptions{Concurrency: 2, Weighted: weighted}, []string{"bad", "good"})
				s.pass(10500 * time.Millisecond)
				if n := len(s.noted()); n < 18 {
					t.Errorf("%d good ones started in 10 s, want at least 18", n)
				}
				s.tap.heal()
				s.pass(30 * time.Second)
				done := s.status("bad").Counters.Completed
				want(t, "the bad queue in the end", done, 1)
				w.wantStop()
			})
		})
	}
}

// Each queue has its own cap of lapses.
func TestGroupReapsByCap(t *testing.T) {
	inScene(t, func(s *scene) {
		g := NewGroup(s.tap, s.options(Options{}).group())
		for i, name := range []string{"x", "y", "z"} {
			s.put(name, "0", "")
			if _, err := s.store.Claim(t.Context(), name, queue.ClaimOptions{Lease: time.Second}); err != nil {
				t.Fatal(err)
			}
			Add(g, queue.New[string](s.tap, name), func(context.Context, *queue.Received[string]) error { return Snooze(time.Hour) },
				QueueOptions{Retry: RetryPolicy{MaxLapses: []uint64{1, 5, 1}[i]}})
		}
		s.pass(2 * time.Second)
		w := s.run(g.Run)
		synctest.Wait()
		want(t, "reapings", s.tap.made()[:2], []string{"reap x z", "reap y"})
		want(t, "reaped", s.seen(EventReaped), []string{"reaped 0", "reaped 0", "reaped 0"})
		want(t, "failed of x, y, z", [3]uint64{s.status("x").Failed, s.status("y").Failed, s.status("z").Failed}, [3]uint64{1, 0, 1})
		w.wantStop()
	})
}

func TestGroupRefusals(t *testing.T) {
	inScene(t, func(s *scene) {
		h := func(context.Context, *queue.Received[string]) error { return nil }
		mail := queue.New[string](s.tap, "mail")
		for _, c := range []struct {
			name  string
			group func() *Group
			want  string
		}{
			{"no queue", func() *Group { return NewGroup(s.tap, GroupOptions{}) }, "a group without a queue"},
			{"no store", func() *Group {
				g := NewGroup(nil, GroupOptions{})
				Add(g, queue.New[string](nil, "mail"), h, QueueOptions{})
				return g
			}, "no store"},
			{"no handler", func() *Group {
				g := NewGroup(s.tap, GroupOptions{})
				Add(g, mail, nil, QueueOptions{})
				return g
			}, "no handler"},
			{"another store", func() *Group {
				g := NewGroup(s.store, GroupOptions{})
				Add(g, mail, h, QueueOptions{})
				return g
			}, "another store"},
			{"the same queue twice", func() *Group {
				g := NewGroup(s.tap, GroupOptions{})
				Add(g, mail, h, QueueOptions{})
				Add(g, mail, h, QueueOptions{})
				return g
			}, "already"},
			{"a bad name", func() *Group {
				g := NewGroup(s.tap, GroupOptions{})
				Add(g, queue.New[string](s.tap, "a//b"), h, QueueOptions{})
				return g
			}, "a//b"},
		} {
			err := c.group().Run(t.Context())
			if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want ErrInvalid that names it", c.name, err)
			}
		}
	})
}
