//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// The crash tests compare what a new process finds with what the dead one had been
// promised: where each generation is after recovery must be a state that the oracle
// of crash_model_test.go admits. A newer process has a later clock, so that the dead
// one's transfer lock reads stale: it is refused, and removed as an operator would.

// crashPlace is where the directories of a crash test are.
type crashPlace struct{ queue, failed string }

var simPlace = crashPlace{"/data/q", "/data/f"}

var (
	crashTime      = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	crashProcesses atomic.Int64
	errCrashSlept  = errors.New("waited for a lock that nobody holds")
)

// crashOptions gives a new process, an hour later than the one before.
func (p crashPlace) options(fsys fsguard.FS, r Route, since time.Time) *Options {
	now := since.Add(time.Duration(crashProcesses.Add(1)) * time.Hour)
	return &Options{
		FailedDir: p.failed, ClaimBy: r, fs: fsys,
		now:   func() time.Time { return now },
		sleep: func(context.Context, time.Duration) error { return errCrashSlept },
	}
}

// A crashRun is a process that will die. Its calls are noted in the journal, each
// before and after.
type crashRun struct {
	place crashPlace
	fs    fsguard.FS
	route Route
	j     *crashtest.Journal
	s     *Store // nil: could not be opened
	since time.Time
	calls *int
	leave bool // the first error ends it
}

// startRun opens the store as a new process, at the second try if need be.
func startRun(place crashPlace, fsys fsguard.FS, route Route, j *crashtest.Journal, since time.Time) *crashRun {
	r := &crashRun{place: place, fs: fsys, route: route, j: j, since: since, calls: new(int)}
	for range 2 {
		s, err := Open(place.queue, place.options(fsys, route, since))
		if err == nil {
			s.link.proven = true // the probe has tests of its own; here it would be in every scenario
			r.s = s
			break
		}
	}
	return r
}

func (r *crashRun) close() {
	if r.s != nil {
		_ = r.s.Close()
	}
}

func (r *crashRun) begin(key string, m crashMove) { r.j.Begin(key, m) }

func (r *crashRun) key() string {
	*r.calls++
	return fmt.Sprintf("call %d", *r.calls)
}

// do makes a call that is move, and makes it again after an error: then it must work. A
// transfer lock that an error left behind is removed by an operator who knows that nobody
// holds it.
func (r *crashRun) do(move crashMove, call func() (told func(crashState) bool, err error)) bool {
	if r.s == nil {
		return false
	}
	var last error
	for range 3 {
		key := r.key()
		r.j.Begin(key, move)
		told, err := call()
		if err == nil {
			r.j.Ack(key, told)
			return true
		}
		r.j.Fail(key, err)
		if r.leave || errors.Is(err, crashtest.ErrStopped) {
			return false
		}
		if errors.Is(err, ErrLockStale) && removeLocks(r.s.queue.dir) != nil {
			return false
		}
		r.s.opts.now = r.place.options(nil, 0, r.since).now // an hour later
		last = err
	}
	r.j.Fail(againKey, last)
	return false
}

// againKey is noted when a call does not work although nothing fails any more.
const againKey = "again"

func removeLocks(q fsguard.Dir) error {
	names, err := q.ReadDir()
	for _, name := range names {
		if isLock(name) {
			err = errors.Join(err, q.Remove(name))
		}
	}
	return err
}

func claims(payload string) func(crashState) bool {
	return func(s crashState) bool { return s.claimed == payload }
}

const crashID = "a"

func (r *crashRun) enqueue(payload string) bool {
	return r.do(movePut(payload), func() (func(crashState) bool, error) {
		_, err := r.s.Enqueue(context.Background(), crashID, []byte(payload))
		return nil, err
	})
}

func (r *crashRun) load() (c *Claim) {
	r.do(moveLoad, func() (_ func(crashState) bool, err error) {
		if c, err = r.s.Load(context.Background(), crashID, nil); err != nil {
			return nil, err
		}
		return claims(string(c.Payload)), nil
	})
	return c
}

// settle loads and ends the claim.
func (r *crashRun) settle(move func(payload string) crashMove, end func(ctx context.Context, c *Claim) error) bool {
	c := r.load()
	if c == nil {
		return false
	}
	defer c.Close()
	return r.do(move(string(c.Payload)), func() (func(crashState) bool, error) {
		return nil, end(context.Background(), c)
	})
}

func (r *crashRun) ack() bool  { return r.s != nil && r.settle(moveEnd, r.s.Ack) }
func (r *crashRun) fail() bool { return r.s != nil && r.settle(moveFail, r.s.Fail) }

// migrate loads with a callback. By the time that it is called the claim is durable.
func (r *crashRun) migrate(payload string) (c *Claim) {
	r.do(moveLoad, func() (told func(crashState) bool, err error) {
		again := ""
		c, err = r.s.Load(context.Background(), crashID, &LoadOptions{Migrate: func(_ context.Context, _ string, old []byte) ([]byte, error) {
			if string(old) != payload {
				again = r.key()
				r.j.Begin(again, moveMigrate(string(old), payload))
			}
			return []byte(payload), nil
		}})
		if err == nil && again != "" {
			r.j.Ack(again, nil)
		}
		return claims(payload), err
	})
	return c
}

// batch is LoadPending of everything; it gives the claim of crashID, if there is one.
func (r *crashRun) batch() (mine *Claim) {
	r.do(moveAny(moveLoad), func() (func(crashState) bool, error) {
		b, err := r.s.LoadPending(context.Background(), &BatchOptions{TempMaxAge: time.Minute})
		told := claims("")
		for _, c := range b.Claims {
			if c.ID == crashID && err == nil {
				mine, told = c, claims(string(c.Payload))
			} else {
				err = errors.Join(err, c.Close())
			}
		}
		if err == nil && len(b.Skipped) > 0 {
			err = fmt.Errorf("skipped: %v", b.Skipped)
		}
		return told, err
	})
	return mine
}

// moveAny is m where it can be made.
func moveAny(m crashMove) crashMove {
	return func(s crashState) (crashState, bool) {
		if next, ok := m(s); ok {
			return next, true
		}
		return s, true
	}
}

// during lets do happen just before the first operation that match means. What it does
// is done past r's own calls.
func (r *crashRun) during(match func(op fsguard.Op, path string) bool, do func()) {
	if r.s == nil {
		return
	}
	done := false
	outer := crashtest.Wrap(r.fs, watchOps(func(op fsguard.Op, path string) {
		if !done && match(op, path) {
			done = true
			do()
		}
	}))
	s, err := Open(r.place.queue, r.place.options(outer, r.route, r.since))
	if err != nil {
		if s, err = Open(r.place.queue, r.place.options(outer, r.route, r.since)); err != nil {
			return
		}
	}
	s.link.proven = true
	_ = r.s.Close()
	r.s = s
}

// beside gives another process's calls on the same journal.
func (r *crashRun) beside() *crashRun {
	b := startRun(r.place, r.fs, r.route, r.j, r.since)
	b.calls, b.leave = r.calls, r.leave
	return b
}

// watchOps gives a plan that changes nothing and tells each operation before it is
// done. Nothing else passes the wrapper while told runs.
func watchOps(told func(op fsguard.Op, path string)) crashtest.Plan {
	return crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		told(op, path)
		return false
	}, nil, 0)
}

// plantDirs makes both directories.
func plantDirs(d *crashtest.Disk) {
	d.MkdirAll(simPlace.queue)
	d.MkdirAll(simPlace.failed)
}

// mustOpen opens a store on a simulated disk.
func mustOpen(t testing.TB, fsys fsguard.FS, r Route) *Store {
	t.Helper()
	s, err := Open(simPlace.queue, simPlace.options(fsys, r, crashTime))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, fs.ErrClosed) && !errors.Is(err, crashtest.ErrKilled) {
			t.Error(err)
		}
	})
	return s
}
