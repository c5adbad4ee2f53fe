//go:build unix

package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// A lockScene is a store on a clock with one pending entry whose lock is held by others.
type lockScene struct {
	*unitClock
	s    *Store
	d    unitDirs
	lock string // the path
}

// newLockScene lets the record say that the lock was taken at created.
func newLockScene(t *testing.T, created func(now time.Time) time.Time) *lockScene {
	t.Helper()
	x := &lockScene{unitClock: newUnitClock(), d: newUnitDirs(t)}
	x.s = x.d.open(t, unitWay{Auto, HardLink}, x.on(Options{}))
	unitPut(t, x.d.at("a.json"), `1`)
	x.lock = x.d.at(namesOf("a").lock)
	unitPut(t, x.lock, trialRecord(t, created(x.now()), nil))
	return x
}

func lockForever(now time.Time) time.Time { return now.Add(time.Hour) }

func (x *lockScene) load(ctx context.Context) error {
	c, err := x.s.Load(ctx, "a", nil)
	if err == nil {
		err = c.Close()
	}
	return err
}

// The pauses: 180 of them, 25 ms growing by a tenth up to 250 ms, in whole milliseconds.
func TestBackOff(t *testing.T) {
	x := newLockScene(t, lockForever)
	err := x.load(t.Context())
	var held *LockError
	unitIs(t, "load", err, ErrLockTimeout)
	if !errors.As(err, &held) || held.Lock.Owner != "token-of-another" || held.Lock.File != namesOf("a").lock {
		t.Errorf("the lock is %+v", held)
	}
	if len(x.slept) != 180 {
		t.Fatalf("%d pauses, want 180", len(x.slept))
	}
	var sum time.Duration
	for i, got := range x.slept {
		ms := 25.0
		for range i {
			ms *= 1.1
		}
		if want := time.Duration(math.Round(min(ms, 250))) * time.Millisecond; got != want {
			t.Errorf("pause %d is %v, want %v", i, got, want)
		}
		sum += got
	}
	if sum > lockPatience || sum < lockStaleness {
		t.Errorf("the pauses take %v", sum)
	}
	if x.slept[0] != 25*time.Millisecond || x.slept[1] != 28*time.Millisecond || x.slept[179] != 250*time.Millisecond {
		t.Errorf("the pauses are %v", x.slept)
	}
}

// Where pauses take longer than they should, 45 s are the end of it.
func TestPatience(t *testing.T) {
	x := newLockScene(t, lockForever)
	x.slow = 2 * time.Second
	began := x.now()
	unitIs(t, "load", x.load(t.Context()), ErrLockTimeout)
	if took := x.now().Sub(began); took < lockPatience || took > lockPatience+x.slow {
		t.Errorf("it took %v", took)
	}
	// None begins that would end later.
	var planned time.Duration
	for i, pause := range x.slept {
		if planned+time.Duration(i)*x.slow+pause > lockPatience {
			t.Errorf("pause %d of %v ends after %v", i, pause, lockPatience)
		}
		planned += pause
	}
}

// 30 s old is not stale; anything older is. By the record's time, or else the file's.
func TestStaleBoundary(t *testing.T) {
	for _, c := range []struct {
		name  string
		age   time.Duration
		stale bool
	}{
		{"fresh", 0, false},
		{"30 s less 1 ms", lockStaleness - time.Millisecond, false},
		{"30 s", lockStaleness, false},
		{"30 s and 1 ms", lockStaleness + time.Millisecond, true},
		{"a day", 24 * time.Hour, true},
		{"to come", -time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, recorded := range []bool{true, false} {
				x := newLockScene(t, func(now time.Time) time.Time { return now.Add(-c.age) })
				if !recorded {
					unitPut(t, x.lock, "")
					at := x.now().Add(-c.age)
					unitOK(t, os.Chtimes(x.lock, at, at))
				}
				ctx, cancel := context.WithCancel(t.Context())
				x.while = func(int, time.Duration) { cancel() } // a pause means: not stale
				err := x.load(ctx)
				cancel()
				if !c.stale {
					unitIs(t, "load", err, context.Canceled)
					continue
				}
				var held *LockError
				unitIs(t, "load", err, ErrLockStale, "never taken over")
				if !errors.As(err, &held) || held.Lock.Age != c.age || !held.Lock.Stale() || len(x.slept) > 0 {
					t.Errorf("the lock is %+v after %d pauses", held, len(x.slept))
				}
			}
		})
	}
}

// A lock that goes stale while it is waited for ends the wait; one that is given back, or
// whose .reclaim goes, is taken.
func TestWaiting(t *testing.T) {
	own := func(now time.Time) time.Time { return now }
	t.Run("goes stale", func(t *testing.T) {
		x := newLockScene(t, own)
		began := x.now()
		unitIs(t, "load", x.load(t.Context()), ErrLockStale)
		if took := x.now().Sub(began); took <= lockStaleness || took > lockStaleness+lockMaxDelay {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("given back", func(t *testing.T) {
		x := newLockScene(t, own)
		x.while = func(n int, _ time.Duration) {
			if n == 3 {
				unitOK(t, os.Remove(x.lock))
			}
		}
		unitOK(t, x.load(t.Context()))
		if len(x.slept) != 3 {
			t.Errorf("%d pauses, want 3", len(x.slept))
		}
		x.d.wantNames(t, "a.processing 1", "")
	})
	t.Run("changes hands", func(t *testing.T) {
		x := newLockScene(t, own)
		x.while = func(n int, _ time.Duration) {
			if n%100 == 0 { // every 20 s or so
				unitPut(t, x.lock, strings.Replace(trialRecord(t, x.now(), nil), "another", "a third", 1))
			}
		}
		unitIs(t, "load", x.load(t.Context()), ErrLockTimeout, "owner token-of-a third")
		if len(x.slept) != lockTries {
			t.Errorf("%d pauses, want %d", len(x.slept), lockTries)
		}
	})
	t.Run("reclaim goes", func(t *testing.T) {
		x := newLockScene(t, own)
		unitOK(t, os.Rename(x.lock, x.lock+reclaimSuffix))
		x.while = func(n int, _ time.Duration) {
			if n == 5 {
				unitOK(t, os.Remove(x.lock+reclaimSuffix))
			}
		}
		unitOK(t, x.load(t.Context()))
		if len(x.slept) != 5 {
			t.Errorf("%d pauses, want 5", len(x.slept))
		}
	})
}

// A context that has ended counts at once, before anything is touched; one that ends
// while a lock is waited for, at the next look.
func TestCancelledContext(t *testing.T) {
	x := newLockScene(t, lockForever)
	refuseClaimed(t, x.d, "b", `2`)
	c := unitLoad(t, x.s, "b", "2")
	unitPut(t, x.d.at("d.delivered"), "")
	before := x.d.tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"load":       x.load(ctx),
		"enqueue":    func() error { _, err := x.s.Enqueue(ctx, "c", []byte(`1`)); return err }(),
		"ack":        x.s.Ack(ctx, c),
		"ack by ID":  x.s.AckID(ctx, "b"),
		"fail":       x.s.Fail(ctx, c),
		"fail by ID": x.s.FailID(ctx, "a"),
		"batch":      func() error { _, err := x.s.LoadPending(ctx, &BatchOptions{TempMaxAge: 1}); return err }(),
		"status":     func() error { _, err := x.s.Status(ctx); return err }(),
	} {
		unitIs(t, what, err, context.Canceled)
	}
	if len(x.slept) > 0 {
		t.Errorf("%d pauses", len(x.slept))
	}
	unitUnchanged(t, before, x.d.tree(t))

	ctx, cancel = context.WithCancel(t.Context())
	x.while = func(n int, _ time.Duration) {
		if n == 2 {
			cancel()
		}
	}
	unitIs(t, "load", x.load(ctx), context.Canceled)
	if len(x.slept) != 2 {
		t.Errorf("%d pauses, want 2", len(x.slept))
	}
	unitUnchanged(t, before, x.d.tree(t))
}

// The system's own pause takes its time, and ends with the context at once.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		unitOK(t, sleep(t.Context(), 250*time.Millisecond))
		if took := time.Since(began); took != 250*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

// While a transition runs its lock stands with its record; it is gone afterwards. A lock
// that was taken away meanwhile is missed, and another's is not removed.
func TestRelease(t *testing.T) {
	for _, c := range []struct {
		name   string
		meddle func(t *testing.T, path string)
		left   bool
	}{
		{"nothing happens", nil, false},
		{"gone", func(t *testing.T, path string) { unitOK(t, os.Remove(path)) }, false},
		{"another's", func(t *testing.T, path string) {
			unitOK(t, os.Remove(path))
			unitPut(t, path, trialRecord(t, time.Now(), nil))
		}, true},
		{"written over", func(t *testing.T, path string) { unitPut(t, path, "mine") }, true},
		{"a copy cut short", func(t *testing.T, path string) { unitOK(t, os.Truncate(path, 100)) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachUnitWay(t, func(t *testing.T, w unitWay) {
				d := newUnitDirs(t)
				path := d.at(namesOf("a").lock)
				hook := onEntries(func(_, _ string, call func() error) error {
					text, err := os.ReadFile(path)
					owner, created := parseRecord(text)
					info, serr := os.Lstat(path)
					if err != nil || serr != nil || owner == "" || time.Since(created).Abs() > time.Hour || info.Mode() != 0o600 {
						t.Errorf("the lock holds %q, %v %v", text, err, serr)
					}
					if c.meddle != nil {
						c.meddle(t, path)
					}
					return call()
				})
				s := d.open(t, w, Options{fs: w.hooked(t, hook)})
				unitPut(t, d.at("a.json"), `1`)
				_, err := s.Load(t.Context(), "a", nil)
				if c.meddle == nil {
					unitOK(t, err)
				} else {
					unitIs(t, "load", err, ErrPathMismatch, namesOf("a").lock, "taken away")
				}
				if _, err := os.Lstat(path); (err == nil) != c.left {
					t.Errorf("afterwards the lock: %v", err)
				}
				unitOK(t, os.RemoveAll(path))
				unitLoad(t, s, "a", "1") // the claim stands all the same
			})
		})
	}
}

// A lock that cannot be written, or looked at, is not left behind: it would go stale.
func TestLockFails(t *testing.T) {
	lock := namesOf("a").lock
	for _, c := range []struct {
		name string
		op   fsguard.Op
		path string
	}{
		{"not created", fsguard.OpCreate, lock},
		{"not written", fsguard.OpWrite, lock},
		{"not looked at", fsguard.OpInfo, lock},
		{"reclaim not looked at", fsguard.OpLstat, lock + reclaimSuffix},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newUnitDirs(t)
			w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
			s := d.open(t, unitWay{Auto, RenameNoReplace}, Options{fs: w})
			unitPut(t, d.at("a.json"), `1`)
			before := d.tree(t)
			w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == c.op && path == c.path }, syscall.ENOSPC, 1))
			_, err := s.Load(t.Context(), "a", nil)
			unitIs(t, "load", err, syscall.ENOSPC)
			if !w.Fired() {
				t.Error("nothing failed")
			}
			unitUnchanged(t, before, d.tree(t))
			unitLoad(t, s, "a", "1")
		})
	}
	// One that cannot be read is no evidence of anything: the error is the system's.
	x := newLockScene(t, lockForever)
	w := crashtest.Wrap(fsguard.OS(), crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		return op == fsguard.OpRead && path == lock
	}, syscall.EIO, 0))
	s := x.d.open(t, unitWay{Auto, HardLink}, x.on(Options{fs: w}))
	_, err := s.Load(t.Context(), "a", nil)
	unitIs(t, "load", err, syscall.EIO)
	if _, err := os.Lstat(x.lock); err != nil || len(x.slept) > 0 {
		t.Errorf("the lock: %v, after %d pauses", err, len(x.slept))
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("taken for a lock that is not there")
	}
}
