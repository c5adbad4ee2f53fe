//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// clean is the plan in which nothing goes wrong.
const clean = "clean"

// An explorer is one exploration.
type explorer struct {
	t     testing.TB
	s     Scenario
	o     Options
	start *Disk
	clean []Event // of the undisturbed Run

	mu    sync.Mutex
	stats Stats
	met   map[fingerprint]int // the rank of the first point that met a world
}

// A world is a disk, what the oracle knows of it, and how it came about: plans and
// losses in turn.
type world struct {
	disk    *Disk
	journal *Journal
	path    []string
	played  []played
	rank    int // of the point that it comes from, in the order of the operations
}

// played is what a process did on the way to a world.
type played struct {
	what string
	ops  *Wrapper
}

// after returns w with one more step.
func (w world) after(disk *Disk, j *Journal, step string) world {
	return world{disk, j, append(slices.Clip(w.path), step), w.played, w.rank}
}

func explore(t testing.TB, s Scenario, o Options, failing bool, plan func([]Event, Options) []string) Stats {
	t.Helper()
	e := &explorer{t: t, s: s, o: o.withDefaults(), start: NewDisk(), met: map[fingerprint]int{}}
	e.stats.Exhaustive = true
	if err := guard(t, e.o.Timeout, func(t testing.TB) error { s.Setup(t, e.start); return nil }); err != nil {
		t.Fatalf("scenario %s: Setup: %v", s.Name, err)
	}
	e.start.Settle()
	if replay := os.Getenv("CRASHTEST_REPLAY"); replay != "" {
		e.replay(replay)
		return e.stats
	}

	if err := e.point(-1, clean, nil); err != nil {
		t.Fatal(err)
	}
	plans := sampled(plan(e.clean, e.o), e.o.Every)
	stride := 2*len(plans) + 1 // none
	if e.o.SecondCrash > 0 {
		stride = max(1, len(plans)/e.o.SecondCrash)
	}
	err := inParallel(len(plans), func(i int) error {
		var draw *rand.Rand
		if i%stride == stride/2 {
			draw = rand.New(rand.NewPCG(e.o.Seed, uint64(i)))
		}
		return e.point(i, plans[i], draw)
	})
	if err != nil {
		t.Fatal(err)
	}
	addTotal(t.Name(), s.Name, failing, e.stats)
	t.Logf("scenario %s: %v", s.Name, e.stats)
	return e.stats
}

// sampled takes each n-th plan.
func sampled(plans []string, n int) (some []string) {
	if n <= 1 {
		return plans
	}
	for i := n / 2; i < len(plans); i += n {
		some = append(some, plans[i])
	}
	return some
}

// inParallel calls f(0) … f(n-1), several at a time, and returns the error of the
// lowest: after an error only lower ones are still started.
func inParallel(n int, f func(i int) error) error {
	var (
		mu   sync.Mutex
		next int
		bad  = n
		errs = make([]error, n)
		wg   sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := i >= bad
				mu.Unlock()
				if stop {
					return
				}
				if errs[i] = f(i); errs[i] != nil {
					mu.Lock()
					bad = min(bad, i)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// point runs the scenario under one plan and checks every outcome. With draw, two
// outcomes are also recovered with a second crash.
func (e *explorer) point(rank int, plan string, draw *rand.Rand) error {
	w := world{disk: e.start.Clone(), journal: &Journal{}, rank: rank}
	start := w
	w, wr, err := e.play(start, plan, true)
	if err != nil {
		return err
	}
	if plan == clean {
		e.clean = wr.Events()
		e.stats.Ops = wr.Ops()
		if _, ok := lastAck(w.journal); !ok {
			return e.finding(start, w, errors.New("an undisturbed Run acknowledged nothing"))
		}
	} else if err := e.reached(start, w, wr); err != nil || !wr.Fired() || wr.survived() {
		return err
	}
	e.count(func(s *Stats) { s.Points++ })

	var outcomes []world
	for lost := range e.losses(w, e.o.MaxImages) {
		outcomes = append(outcomes, lost)
		if err := e.checkFirst(lost); err != nil {
			return err
		}
	}
	_, all := w.disk.CountImages(e.o.MaxImages, e.o.Seed)
	e.count(func(s *Stats) {
		s.Images += len(outcomes)
		s.Exhaustive = s.Exhaustive && all
	})
	if draw != nil {
		for _, o := range []world{e.live(w), outcomes[draw.IntN(len(outcomes))]} {
			if err := e.crashAgain(o); err != nil {
				return err
			}
		}
	}
	return e.checkLive(w)
}

func lastAck(j *Journal) (Entry, bool) {
	for _, entry := range slices.Backward(j.Entries()) {
		if entry.State == Acked {
			return entry, true
		}
	}
	return Entry{}, false
}

var errUneven = errors.New("the run is not the same every time (Options.Uneven admits that)")

// reached makes sure that the plan was carried out at the operation that is meant.
func (e *explorer) reached(start, w world, wr *Wrapper) error {
	if e.o.Uneven {
		if !wr.Fired() {
			e.count(func(s *Stats) { s.Missed++ })
		}
		return nil
	}
	if !wr.Fired() {
		return e.finding(start, w, errUneven)
	}
	n := wr.plan.N
	for i, event := range wr.Events() {
		if i < len(e.clean) && event.Op != e.clean[i].Op {
			return e.finding(start, w, fmt.Errorf("%w: undisturbed it went on with%v", errUneven, e.clean[i]))
		}
		if event.N == n {
			break
		}
	}
	return nil
}

// survived reports whether the process was done before the operation that it was to die
// before: the point is none then, but that of the failure alone, which has a plan of its own.
func (w *Wrapper) survived() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plan.Die != 0 && !w.stopped
}

// losses gives w after each power loss.
func (e *explorer) losses(w world, limit int) func(func(world) bool) {
	return func(yield func(world) bool) {
		for img := range w.disk.Images(limit, e.o.Seed) {
			if !yield(w.after(img, w.journal, "image="+img.Desc())) {
				return
			}
		}
	}
}

// live is w after SIGKILL.
func (e *explorer) live(w world) world { return w.after(w.disk, w.journal, "live") }

// check calls Check on w, undisturbed, and returns what it left.
func (e *explorer) check(w world) (world, error) {
	out, _, err := e.play(w, clean, false)
	e.count(func(s *Stats) { s.Checks++ })
	return out, err
}

// checkFirst is check, where the like of w has not been checked.
func (e *explorer) checkFirst(w world) error {
	if !e.first("image", w) {
		e.count(func(s *Stats) { s.Alike++ })
		return nil
	}
	_, err := e.check(w)
	return err
}

// checkLive checks w as after SIGKILL, then what a power loss leaves of that.
func (e *explorer) checkLive(w world) error {
	if !e.first("live", w) {
		e.count(func(s *Stats) { s.Alike++ })
		return nil
	}
	w, err := e.check(e.live(w))
	if err != nil || e.o.AfterCheck < 0 {
		return err
	}
	for lost := range e.losses(w, e.o.AfterCheck) {
		if err := e.checkFirst(lost); err != nil {
			return err
		}
	}
	return nil
}

// crashAgain lets Check of the outcome w die before and after each operation, and
// checks every image of that. SIGKILL leaves what the image that lost nothing has.
func (e *explorer) crashAgain(w world) error {
	_, wr, err := e.play(w, clean, false)
	if err != nil {
		return err
	}
	for k := 1; k <= wr.Ops(); k++ {
		for _, plan := range []string{fmt.Sprint("stop-before-", k), fmt.Sprint("stop-after-", k)} {
			again, _, err := e.play(w, plan, false)
			if err != nil {
				return err
			}
			e.count(func(s *Stats) { s.Second++ })
			if !e.first("again", again) {
				e.count(func(s *Stats) { s.Alike++ })
				continue
			}
			for lost := range e.losses(again, max(e.o.AfterCheck, 1)) {
				if err := e.checkFirst(lost); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (e *explorer) count(change func(*Stats)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.stats)
}
