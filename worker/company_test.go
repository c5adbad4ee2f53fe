package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// slowed makes each commit of a scene take so long, and gives what was settled and
// claimed by each and when it began.
func (s *scene) slowed(commit time.Duration) (commits func() []string) {
	var made []string
	s.tap.before = func(call string) error {
		if !strings.HasPrefix(call, "ack") && !strings.HasPrefix(call, "claim") {
			return nil
		}
		s.locked(func() {
			made = append(made, fmt.Sprintf("%s: %d, %d", s.at(), strings.Count(call, "ack "), strings.Count(call, "claim ")))
		})
		time.Sleep(commit)
		return nil
	}
	return func() (commits []string) {
		s.locked(func() { commits, made = made, nil })
		return commits
	}
}

// batch enqueues so many messages at once.
func (s *scene) batch(n int) {
	s.t.Helper()
	if _, err := queue.New[string](s.store, "mail").EnqueueBatch(s.t.Context(), make([]string, n)); err != nil {
		s.t.Fatal(err)
	}
}

// In the steady state one commit settles what all the slots worked on and fills all of
// them again: one for each message with one slot, one for 64 with 64.
func TestCommitsOfTheSteadyState(t *testing.T) {
	const commit, rounds = 4 * time.Millisecond, 10
	for _, slots := range []int{1, 2, 8, 64} {
		for _, takes := range []time.Duration{0, time.Microsecond, commit / 4, commit * 3 / 8} {
			t.Run(fmt.Sprintf("%d slots, handlers take %s", slots, takes), func(t *testing.T) {
				inScene(t, func(s *scene) {
					s.batch(rounds * slots)
					commits := s.slowed(commit)
					w := s.start(Options{Concurrency: slots}, func(ctx context.Context, _ *queue.Received[string]) error {
						return sleep(ctx, takes)
					})
					s.pass(time.Second)
					// The last of them claims for a queue that is empty by then.
					made := []string{"0s: 0, 1"}
					for i := range rounds {
						made = append(made, fmt.Sprintf("%s: %d, 1", time.Duration(i+1)*(commit+takes), slots))
					}
					want(t, "commits", commits(), made)
					w.wantStop()
					s.wantCounters(fmt.Sprintf("claimed %d, completed %[1]d", rounds*slots))
				})
			})
		}
	}
}

// What is done does not wait for what takes long: for a straggler half a commit, once,
// and never more than maxCompany; for handlers that are slow as a rule not at all.
func TestCompanyIsNotWaitedForLong(t *testing.T) {
	const hour = time.Hour
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, c := range []struct {
		name   string
		commit time.Duration
		takes  []time.Duration // by message
		want   []string
	}{
		{"a straggler", ms(4), []time.Duration{0, hour, 0, 0}, []string{"0s: 0, 1", "6ms: 1, 1", "10ms: 1, 1", "14ms: 1, 1"}},
		{"a straggler on a slow store", time.Minute, []time.Duration{0, hour, 0}, []string{"0s: 0, 1", "1m0.01s: 1, 1", "2m0.01s: 1, 1"}},
		{"slow ones", ms(4), []time.Duration{ms(3), ms(5), ms(30), ms(30)}, []string{"0s: 0, 1", "7ms: 1, 1", "11ms: 1, 1", "41ms: 1, 1", "45ms: 1, 1"}},
		{"of a slow one that is done neither", ms(4), append([]time.Duration{0, ms(29)}, make([]time.Duration, 9)...),
			[]string{"0s: 0, 1", "6ms: 1, 1", "10ms: 1, 1", "14ms: 1, 1", "18ms: 1, 1", "22ms: 1, 1", "26ms: 1, 1", "30ms: 1, 1", "34ms: 2, 1", "38ms: 2, 1"}},
		{"of one slow one others are not suspected", ms(4), []time.Duration{ms(1), hour, ms(1), ms(1)},
			[]string{"0s: 0, 1", "6ms: 1, 1", "11ms: 1, 1", "16ms: 1, 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.batch(len(c.takes))
				commits := s.slowed(c.commit)
				n := 0
				w := s.start(Options{Concurrency: 2, Lease: 10 * hour}, func(ctx context.Context, _ *queue.Received[string]) error {
					var takes time.Duration
					s.locked(func() { takes = c.takes[n]; n++ })
					return sleep(ctx, takes)
				})
				s.pass(5 * time.Minute)
				want(t, "commits", commits(), c.want)
				w.cancel()
				s.pass(2 * hour)
				<-w.done
			})
		})
	}
}

// A drain waits for no company.
func TestDrainWaitsForNoCompany(t *testing.T) {
	inScene(t, func(s *scene) {
		s.batch(2)
		commits := s.slowed(4 * time.Millisecond)
		n := 0
		w := s.start(Options{Concurrency: 2}, func(ctx context.Context, _ *queue.Received[string]) error {
			var takes time.Duration
			s.locked(func() { takes = time.Duration(n) * time.Second; n++ })
			return sleep(ctx, takes)
		})
		s.pass(5 * time.Millisecond)
		want(t, "commits", commits(), []string{"0s: 0, 1"})
		w.cancel()
		synctest.Wait()
		want(t, "commits", commits(), []string{"5ms: 1, 0"})
		if err := <-w.done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
