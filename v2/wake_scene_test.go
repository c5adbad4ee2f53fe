//go:build unix

package holdfast

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
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
		o.fs, o.clock, o.holders, o.gather = sc.fs, sc.clock, &holderSet{}, -1
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
	s, err := Open(t.Context(), simDir, &Options{fs: sc.disk.Process(), clock: sc.clock, holders: &holderSet{}})
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

// pass lets time pass, and fails the test if a wait is over then.
func (sc *wakeScene) pass(t *testing.T, d time.Duration, waits ...<-chan error) {
	t.Helper()
	time.Sleep(d) // in a bubble: no time at all
	sc.parked(t, waits...)
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
