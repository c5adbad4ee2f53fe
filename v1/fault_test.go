//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// An error of the disk at each operation of each scenario, reads included, before and
// after it took effect. The process lives on and makes the same call again, which
// works; then the power goes.
//
// The disk forgives here: a later sync makes durable what a failed one had covered. The
// protocol has no more than that to offer, for another process cannot know that a sync
// failed; a filesystem whose directory syncs fail and then succeed over lost names is
// beyond it. TestFaultLeft tells what holds even there.
func TestFault(t *testing.T) {
	eachRoute(t, func(t *testing.T, c crashScenario, route, next Route) {
		if route == next && c.routes == nil {
			return // the other pair says as much
		}
		sc := c.scenario(route, next, true)
		setup := sc.Setup
		sc.Setup = func(t testing.TB, d *crashtest.Disk) {
			setup(t, d)
			d.SetForgiving(true)
		}
		crashtest.ExploreErrors(t, sc, sized(crashtest.Options{MaxImages: 1, AfterCheck: -1, Errnos: []syscall.Errno{syscall.EIO}}))
	})
}

// The same on a disk that does not forgive: the process ends with its first error, and
// whatever comes back after a loss of power has every entry that was durable, under
// some name from which recovery goes on.
func TestFaultLeft(t *testing.T) {
	eachRoute(t, func(t *testing.T, c crashScenario, route, next Route) {
		if route == next && c.routes == nil || c.two { // a second process would go on
			return
		}
		sc := c.scenario(route, next, true)
		sc.Run = func(fsys fsguard.FS, j *crashtest.Journal) {
			r := startRun(simPlace, fsys, route, j, crashTime)
			defer r.close()
			r.leave = true
			c.run(r)
		}
		sc.Check = func(_ testing.TB, fsys fsguard.FS, j *crashtest.Journal) error {
			r := startRun(simPlace, fsys, next, j, crashTime)
			defer r.close()
			return present(r.s, oracleOf(c.from, j).states())
		}
		crashtest.ExploreErrors(t, sc, sized(crashtest.Options{MaxImages: 1, AfterCheck: -1, Errnos: []syscall.Errno{syscall.EIO}}))
	})
}

// A faultCall is one call on an entry in a state.
type faultCall struct {
	name string
	from crashState
	do   func(ctx context.Context, s *Store) error
	want crashState
}

var faultCalls = []faultCall{
	{"enqueue", crashState{claimed: genA, pending: genB}, func(ctx context.Context, s *Store) error {
		_, err := s.Enqueue(ctx, crashID, []byte(genC))
		return err
	}, crashState{claimed: genA, pending: genC}},
	{"load", crashState{pending: genA}, loadAnd(nil), crashState{claimed: genA}},
	{"load standing", crashState{claimed: genA, pending: genB}, loadAnd(nil), crashState{claimed: genA, pending: genB}},
	{"ack", crashState{claimed: genA}, func(ctx context.Context, s *Store) error { return s.AckID(ctx, crashID) }, crashState{}},
	{"fail", crashState{claimed: genA}, func(ctx context.Context, s *Store) error { return s.FailID(ctx, crashID) }, crashState{failed: genA}},
	{"fail pending", crashState{pending: genA}, func(ctx context.Context, s *Store) error { return s.FailID(ctx, crashID) }, crashState{failed: genA}},
	{"migrate", crashState{claimed: genA}, loadAnd(&LoadOptions{Migrate: func(context.Context, string, []byte) ([]byte, error) {
		return []byte(genM), nil
	}}), crashState{claimed: genM}},
	{"batch", crashState{pending: genA}, func(ctx context.Context, s *Store) error {
		b, err := s.LoadPending(ctx, nil)
		for _, c := range b.Claims {
			c.drop()
		}
		return err
	}, crashState{claimed: genA}},
}

func loadAnd(o *LoadOptions) func(ctx context.Context, s *Store) error {
	return func(ctx context.Context, s *Store) error {
		c, err := s.Load(ctx, crashID, o)
		c.drop()
		return err
	}
}

var faultErrnos = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.EACCES, syscall.EPERM, syscall.EXDEV, syscall.ENOSYS}

// What an error at each operation comes back as, for each errno: itself, and uncertain
// if a directory's sync failed, and helper-unavailable if the route's own call was
// refused. Nothing is lost, no descriptor stays open, and the same call works again.
func TestFaultsAreTyped(t *testing.T) {
	for _, c := range faultCalls {
		for _, route := range bothRoutes {
			t.Run(fmt.Sprintf("%s/%v", c.name, route), func(t *testing.T) {
				t.Parallel()
				for i, errno := range faultErrnos {
					if raceDetector() && i > 0 {
						return
					}
					for k := 1; c.at(t, route, k, errno); k++ {
					}
				}
			})
		}
	}
}

// at fails the k-th operation, and reports whether there is one.
func (c faultCall) at(t *testing.T, route Route, k int, errno syscall.Errno) bool {
	d := crashtest.NewDisk()
	plantDirs(d)
	plantState(d, crashID, c.from)
	w := crashtest.Wrap(d.Process(), crashtest.Plan{})
	s, err := Open(simPlace.queue, simPlace.options(w, route, crashTime))
	if err != nil {
		t.Fatal(err)
	}
	open := w.Open()
	plan := crashtest.FailAt(k, errno)
	plan.Reads = true
	w.Arm(plan)
	err = c.do(t.Context(), s)
	if !w.Fired() {
		if err != nil {
			t.Fatalf("undisturbed: %v", err)
		}
		return false
	}
	events := w.Events()
	hit := events[slices.IndexFunc(events, func(e crashtest.Event) bool { return e.N == k })]
	c.typed(t, route, hit, errno, err)
	if now := w.Open(); !slices.Equal(now, open) {
		t.Errorf("%v: open afterwards: %q", hit, now)
	}
	if err := present(s, []crashState{c.from, c.want}); err != nil {
		t.Errorf("%v: %v", hit, err)
	}

	w.Arm(crashtest.Plan{})
	s.opts.now = simPlace.options(nil, 0, crashTime).now
	if err != nil {
		err = c.do(t.Context(), s)
	}
	if errors.Is(err, ErrLockStale) { // the release had failed
		if err := removeLocks(s.queue.dir); err != nil {
			t.Fatal(err)
		}
		err = c.do(t.Context(), s)
	}
	if err != nil && !errors.Is(err, ErrNotFound) { // it had happened before the error
		t.Errorf("%v: the same call again: %v", hit, err)
	}
	if got, err := lookAt(s, crashID); err != nil || got != c.want {
		t.Errorf("%v: then %v, %v; want %v", hit, got, err, c.want)
	}
	if v := w.Violations(); len(v) > 0 {
		t.Errorf("%v: %q", hit, v)
	}
	if err := s.Close(); err != nil || len(w.Open()) > 0 {
		t.Errorf("%v: close: %v, open: %q", hit, err, w.Open())
	}
	return true
}

// typed checks the error of a call in which one operation failed.
func (c faultCall) typed(t *testing.T, route Route, hit crashtest.Event, errno syscall.Errno, err error) {
	if err == nil {
		if hit.Op != fsguard.OpClose {
			t.Errorf("%v: no error", hit)
		}
		return
	}
	if !errors.Is(err, errno) {
		t.Errorf("%v: %v does not tell %v", hit, err, errno)
	}
	if got, want := errors.Is(err, ErrUncertain), hit.Op == fsguard.OpSyncDir; got != want {
		t.Errorf("%v: %v: uncertain %v, want %v", hit, err, got, want)
	}
	own := route == HardLink && hit.Op == fsguard.OpLink && slices.Contains(refused, errno) ||
		route == RenameNoReplace && hit.Op == fsguard.OpMoveNew && slices.Contains(unknown, errno)
	var link *LinkError
	if got := errors.Is(err, ErrHelperUnavailable); got != own || own && (!errors.As(err, &link) || link.Errno != errno || link.Route != route) {
		t.Errorf("%v: %v: helper-unavailable %v, want %v", hit, err, got, own)
	}
}

// A rename that answers with an error may have happened all the same: the entry is
// enqueued or not, and the answer does not say that it is not.
func TestFaultEnqueueAfterItsRename(t *testing.T) {
	for _, tt := range []struct {
		name      string
		plan      func(k int) crashtest.Plan
		uncertain bool
		want      crashState
	}{
		{"not done", func(k int) crashtest.Plan { return crashtest.FailAt(k, syscall.EIO) }, false, crashState{pending: genA}},
		{"done", func(k int) crashtest.Plan { return crashtest.FailAfter(k, syscall.EIO) }, true, crashState{pending: genB}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := crashtest.NewDisk()
			plantDirs(d)
			plantState(d, crashID, crashState{pending: genA})
			w := crashtest.Wrap(d.Process(), crashtest.Plan{})
			s := mustOpen(t, w, HardLink)
			w.Arm(tt.plan(4)) // create, write, sync, rename
			_, err := s.Enqueue(t.Context(), crashID, []byte(genB))
			if !errors.Is(err, syscall.EIO) || errors.Is(err, ErrUncertain) != tt.uncertain {
				t.Errorf("%v, want %v, uncertain %v", err, syscall.EIO, tt.uncertain)
			}
			if got, err := lookAt(s, crashID); err != nil || got != tt.want {
				t.Errorf("%v, %v; want %v", got, err, tt.want)
			}
			if err := noLitter(s); err != nil {
				t.Error(err)
			}
		})
	}
}
