//go:build unix

package holdfast

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// gathering gives a store on the simulated disk whose commits wait so long for company.
func gathering(t *testing.T, idle time.Duration) *Store {
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	o := crashOptions(d.Process())
	o.gather = idle
	s, err := Create(t.Context(), crashDir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustDo(t, s.Close()) })
	return s
}

// Callers that come back after every answer go on together: in about as many commits as
// each of them makes calls.
func TestGatherKeepsCallersTogether(t *testing.T) {
	const callers, begin, rounds = 64, 5, 15
	s := gathering(t, 100*time.Millisecond) // whoever comes back at all is back by then
	var made, before atomic.Int64
	var together sync.WaitGroup
	for range callers {
		together.Go(func() {
			for n := made.Add(1); n <= callers*(begin+rounds); n = made.Add(1) {
				if n == callers*begin { // by now all have begun
					before.Store(s.commits.Load())
				}
				if _, err := s.Enqueue(t.Context(), "mail", small(fmt.Sprint(n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	together.Wait()
	commits := s.commits.Load() - before.Load()
	t.Logf("%d calls took %d commits", callers*rounds, commits)
	if commits > rounds+3*rounds/4 { // in two halves it is twice as many; a busy machine makes it some more
		t.Errorf("%d commits for %d callers with %d calls each, want about %d", commits, callers, rounds, rounds)
	}
}

// Who calls alone is never delayed, nor who comes when the answered have had their moment.
func TestNobodyWaitsAlone(t *testing.T) {
	s := gathering(t, time.Minute)
	for i := range 50 {
		mustEnqueue(t, s, "mail", small(fmt.Sprint(i)))
	}
	s.company = company{want: 64, back: 64, at: time.Now().Add(-2 * time.Minute)}
	mustEnqueue(t, s, "mail", small("late"))
	if s.company.waits != 0 {
		t.Errorf("%d commits waited for company, want none", s.company.waits)
	}
}

// When nobody comes, the next commits do not wait, more of them each time; when somebody
// comes again, all do.
func TestGatherGivesUp(t *testing.T) {
	s := gathering(t, time.Millisecond)
	var got []int
	commits := func(n int, come bool) {
		for range n {
			s.company.want, s.company.back, s.company.at = 2, 2, time.Now()
			if come {
				s.company.at = s.company.at.Add(time.Minute)
				s.waiting = append(s.waiting, nil)
				go func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.waiting = append(s.waiting, nil)
				}()
			}
			s.gather()
			s.waiting = nil
		}
		got = append(got, s.company.waits)
	}
	commits(1, false) // waits
	commits(1, false)
	commits(1, false) // waits
	commits(3, false)
	commits(1, false) // waits
	commits(7, false)
	commits(1, true) // waits, and is not alone
	commits(2, true)
	if want := []int{1, 1, 2, 2, 3, 3, 4, 6}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("waits begun: %v, want %v", got, want)
	}
}

// Where time stands still while anybody runs, a commit waits for no one for ever.
func TestGatherWhereTimeStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gathering(t, gatherIdle)
		s.company = company{want: 64, back: 64, at: time.Now()}
		mustEnqueue(t, s, "mail", small("a"))
		if s.company.waits != 1 {
			t.Errorf("%d commits waited for company, want 1", s.company.waits)
		}
		mustDo(t, s.Close())
	})
}

// Handles that wait for the lock sleep in the kernel: each asks for the turnstile and for
// the lock once, however long it waits, and nobody tries again.
func TestHandOverDoesNotPoll(t *testing.T) {
	_, dir := newTestStore(t, nil)
	out := openLock(t, dir)
	out.lock(t)
	var handles []*Store
	var ops []*crashtest.Wrapper
	var waiting sync.WaitGroup
	for i := range 4 {
		w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
		o := &Options{fs: w}
		ownHolders(&o)
		s, err := Open(t.Context(), dir, o)
		mustDo(t, err)
		defer s.Close()
		w.Arm(crashtest.Plan{})
		waiting.Go(func() {
			if _, err := s.Enqueue(t.Context(), "mail", small(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
		handles, ops = append(handles, s), append(ops, w)
	}
	for _, s := range handles {
		until(func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.lockWait
		})
	}
	out.unlock(t)
	waiting.Wait()
	for i, w := range ops {
		// Each is asked for once without waiting, the second only if the first was free, and
		// then waited for once.
		locks, unlocks := w.Count(fsguard.OpLock), w.Count(fsguard.OpUnlock)
		if (locks != 3 && locks != 4) || unlocks != locks-1 {
			t.Errorf("handle %d: %d locks and %d unlocks, want 3 or 4 and one less\n%s", i, locks, unlocks, w.Trace())
		}
	}
}
