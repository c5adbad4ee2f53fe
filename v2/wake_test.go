//go:build unix

package holdfast

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// Every commit of a handle wakes who waits on it, with no watch and no poll, and each
// looks once.
func TestCommitsWake(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(t *testing.T, sc *wakeScene) queue.Receipt
		do     func(ctx context.Context, sc *wakeScene, r queue.Receipt) error
		due    bool
	}{
		{"enqueue", nil, func(ctx context.Context, sc *wakeScene, _ queue.Receipt) error {
			return second(sc.Enqueue(ctx, "mail", small("a")))
		}, true},
		{"enqueue in another queue", nil, func(ctx context.Context, sc *wakeScene, _ queue.Receipt) error {
			return second(sc.Enqueue(ctx, "other", small("a")))
		}, false},
		{"enqueue for later", nil, func(ctx context.Context, sc *wakeScene, _ queue.Receipt) error {
			m := small("a")
			m.NotBefore = sc.clock.Now().Wall.Add(time.Hour)
			return second(sc.Enqueue(ctx, "mail", m))
		}, false},
		{"release", wakeClaimed, func(ctx context.Context, sc *wakeScene, r queue.Receipt) error {
			return sc.Release(ctx, r, queue.ReleaseOptions{})
		}, true},
		{"ack", wakeClaimed, func(ctx context.Context, sc *wakeScene, r queue.Receipt) error { return sc.Ack(ctx, r) }, false},
		{"resume", func(t *testing.T, sc *wakeScene) queue.Receipt {
			mustDo(t, sc.Pause(t.Context(), "mail"))
			mustEnqueue(t, sc.Store, "mail", small("a"))
			return queue.Receipt{}
		}, func(ctx context.Context, sc *wakeScene, _ queue.Receipt) error { return sc.Resume(ctx, "mail") }, true},
		{"recovery", func(t *testing.T, sc *wakeScene) queue.Receipt { return queue.Receipt{} },
			func(ctx context.Context, sc *wakeScene, _ queue.Receipt) error {
				sc.disk.WriteRaw(inSim(lockFile), encodeRecord(newOwner(namedToken("dead"), sc.clock.Now())))
				return second(sc.Recover(ctx))
			}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Options{pollOff: true}, func(t *testing.T, sc *wakeScene) {
				sc.fs.refuse = errors.ErrUnsupported
				var r queue.Receipt
				if c.before != nil {
					r = c.before(t, sc)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wait := sc.due(ctx, "mail")
				sc.parked(t, wait)
				sc.counted(t, "looks", &sc.wake.looks, 1)
				mustDo(t, c.do(ctx, sc, r))
				if c.due {
					sc.over(t, wait)
				} else {
					sc.parked(t, wait)
				}
				sc.counted(t, "looks", &sc.wake.looks, 2)
				sc.counted(t, "wake-ups", &sc.wake.wakes, 1)
			})
		})
	}
}

func wakeClaimed(t *testing.T, sc *wakeScene) queue.Receipt {
	t.Helper()
	mustEnqueue(t, sc.Store, "mail", small("a"))
	return mustClaim(t, sc.Store, "mail", queue.ClaimOptions{})[0].Receipt
}

// A commit that may have happened wakes too: the look that follows resolves it.
func TestUncertainCommitWakes(t *testing.T) {
	bubble(t, Options{pollOff: true}, func(t *testing.T, sc *wakeScene) {
		wait := sc.due(t.Context(), "mail")
		sc.parked(t, wait)
		renamed := false
		sc.ops.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
			renamed = renamed || isCommitPoint(op, path)
			return renamed && op == fsguard.OpSyncDir
		}, syscall.EIO, 1))
		_, err := sc.Enqueue(t.Context(), "mail", small("a"))
		refusal(t, "enqueue", err, queue.ErrUncertain, "")
		sc.over(t, wait)
		mustClaim(t, sc.Store, "mail", queue.ClaimOptions{})
	})
}

// A commit that this handle and the watch both tell of costs one look.
func TestOneLookForOneCommit(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		wait := sc.due(t.Context(), "mail")
		sc.parked(t, wait)
		told, _ := sc.fs.last()
		// The event comes at the rename, long before the commit is durable.
		renamed := false
		sc.ops.Arm(watch(func(op fsguard.Op, path string) {
			switch {
			case isCommitPoint(op, path):
				renamed = true
				told.signal()
			case op == fsguard.OpSyncDir && renamed:
				renamed = false
				waitFor(sc.Store, 1)
			}
		}))
		mustEnqueue(t, sc.Store, "other", small("a"))
		sc.parked(t, wait)
		sc.counted(t, "looks", &sc.wake.looks, 2)
		mustEnqueue(t, sc.Store, "mail", small("a"))
		sc.over(t, wait)
		sc.counted(t, "looks", &sc.wake.looks, 3)
	})
}

// Who waits is told of a commit when that is durable, not before: until then a look
// would only wait for the lock.
func TestNobodyIsWokenBeforeTheLastSync(t *testing.T) {
	bubble(t, Options{pollOff: true}, func(t *testing.T, sc *wakeScene) {
		sc.fs.refuse = errors.ErrUnsupported
		wait := sc.due(t.Context(), "mail")
		sc.parked(t, wait)
		renamed, synced := false, 0
		sc.ops.Arm(watch(func(op fsguard.Op, path string) {
			switch {
			case isCommitPoint(op, path):
				renamed = true
			case op == fsguard.OpSyncDir && renamed:
				renamed = false
				synced++
				synctest.Wait() // whoever was told has come to rest
				sc.counted(t, "wake-ups", &sc.wake.wakes, 0)
			}
		}))
		mustEnqueue(t, sc.Store, "mail", small("a"))
		sc.over(t, wait)
		sc.counted(t, "wake-ups", &sc.wake.wakes, 1)
		if synced != 1 {
			t.Errorf("%d last syncs, want 1", synced)
		}
	})
}

// wakePlan changes nothing and calls told at each operation of a kind on a path.
func wakePlan(op fsguard.Op, path string, told func()) crashtest.Plan {
	return watch(func(o fsguard.Op, p string) {
		if o == op && p == path {
			told()
		}
	})
}

// What happens between the arming and the look is seen by the look, and what happens
// between the look and the parking wakes: nobody looks before the watch stands, the
// second who waits neither.
func TestArmThenLookThenPark(t *testing.T) {
	t.Run("a look waits for the watch", func(t *testing.T) {
		bubble(t, Options{pollOff: true}, func(t *testing.T, sc *wakeScene) {
			stands := make(chan struct{})
			sc.fs.onWatch = func() { <-stands }
			waits := []<-chan error{sc.due(t.Context(), "mail"), sc.due(t.Context(), "mail")}
			sc.parked(t, waits...)
			sc.counted(t, "looks", &sc.wake.looks, 0)
			mustEnqueue(t, sc.other(t), "mail", small("a"))
			close(stands)
			sc.over(t, waits...)
		})
	})
	t.Run("between look and parking", func(t *testing.T) {
		bubble(t, Options{pollOff: true}, func(t *testing.T, sc *wakeScene) {
			other, first := sc.other(t), true
			committed := make(chan struct{})
			sc.ops.Arm(wakePlan(fsguard.OpUnlock, lockPath, func() {
				if !first {
					return
				}
				first = false
				watch, _ := sc.fs.last()
				go func() { // it waits for the lock, which the look still holds
					mustEnqueue(t, other, "mail", small("a"))
					watch.signal()
					close(committed)
				}()
			}))
			sc.over(t, sc.due(t.Context(), "mail"))
			<-committed
			sc.counted(t, "looks", &sc.wake.looks, 2)
		})
	})
}

// What a waiter was told between its look and its parking lets it look again, unless it
// was of the very commit that the look saw.
func TestToldBeforeParking(t *testing.T) {
	one, two := namedToken("one"), namedToken("two")
	for _, c := range []struct {
		name string
		told []token
		saw  token
		want bool // it looks again
	}{
		{"nothing", nil, one, false},
		{"the commit that it saw", []token{one}, one, false},
		{"the same one twice", []token{one, one}, one, false},
		{"another commit", []token{two}, one, true},
		{"that commit and another", []token{one, two}, one, true},
		{"another and then that", []token{two, one}, one, true},
		{"an event", []token{{}}, one, true},
		{"an event and that commit", []token{{}, one}, one, true},
		{"that commit and an event", []token{one, {}}, one, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Options{pollOff: true}, func(t *testing.T, sc *wakeScene) {
				ctx, cancel := context.WithCancel(t.Context())
				p, err := sc.wake.join()
				mustDo(t, err)
				defer sc.wake.leave(p)
				for _, commit := range c.told {
					sc.wake.committed(commit)
				}
				wait := wakeGo(func() error { return sc.wake.park(ctx, p, sight{commit: c.saw}) })
				if c.want {
					sc.over(t, wait)
				} else {
					sc.parked(t, wait)
				}
				cancel()
			})
		})
	}
}
