//go:build unix

package holdfast

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// The crash tests compare what a new process finds with what the dead one had been
// promised. A scenario is a list of steps. One undisturbed run tells what the store
// looks like after each step; after a crash it must look as after the last step that
// was acknowledged, or as after the one that was under way: wholly there or wholly
// absent, nothing between, nothing else.

const crashDir = "/data/store"

// fixedClock stands still.
type fixedClock struct{ at instant }

func (c fixedClock) Now() instant { return c.at }

var crashClock = fixedClock{instant{Wall: time.UnixMilli(1_764_500_000_000), BootID: "11111111-2222-3333-4444-555555555555", Boot: time.Hour}}

var processes atomic.Uint64

// crashOptions gives a new process: its tokens are its own. In an exploration they are
// the same whenever it comes to the same point.
func crashOptions(fs fsguard.FS) *Options {
	var seed [32]byte
	if moment, ok := crashtest.Moment(fs); ok {
		binary.LittleEndian.PutUint64(seed[8:], moment[0])
		binary.LittleEndian.PutUint64(seed[16:], moment[1])
	} else {
		binary.LittleEndian.PutUint64(seed[:], processes.Add(1))
	}
	return &Options{fs: fs, clock: crashClock, rand: rand.NewChaCha8(seed), holders: &holderSet{}, gather: -1, prepare: -1, block: 2}
}

// replaying reports whether explorations only do one thing again: see CRASHTEST_REPLAY.
func replaying() bool { return os.Getenv("CRASHTEST_REPLAY") != "" }

// A crashStep is one call. It keeps receipts of its own in r.
type crashStep func(ctx context.Context, s *Store, r receipts) error

type receipts map[string]queue.Receipt

type crashScenario struct {
	name  string
	setup func(t testing.TB, d *crashtest.Disk, s *Store)
	steps []crashStep
	leave bool // an uncertain commit is left to the next process
	quiet bool // the first process after the crash only looks
	cold  bool // the steps need no receipts, and meet runs that the process has not read
	plain bool // the disk exchanges no names: a store without the feature
	stops bool // it exchanges none any more once the store is made
	named bool // each commit makes its spare, and so syncs the namespace last

	prepare int // Options.prepare; 0: never

	collects bool // and so does the next process: then nothing is left over

	damaged bool // verify finds the payload that the set-up damaged
}

// run takes the steps one by one. A step that failed without a doubt is tried once
// more: nothing had happened, and the next try works. What it says that is not so goes
// into the journal under wrongKey.
func (c crashScenario) run(fs fsguard.FS, j *crashtest.Journal) {
	ctx := context.Background()
	o := crashOptions(fs)
	if c.prepare > 0 {
		o.prepare = c.prepare
	}
	s, err := Open(ctx, crashDir, o)
	if err != nil {
		return
	}
	defer s.Close()
	r := receipts{}
	if !c.cold && !r.load(s) {
		return
	}
	wrong := func(format string, args ...any) { j.Fail(wrongKey, fmt.Errorf(format, args...)) }
	for i, step := range c.steps {
		key := stepKey(i)
		done := false
		if c.named {
			waitIdle(s)
			loseSpares(s)
		}
		for try := 0; try < 2 && !done; try++ {
			j.Begin(key, nil)
			err := step(ctx, s, r)
			var u *queue.UncertainError
			switch {
			case err == nil:
				j.Ack(key, nil)
				done = true
			case errors.As(err, &u):
				j.Fail(key, stepError{err})
				if c.leave {
					return
				}
				committed, err := s.Resolve(ctx, u)
				if err != nil {
					if !errors.Is(err, crashtest.ErrStopped) {
						wrong("%s: resolve: %w", key, err)
					}
					return
				}
				if committed {
					j.Ack(key, nil)
					if !c.cold {
						r.load(s)
					}
					done = true
				}
			case errors.Is(err, crashtest.ErrStopped):
				j.Fail(key, stepError{err})
				return
			default:
				j.Fail(key, stepError{err})
				if try > 0 {
					wrong("%s: the next try: %w", key, err)
				}
				if !tellsWhy(err, fs) {
					wrong("%s: the error does not tell what failed: %w", key, err)
				}
			}
		}
		if !done {
			return
		}
	}
}

// wrongKey is where a run tells of an answer that is wrong whatever is on the disk.
const wrongKey = "wrong"

// tellsWhy reports whether the error of a refused step is one that a caller can act on: an
// errno that an operation has ended in, or that there is a dead owner's record, which a
// recovery could not blank.
func tellsWhy(err error, fs fsguard.FS) bool {
	w, ok := fs.(*crashtest.Wrapper)
	return !ok || errors.Is(err, ErrStaleLock) || slices.ContainsFunc(w.Events(), func(e crashtest.Event) bool {
		var errno syscall.Errno
		return errors.As(e.Err, &errno) && errors.Is(err, errno)
	})
}

// A stepError is what a step returned. To those who come later only its doubt counts.
type stepError struct{ error }

func (e stepError) Unwrap() error { return e.error }

func (e stepError) Alike() string {
	var u *queue.UncertainError
	if errors.As(e.error, &u) {
		return "uncertain " + u.Commit
	}
	return "nothing happened"
}

func stepKey(i int) string { return fmt.Sprintf("step %d", i) }

// load collects the receipts of what is leased.
func (r receipts) load(s *Store) bool {
	page, err := s.List(context.Background(), "mail", queue.ListOptions{})
	for _, e := range page.Entries {
		if e.State == queue.Processing {
			r[e.ID] = e.Receipt
		}
	}
	return err == nil
}

// allowed says what the journal lets a new process find: the looks after so many
// steps.
func allowed(j *crashtest.Journal, steps int) []int {
	for i := range steps {
		e, ok := j.Last(stepKey(i))
		switch {
		case !ok:
			return []int{i}
		case e.State == crashtest.Acked:
			continue
		case e.State == crashtest.Failed && !errors.Is(e.Value.(error), queue.ErrUncertain):
			return []int{i} // an error without a doubt: nothing happened
		}
		return []int{i, i + 1}
	}
	return []int{steps}
}

// looks runs the scenario undisturbed and gives what the store looks like after
// each number of steps.
func (c crashScenario) looks(t *testing.T) []string {
	d := crashtest.NewDisk()
	c.make(t, d)
	s, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := receipts{}
	r.load(s)
	out := []string{mustLook(t, s)}
	for i, step := range c.steps {
		if err := step(t.Context(), s, r); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		out = append(out, mustLook(t, s))
	}
	for i := 1; i < len(out); i++ {
		if out[i] == out[i-1] {
			t.Fatalf("step %d cannot be told from the one before:\n%s", i-1, out[i])
		}
	}
	return out
}

// make creates the store of the scenario.
func (c crashScenario) make(t testing.TB, d *crashtest.Disk) {
	d.MkdirAll("/data")
	if c.plain {
		d.SetExchangeError(syscall.ENOSYS)
	}
	p := d.Process()
	s, err := Create(context.Background(), crashDir, crashOptions(p))
	if err != nil {
		t.Fatal(err)
	}
	if c.stops {
		d.SetExchangeError(syscall.ENOSYS)
	}
	if c.setup != nil {
		c.setup(t, d, s)
	}
	s.Close()
	p.Kill()
}

// scenario is c for the explorer.
func (c crashScenario) scenario(t *testing.T) crashtest.Scenario {
	looks := c.looks(t)
	return crashtest.Scenario{
		Name:  c.name,
		Setup: c.make,
		Run:   c.run,
		Check: func(t testing.TB, fs fsguard.FS, j *crashtest.Journal) error {
			return c.check(fs, j, looks)
		},
	}
}

// check is the new process: it opens, recovers, compares, and works on.
func (c crashScenario) check(fs fsguard.FS, j *crashtest.Journal, looks []string) error {
	if e, ok := j.Last(wrongKey); ok {
		return e.Value.(error)
	}
	ctx := context.Background()
	s, err := Open(ctx, crashDir, crashOptions(fs))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	status, err := s.Status(ctx, queue.StatusOptions{})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if !status.Settled {
		if status.Complete() {
			return errors.New("an unsettled status says complete")
		}
		if _, err := s.Clear(ctx, "nothing", queue.ClearOptions{}); !errors.Is(err, ErrStaleLock) {
			return fmt.Errorf("a call under a dead owner's record: %v, want ErrStaleLock", err)
		}
		if _, err := s.Recover(ctx); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
	}
	report, err := s.Verify(ctx, VerifyOptions{})
	if err != nil || !report.Settled || report.OK == c.damaged {
		return fmt.Errorf("verify: %+v, %v", report, err)
	}
	got, err := look(s)
	if err != nil {
		return fmt.Errorf("look: %w", err)
	}
	want := allowed(j, len(looks)-1)
	at := slices.IndexFunc(want, func(i int) bool { return looks[i] == got })
	if at < 0 {
		var b strings.Builder
		for _, i := range want {
			fmt.Fprintf(&b, "after %d steps:\n%s", i, looks[i])
		}
		return fmt.Errorf("found\n%swant one of\n%s", got, b.String())
	}
	e, again := j.Last("found", crashtest.Acked)
	if again && e.Value != got {
		return fmt.Errorf("found\n%sbut the process before, which had recovered, had found\n%s", got, e.Value)
	}
	j.Ack("found", got)
	if err := checkResolve(s, j, want[at]); err != nil {
		return err
	}
	if c.quiet && !again {
		return nil
	}
	if c.collects {
		if err := collectAll(s, got); err != nil {
			return err
		}
	}
	return workOn(s, j)
}

// collectAll collects, and finds nothing left over and all else as it was.
func collectAll(s *Store, want string) error {
	ctx := context.Background()
	if r, err := s.Collect(ctx, CollectOptions{}); err != nil || !r.Done || len(r.Kept) > 0 {
		return fmt.Errorf("collect: %+v, %w", r, err)
	}
	r, err := s.Verify(ctx, VerifyOptions{})
	if err != nil || !r.OK || r.Orphans+r.Temps > 0 {
		return fmt.Errorf("verify after collecting: %+v, %w", r, err)
	}
	if got, err := look(s); err != nil || got != want {
		return fmt.Errorf("after collecting: %w\n%swant\n%s", err, got, want)
	}
	return nil
}

// checkResolve asks about the uncertain commit, if there was one: the answer must
// agree with what is there, or be that nobody can tell any more.
func checkResolve(s *Store, j *crashtest.Journal, found int) error {
	for _, key := range j.Keys() {
		e, ok := j.Last(key)
		if !ok || e.State != crashtest.Failed {
			continue
		}
		var u *queue.UncertainError
		if !errors.As(e.Value.(error), &u) {
			continue
		}
		committed, err := s.Resolve(context.Background(), u)
		if errors.Is(err, ErrUnresolved) {
			continue
		}
		if err != nil {
			return fmt.Errorf("resolve: %w", err)
		}
		if is := key == stepKey(found-1); is != committed {
			return fmt.Errorf("resolve of %s says %v, but %d steps are there", key, committed, found)
		}
	}
	return nil
}

// workOn proves that the store goes on, and that this is durable too: what one
// process enqueued, the next must find.
func workOn(s *Store, j *crashtest.Journal) error {
	ctx := context.Background()
	_, err := s.Show(ctx, "probe", "p")
	if _, acked := j.Last("probe", crashtest.Acked); acked && err != nil {
		return fmt.Errorf("what was enqueued after the recovery: %w", err)
	}
	_, err = s.Enqueue(ctx, "probe", queue.Message{ID: "p", Payload: []byte(`"probe"`), IfExists: queue.Keep})
	if err != nil {
		return fmt.Errorf("enqueue after the recovery: %w", err)
	}
	j.Ack("probe", nil)
	return nil
}
