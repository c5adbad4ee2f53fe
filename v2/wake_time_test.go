//go:build unix

package holdfast

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// wakeLater gives a message that is due after so long by the scene's clock.
func wakeLater(sc *wakeScene, id string, after time.Duration) queue.Message {
	m := small(id)
	m.NotBefore = sc.clock.Now().Wall.Add(after)
	return m
}

// A message that becomes due wakes at that time, not at a poll, and until then nobody
// looks.
func TestDueTimeWakes(t *testing.T) {
	for _, o := range []Options{{}, {pollOff: true}} {
		bubble(t, o, func(t *testing.T, sc *wakeScene) {
			const after = time.Hour + 123*time.Millisecond
			mustEnqueue(t, sc.Store, "mail", wakeLater(sc, "late", 3*time.Hour), wakeLater(sc, "early", after))
			mustEnqueue(t, sc.Store, "other", wakeLater(sc, "a", time.Minute))
			begin := time.Now()
			mustDo(t, sc.WaitDue(t.Context(), "mail", "missing"))
			if got := time.Since(begin); got != after {
				t.Errorf("woken after %v, want %v", got, after)
			}
			sc.counted(t, "looks", &sc.wake.looks, 2)
			if !o.pollOff {
				sc.counted(t, "polls", &sc.wake.polls, int64(after/pollBehindEvents))
			}
			if got := mustClaim(t, sc.Store, "mail", queue.ClaimOptions{})[0].Receipt.ID; got != "early" {
				t.Errorf("claimed %s", got)
			}
			// A release with a delay, too.
			begin = time.Now()
			d := mustClaim(t, sc.Store, "other", queue.ClaimOptions{})[0]
			mustDo(t, sc.Release(t.Context(), d.Receipt, queue.ReleaseOptions{Delay: time.Minute}))
			mustDo(t, sc.WaitDue(t.Context(), "other"))
			if got := time.Since(begin); got != time.Minute {
				t.Errorf("woken after %v, want a minute", got)
			}
		})
	}
}

// An earlier message that comes meanwhile moves the time, and so does one that goes.
func TestDueTimeMoves(t *testing.T) {
	bubble(t, Options{pollOff: true}, func(t *testing.T, sc *wakeScene) {
		mustEnqueue(t, sc.Store, "mail", wakeLater(sc, "a", time.Hour))
		begin := time.Now()
		wait := sc.due(t.Context())
		sc.parked(t, wait)
		mustEnqueue(t, sc.Store, "mail", wakeLater(sc, "b", time.Minute))
		sc.parked(t, wait)
		_, err := sc.Clear(t.Context(), "mail", queue.ClearOptions{})
		mustDo(t, err)
		sc.parked(t, wait)
		mustEnqueue(t, sc.Store, "mail", wakeLater(sc, "c", 2*time.Hour))
		mustDo(t, <-wait)
		if got := time.Since(begin); got != 2*time.Hour {
			t.Errorf("woken after %v, want two hours", got)
		}
		sc.counted(t, "looks", &sc.wake.looks, 1+3+1)
	})
}

// A clock that is set forward is noticed by the next poll; one that is set back lets
// the timer run again, and nobody looks in vain.
func TestClockIsSet(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		mustEnqueue(t, sc.Store, "mail", wakeLater(sc, "a", time.Hour))
		wait := sc.due(t.Context(), "mail")
		sc.pass(t, 10*time.Minute, wait)
		sc.clock.set.Store(int64(time.Hour))
		sc.pass(t, pollBehindEvents-1, wait)
		sc.pass(t, 1)
		sc.over(t, wait)
		sc.counted(t, "looks", &sc.wake.looks, 2)
	})
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		mustEnqueue(t, sc.Store, "mail", wakeLater(sc, "a", time.Hour))
		begin := time.Now()
		wait := sc.due(t.Context(), "mail")
		sc.parked(t, wait)
		sc.clock.set.Store(-int64(time.Hour))
		mustDo(t, <-wait)
		if got := time.Since(begin); got != 2*time.Hour {
			t.Errorf("woken after %v, want two hours", got)
		}
		sc.counted(t, "looks", &sc.wake.looks, 2)
	})
}

// A test that moves the clock itself tells the waker.
func TestClockMovedByATest(t *testing.T) {
	bubble(t, Options{pollOff: true}, func(t *testing.T, sc *wakeScene) {
		mustEnqueue(t, sc.Store, "mail", wakeLater(sc, "a", time.Hour))
		wait := sc.due(t.Context(), "mail")
		sc.parked(t, wait)
		sc.clock.set.Store(int64(time.Hour) - 1)
		sc.wake.all()
		sc.parked(t, wait)
		sc.clock.set.Store(int64(time.Hour))
		sc.wake.all()
		sc.over(t, wait)
		sc.counted(t, "looks", &sc.wake.looks, 3)
	})
}

// While nothing happens, the timers fire and nothing else is done: no look, no lock,
// one system call for each poll.
func TestIdleWaitDoesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse error
		every  time.Duration
	}{{"with a watch", nil, pollBehindEvents}, {"without", errors.ErrUnsupported, pollWithoutEvents}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
				sc.fs.refuse = c.refuse
				mustEnqueue(t, sc.Store, "mail", wakeLater(sc, "a", 100*time.Hour))
				ctx, cancel := context.WithCancel(t.Context())
				waits := []<-chan error{sc.due(ctx, "mail"), sc.due(ctx), sc.due(ctx, "other")}
				sc.parked(t, waits...)
				sc.ops.Arm(crashtest.Plan{Reads: true})
				const idle = time.Hour
				sc.pass(t, idle, waits...)
				polls := int(idle / c.every)
				sc.counted(t, "looks", &sc.wake.looks, int64(len(waits)))
				sc.counted(t, "wake-ups", &sc.wake.wakes, 0)
				sc.counted(t, "polls", &sc.wake.polls, int64(polls))
				if all, stats := sc.ops.Count(), sc.ops.Count(fsguard.OpStat); all != polls || stats != polls {
					t.Errorf("%d operations, %d of them a stat; want %d", all, stats, polls)
				}
				cancel()
				for _, c := range waits {
					if err := <-c; !errors.Is(err, context.Canceled) {
						t.Errorf("wait: %v", err)
					}
				}

				// Nobody waits: no timer at all.
				synctest.Wait()
				sc.pass(t, idle)
				sc.counted(t, "polls", &sc.wake.polls, int64(polls))
			})
		})
	}
}

// The watch stands while somebody waits: it is closed when the last one has gone, by
// whatever way, and made anew for the next.
func TestWatchGoesWithTheLastWaiter(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		for round := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			waits := []<-chan error{sc.due(ctx, "mail"), sc.due(t.Context(), "mail")}
			sc.parked(t, waits...)
			told, n := sc.fs.last()
			if n != round+1 || told.closes.Load() != 0 {
				t.Fatalf("round %d: %d watches, the last closed %d times", round, n, told.closes.Load())
			}
			cancel()
			if err := <-waits[0]; !errors.Is(err, context.Canceled) {
				t.Errorf("wait: %v", err)
			}
			sc.parked(t, waits[1])
			if told.closes.Load() != 0 {
				t.Error("the watch is closed under somebody who waits")
			}
			mustEnqueue(t, sc.Store, "mail", small("a"))
			sc.over(t, waits[1])
			if told.closes.Load() != 1 {
				t.Errorf("the watch was closed %d times", told.closes.Load())
			}
			_, err := sc.Clear(t.Context(), "mail", queue.ClearOptions{})
			mustDo(t, err)
		}
	})
}

// Close releases everybody, wherever in a wait they are, and leaves no goroutine (the
// bubble would not end) and no watch.
func TestCloseReleasesWaits(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		mustEnqueue(t, sc.Store, "busy", small("a"))
		var waits []<-chan error
		for range 5 {
			waits = append(waits, sc.due(t.Context(), "mail"), wakeGo(func() error {
				return second(sc.Wait(t.Context(), queue.WaitOptions{Queues: []string{"busy"}}))
			}))
		}
		sc.parked(t, waits...)
		held, err := acquire(sc.other(t).pins, fsguard.Exclusive) // the next look waits for the lock
		mustDo(t, err)
		synctest.Wait()
		sc.wake.all()
		waits = append(waits, sc.due(t.Context(), "mail"))
		synctest.Wait()
		mustDo(t, sc.Close())
		for i, c := range waits {
			if err := <-c; !errors.Is(err, queue.ErrClosed) {
				t.Errorf("wait %d: %v", i, err)
			}
		}
		told, n := sc.fs.last()
		if n != 1 || told.closes.Load() != 1 {
			t.Errorf("%d watches, the last closed %d times", n, told.closes.Load())
		}
		refusal(t, "a wait on a closed store", sc.WaitDue(t.Context()), queue.ErrClosed, "")
		if _, n := sc.fs.last(); n != 1 {
			t.Error("a closed store makes a watch")
		}
		held.release()
		mustDo(t, sc.Close())
	})
}
