//go:build unix

package holdfast

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A wakeFS is a filesystem whose watches are in the test's hand.
type wakeFS struct {
	fsguard.FS
	onWatch func() // runs before a watch is made

	mu     sync.Mutex
	refuse error // what Watch answers
	unsure bool
	tried  int
	made   []*wakeWatch
}

func (f *wakeFS) Watch(dir, name string) (fsguard.Watch, error) {
	if f.onWatch != nil {
		f.onWatch()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if dir != inSim() || name != stateFile {
		return nil, errors.New("a watch of something else than state.json")
	}
	if f.tried++; f.refuse != nil {
		return nil, f.refuse
	}
	w := &wakeWatch{c: make(chan struct{}, 1), unsure: f.unsure}
	f.made = append(f.made, w)
	return w, nil
}

// last gives the watch that was made last, and how many there were.
func (f *wakeFS) last() (*wakeWatch, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.made) == 0 {
		return nil, 0
	}
	return f.made[len(f.made)-1], len(f.made)
}

func (f *wakeFS) refuseWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

type wakeWatch struct {
	c      chan struct{}
	unsure bool
	lost   atomic.Bool
	closes atomic.Int64
}

func (w *wakeWatch) C() <-chan struct{} { return w.c }
func (w *wakeWatch) Lost() bool         { return w.lost.Load() }
func (w *wakeWatch) Sure() bool         { return !w.unsure }
func (w *wakeWatch) Close() error       { w.closes.Add(1); return nil }
func (w *wakeWatch) signal()            { w.c <- struct{}{} }

// A wakeClock is the bubble's clock and what it was set forward by.
type wakeClock struct{ set atomic.Int64 }

func (c *wakeClock) Now() instant {
	return instant{Wall: time.Now().Add(time.Duration(c.set.Load()))}
}

// A wakeScene is a store on a simulated disk, in a bubble: time passes only while
// everybody waits.
type wakeScene struct {
	*Store
	disk  *crashtest.Disk
	fs    *wakeFS
	ops   *crashtest.Wrapper
	clock *wakeClock
}

// bubble plays a scene.
func bubble(t *testing.T, o Options, play func(t *testing.T, sc *wakeScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := crashtest.NewDisk()
		d.MkdirAll("/data")
		sc := &wakeScene{disk: d, clock: &wakeClock{}}
		sc.ops = crashtest.Wrap(d.Process(), crashtest.Plan{})
		sc.fs = &wakeFS{FS: sc.ops}
		o.fs, o.clock = sc.fs, sc.clock
		var err error
		sc.Store, err = Create(t.Context(), simDir, &o)
		mustDo(t, err)
		defer sc.Close()
		play(t, sc)
	})
}

// other opens the store of a scene as another process does.
func (sc *wakeScene) other(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), simDir, &Options{fs: sc.disk.Process(), clock: sc.clock})
	mustDo(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// due waits in another goroutine.
func (sc *wakeScene) due(ctx context.Context, queues ...string) <-chan error {
	return wakeGo(func() error { return sc.WaitDue(ctx, queues...) })
}

func wakeGo(wait func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- wait() }()
	return c
}

// parked lets everything run that can, and fails the test if a wait is over.
func (sc *wakeScene) parked(t *testing.T, waits ...<-chan error) {
	t.Helper()
	synctest.Wait()
	for i, c := range waits {
		select {
		case err := <-c:
			t.Fatalf("wait %d is over: %v", i, err)
		default:
		}
	}
}

// over fails the test if a wait is not over with nil although everything ran.
func (sc *wakeScene) over(t *testing.T, waits ...<-chan error) {
	t.Helper()
	synctest.Wait()
	for i, c := range waits {
		select {
		case err := <-c:
			mustDo(t, err)
		default:
			t.Fatalf("wait %d goes on", i)
		}
	}
}

// counted checks what the waker has done since the scene began.
func (sc *wakeScene) counted(t *testing.T, what string, of *atomic.Int64, want int64) {
	t.Helper()
	if got := of.Load(); got != want {
		t.Errorf("%d %s, want %d", got, what, want)
	}
}

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
			renamed = renamed || op == fsguard.OpRename && path == statePath
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
		watch, _ := sc.fs.last()
		// The event comes at the rename, long before the commit is durable.
		sc.ops.Arm(wakePlan(fsguard.OpRename, statePath, watch.signal))
		mustEnqueue(t, sc.Store, "other", small("a"))
		sc.parked(t, wait)
		sc.counted(t, "looks", &sc.wake.looks, 2)
		mustEnqueue(t, sc.Store, "mail", small("a"))
		sc.over(t, wait)
		sc.counted(t, "looks", &sc.wake.looks, 3)
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

// A watch that was lost is closed and another made before anybody looks; while none
// can be made, the poll goes by the second and tries again every 30.
func TestLostWatch(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		wait := sc.due(t.Context(), "mail")
		sc.parked(t, wait)
		first, _ := sc.fs.last()
		first.lost.Store(true)
		first.signal()
		sc.parked(t, wait)
		second, n := sc.fs.last()
		if n != 2 || first.closes.Load() != 1 || second.closes.Load() != 0 {
			t.Fatalf("%d watches; the first closed %d times, the second %d", n, first.closes.Load(), second.closes.Load())
		}
		sc.counted(t, "looks", &sc.wake.looks, 2)

		// What nobody told of is found by the poll.
		second.lost.Store(true)
		sc.fs.refuseWith(syscall.EMFILE)
		time.Sleep(pollBehindEvents)
		sc.parked(t, wait)
		sc.counted(t, "polls", &sc.wake.polls, 1)
		sc.counted(t, "looks", &sc.wake.looks, 3)
		if second.closes.Load() != 1 {
			t.Error("the second watch is not closed")
		}
		time.Sleep(pollBehindEvents - 1)
		sc.parked(t, wait)
		sc.counted(t, "polls", &sc.wake.polls, 1+29)
		sc.counted(t, "watches tried", &sc.wake.watches, 3)
		sc.counted(t, "looks", &sc.wake.looks, 3)
		sc.fs.refuseWith(nil)
		time.Sleep(1)
		sc.parked(t, wait)
		sc.counted(t, "watches tried", &sc.wake.watches, 4)
		sc.counted(t, "looks", &sc.wake.looks, 4) // armed anew, so looked anew
		time.Sleep(pollBehindEvents)
		sc.parked(t, wait)
		sc.counted(t, "polls", &sc.wake.polls, 1+30+1)

		third, _ := sc.fs.last()
		mustEnqueue(t, sc.other(t), "mail", small("a"))
		sc.parked(t, wait)
		third.signal()
		sc.over(t, wait)
	})
}

// Without a watch another process's commit is found by the poll, within a second,
// and where there can never be one nobody tries again. A watch that is not sure is
// polled behind as often.
func TestPollFindsACommit(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse error
		unsure bool
		every  time.Duration
		tried  int
	}{
		{"no events here", errors.ErrUnsupported, false, pollWithoutEvents, 1},
		{"refused", syscall.ENOSPC, false, pollWithoutEvents, 3},
		{"a watch that is not sure", nil, true, pollWithoutEvents, 1},
		{"a watch that is sure and tells nothing", nil, false, pollBehindEvents, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
				sc.fs.refuse, sc.fs.unsure = c.refuse, c.unsure
				wait := sc.due(t.Context(), "mail")
				sc.parked(t, wait)
				time.Sleep(time.Minute)
				sc.parked(t, wait)
				sc.counted(t, "looks", &sc.wake.looks, 1)
				sc.counted(t, "polls", &sc.wake.polls, int64(time.Minute/c.every))
				mustEnqueue(t, sc.other(t), "mail", small("a"))
				time.Sleep(c.every - 1)
				sc.parked(t, wait)
				time.Sleep(1)
				sc.over(t, wait)
				sc.counted(t, "looks", &sc.wake.looks, 2)
				sc.counted(t, "watches tried", &sc.wake.watches, int64(c.tried))
			})
		})
	}
}

// What a poll tells, case by case.
func TestPollTells(t *testing.T) {
	file := fsguard.Info{Identity: fsguard.Identity{Dev: 1, Ino: 2}, Size: 3, CtimeNanos: 4}
	with := func(change func(*fsguard.Info)) fsguard.Info {
		f := file
		change(&f)
		return f
	}
	now := systemClock{}.Now().millis()
	for _, c := range []struct {
		name  string
		file  fsguard.Info
		err   error
		saw   sight
		watch *wakeWatch
		want  bool
	}{
		{"the same", file, nil, sight{file: file}, nil, false},
		{"another file", with(func(f *fsguard.Info) { f.Ino++ }), nil, sight{file: file}, nil, true},
		{"on another device", with(func(f *fsguard.Info) { f.Dev++ }), nil, sight{file: file}, nil, true},
		{"another size", with(func(f *fsguard.Info) { f.Size++ }), nil, sight{file: file}, nil, true},
		{"changed later", with(func(f *fsguard.Info) { f.CtimeNanos++ }), nil, sight{file: file}, nil, true},
		{"gone", file, syscall.ENOENT, sight{file: file}, nil, true},
		{"never looked", file, nil, sight{}, nil, true},
		{"young, no watch", file, nil, sight{file: file, young: true}, nil, true},
		{"young, a watch", file, nil, sight{file: file, young: true}, &wakeWatch{}, false},
		{"young, a watch that is not sure", file, nil, sight{file: file, young: true}, &wakeWatch{unsure: true}, true},
		{"due", file, nil, sight{file: file, next: now}, nil, true},
		{"not due", file, nil, sight{file: file, next: now + time.Hour.Milliseconds()}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &sentry{w: &waker{fs: wakeStat{file: c.file, err: c.err}, clock: systemClock{}, waiters: map[*parked]bool{}}, never: true}
			if c.watch != nil {
				s.watch = c.watch
			}
			p := &parked{told: make(chan struct{}, 1), last: c.saw}
			s.w.waiters[p] = true
			s.poll()
			if got := len(p.told) == 1; got != c.want {
				t.Errorf("told %v, want %v", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		ctime time.Time
		want  bool
	}{
		{time.Now(), true}, {time.Now().Add(-youngFile), false}, {time.Now().Add(time.Hour), false}, {time.Unix(0, 1), false},
	} {
		if got := young(fsguard.Info{CtimeNanos: c.ctime.UnixNano()}); got != c.want {
			t.Errorf("made at %v: young %v, want %v", c.ctime, got, c.want)
		}
	}
}

// A wakeStat answers Stat and nothing else.
type wakeStat struct {
	fsguard.FS
	file fsguard.Info
	err  error
}

func (s wakeStat) Stat(string) (fsguard.Info, error) { return s.file, s.err }
