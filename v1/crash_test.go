//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// The generations of the scenarios: JSON, no two of one length.
const (
	genA = `"A"`
	genB = `"BB"`
	genC = `"CCC"`
	genM = `"migrated"`
	genX = `"older evidence"`
)

// A crashScenario is what a process does to an entry in a state, and dies of.
type crashScenario struct {
	name   string
	plant  func(d *crashtest.Disk) // nil: what from says
	from   crashState
	run    func(r *crashRun)
	routes []Route // of the process that dies; nil: both
	same   bool    // the one after goes on by the same route too, not by the other only
	alike  bool    // both routes do the same: every day one of them is enough
	crowd  bool    // there is another entry beside it
	two    bool    // another process enqueues meanwhile
	twice  bool    // its recovery is cut off every day too
}

// bystander is an entry that nobody settles.
const bystander = "b"

var bystands = map[string]crashState{bystander: {pending: `"b waits"`, claimed: `"b is out"`}}

func inQueue(name string) string  { return path.Join(simPlace.queue, name) }
func inFailed(name string) string { return path.Join(simPlace.failed, name) }
func inRecord(name string) string {
	return path.Join(simPlace.queue, retirementsDir, namesOf(crashID).pending, name)
}

// plantState plants the names of a state.
func plantState(d *crashtest.Disk, id string, st crashState) {
	n := namesOf(id)
	for at, text := range map[string]string{inQueue(n.pending): st.pending, inQueue(n.processing): st.claimed, inFailed(n.failed()): st.failed} {
		if text != "" {
			d.WriteRaw(at, []byte(text))
		}
	}
}

// plantRecord plants a claim of genA and a retirement record.
func plantRecord(more func(d *crashtest.Disk)) func(d *crashtest.Disk) {
	return func(d *crashtest.Disk) {
		plantState(d, crashID, crashState{claimed: genA})
		d.MkdirAll(inRecord(""))
		more(d)
	}
}

var hardLinkOnly = []Route{HardLink}

// crashScenarios are what processes die of: every transition, and after that the
// recovery of every leftover that one can make.
var crashScenarios = []crashScenario{
	{name: "enqueue", routes: hardLinkOnly, run: func(r *crashRun) { r.enqueue(genA) }},
	{name: "enqueue-over", routes: hardLinkOnly, from: crashState{pending: genA}, run: func(r *crashRun) { r.enqueue(genB) }},
	{name: "enqueue-claimed", routes: hardLinkOnly, from: crashState{claimed: genA}, run: func(r *crashRun) { r.enqueue(genB) }},

	{name: "load", twice: true, same: true, from: crashState{pending: genA}, run: func(r *crashRun) { r.load().drop() }},
	// The first claim of a store tries a link on a file of its own before.
	{name: "load-first", routes: hardLinkOnly, from: crashState{pending: genA}, run: func(r *crashRun) {
		if r.s != nil {
			r.s.link.proven = false
		}
		r.load().drop()
	}},
	{name: "load-standing", alike: true, from: crashState{claimed: genA, pending: genB}, run: func(r *crashRun) { r.load().drop() }},
	// A newer entry comes between the claim and the next step.
	{name: "load-newer", twice: true, same: true, two: true, from: crashState{pending: genA}, run: func(r *crashRun) {
		b := r.beside()
		defer b.close()
		r.during(afterClaim(r.route), func() { b.enqueue(genB) })
		r.load().drop()
	}},
	// Its producer has not synced yet.
	{name: "load-newer-unsynced", same: true, two: true, from: crashState{pending: genA}, run: func(r *crashRun) {
		b := r.beside()
		defer b.close()
		r.during(afterClaim(r.route), func() { b.enqueueHalf(genB) })
		r.load().drop()
	}},
	// And a still newer one before the first is put back.
	{name: "load-newest", two: true, routes: hardLinkOnly, from: crashState{pending: genA}, run: func(r *crashRun) {
		newest(r, func(b *crashRun) { b.enqueue(genC) })
	}},
	// Its producer has not synced yet: the first must not go for something that the power
	// can take away.
	{name: "load-newest-unsynced", twice: true, same: true, two: true, routes: hardLinkOnly, from: crashState{pending: genA}, run: func(r *crashRun) {
		newest(r, func(b *crashRun) { b.enqueueHalf(genC) })
	}},

	{name: "ack", from: crashState{claimed: genA}, run: func(r *crashRun) { r.ack() }},
	{name: "ack-newer", alike: true, from: crashState{claimed: genA, pending: genB}, run: func(r *crashRun) { r.ack() }},
	{name: "ack-id", alike: true, from: crashState{claimed: genA}, run: func(r *crashRun) {
		r.do(moveAny(moveEnd(genA)), func() (func(crashState) bool, error) {
			return claims(""), r.s.AckID(context.Background(), crashID)
		})
	}},
	{name: "ack-marked", alike: true, plant: func(d *crashtest.Disk) {
		plantState(d, crashID, crashState{claimed: genB})
		d.WriteRaw(inQueue("a.delivered"), []byte(genA))
	}, from: crashState{claimed: genB}, run: func(r *crashRun) { r.ack() }},

	{name: "fail", twice: true, same: true, from: crashState{claimed: genA}, run: func(r *crashRun) { r.fail() }},
	{name: "fail-newer", from: crashState{claimed: genA, pending: genB}, run: func(r *crashRun) { r.fail() }},
	{name: "fail-id", from: crashState{pending: genA}, run: func(r *crashRun) { r.failID() }},
	{name: "fail-collision", from: crashState{claimed: genA, failed: genX}, run: func(r *crashRun) {
		c := r.load()
		if c == nil {
			return
		}
		defer c.drop()
		r.do(moveNothing, func() (func(crashState) bool, error) {
			err := r.s.Fail(context.Background(), c)
			if errors.Is(err, ErrAlreadyExists) {
				err = nil
			} else if err == nil {
				err = errors.New("failed over other evidence")
			}
			return nil, err
		})
	}},
	{name: "fail-interrupted", twice: true, plant: func(d *crashtest.Disk) {
		plantState(d, crashID, crashState{claimed: genA})
		d.HardLink(inQueue("a.processing"), inFailed("a.json"))
	}, from: crashState{failed: genA}, run: func(r *crashRun) {
		r.do(moveNothing, func() (func(crashState) bool, error) { return nil, r.s.FailID(context.Background(), crashID) })
	}},

	{name: "migrate", from: crashState{pending: genA}, run: func(r *crashRun) { r.migrate(genM).drop() }},
	{name: "delivered", alike: true, crowd: true, plant: func(d *crashtest.Disk) {
		plantState(d, crashID, crashState{pending: genB})
		d.WriteRaw(inQueue("a.delivered"), []byte(genA))
		d.WriteRaw(inQueue("old.1.tmp"), nil)
	}, from: crashState{pending: genB}, run: func(r *crashRun) { r.batch().drop() }},

	{name: "two-names", twice: true, plant: func(d *crashtest.Disk) {
		plantState(d, crashID, crashState{claimed: genA})
		d.HardLink(inQueue("a.processing"), inQueue("a.json"))
	}, from: crashState{claimed: genA}, run: func(r *crashRun) { r.load().drop() }},
	{name: "record-empty", alike: true, plant: plantRecord(func(*crashtest.Disk) {}), from: crashState{claimed: genA},
		run: func(r *crashRun) { r.load().drop() }},
	{name: "record-claim", alike: true, plant: plantRecord(func(d *crashtest.Disk) {
		d.HardLink(inQueue("a.processing"), inRecord(retiredEntry))
	}), from: crashState{claimed: genA}, run: func(r *crashRun) { r.load().drop() }},
	{name: "record-newer", twice: true, plant: plantRecord(func(d *crashtest.Disk) {
		d.WriteRaw(inRecord(retiredEntry), []byte(genB))
	}), from: crashState{claimed: genA, pending: genB}, run: func(r *crashRun) { r.ack() }},
	{name: "record-restored", twice: true, plant: plantRecord(func(d *crashtest.Disk) {
		d.WriteRaw(inRecord(retiredEntry), []byte(genB))
		d.HardLink(inRecord(retiredEntry), inQueue("a.json"))
	}), from: crashState{claimed: genA, pending: genB}, run: func(r *crashRun) { r.ack() }},
	{name: "record-superseded", alike: true, twice: true, plant: plantRecord(func(d *crashtest.Disk) {
		d.WriteRaw(inRecord(retiredEntry), []byte(genB))
		d.WriteRaw(inQueue("a.json"), []byte(genC))
	}), from: crashState{claimed: genA, pending: genC}, run: func(r *crashRun) { r.fail() }},
}

// afterClaim is the first step of a load after the call that claims.
func afterClaim(r Route) func(op fsguard.Op, name string) bool {
	if r == HardLink {
		return func(op fsguard.Op, _ string) bool { return op == fsguard.OpMove }
	}
	claimed := false
	return func(op fsguard.Op, _ string) bool {
		if op == fsguard.OpMoveNew {
			claimed = true
			return false
		}
		return claimed
	}
}

// newest loads while genB comes after the claim, and another before genB is put back.
func newest(r *crashRun, another func(b *crashRun)) {
	b := r.beside()
	defer b.close()
	first := false
	r.during(func(op fsguard.Op, name string) bool {
		if op == fsguard.OpMove && !first {
			first = true
			b.enqueue(genB)
		}
		return first && op == fsguard.OpLstat && name == "a.json"
	}, func() { another(b) })
	r.load().drop()
}

// enqueueHalf is a producer that has renamed and not yet synced.
func (r *crashRun) enqueueHalf(payload string) {
	r.begin(r.key(), movePut(payload))
	if r.s == nil {
		return
	}
	temp, err := writeTemp(r.s.queue.dir, "half", []byte(payload))
	if err == nil {
		_ = r.s.queue.dir.Rename(temp.Name(), namesOf(crashID).pending)
		_ = temp.Close()
	}
}

func (r *crashRun) failID() bool {
	key := r.key()
	r.begin(key, moveLoad) // it claims first
	return r.do(moveFail(genA), func() (func(crashState) bool, error) { return nil, r.s.FailID(context.Background(), crashID) })
}

// drop closes a claim, if there is one.
func (c *Claim) drop() {
	if c != nil {
		_ = c.Close()
	}
}

// eachRoute runs a test for every scenario, route and route of the process after.
func eachRoute(t *testing.T, f func(t *testing.T, c crashScenario, route, next Route)) {
	race := raceDetector()
	for _, c := range crashScenarios {
		if race && !c.twice {
			continue // explored without it
		}
		routes := c.routes
		if routes == nil {
			routes = bothRoutes
		}
		if c.alike && !thorough() || race && !c.two {
			routes = hardLinkOnly
		}
		for _, route := range routes {
			for _, next := range bothRoutes {
				if next != route || c.same {
					t.Run(fmt.Sprintf("%s/%v-then-%v", c.name, route, next), func(t *testing.T) {
						t.Parallel()
						f(t, c, route, next)
					})
				}
			}
		}
	}
}

var bothRoutes = []Route{HardLink, RenameNoReplace}

// scenario is c for the explorer.
func (c crashScenario) scenario(route, next Route, brief bool) crashtest.Scenario {
	var others map[string]crashState
	if c.crowd {
		others = bystands
	}
	return crashtest.Scenario{
		Name: fmt.Sprintf("%s-%v-then-%v", c.name, route, next),
		Setup: func(_ testing.TB, d *crashtest.Disk) {
			plantDirs(d)
			for id, st := range others {
				plantState(d, id, st)
			}
			if c.plant == nil {
				plantState(d, crashID, c.from)
			} else {
				c.plant(d)
			}
		},
		Run: func(fsys fsguard.FS, j *crashtest.Journal) {
			r := startRun(simPlace, fsys, route, j, crashTime)
			defer r.close()
			c.run(r)
		},
		Check: func(_ testing.TB, fsys fsguard.FS, j *crashtest.Journal) error {
			return crashCheck{place: simPlace, from: c.from, route: next, since: crashTime, others: others, brief: brief}.check(fsys, j)
		},
	}
}

// sized bounds an exploration by the time that there is for it: all images are tried
// where nothing may be left out.
func sized(o crashtest.Options) crashtest.Options {
	switch {
	case raceDetector() || testing.Short():
		o.MaxImages, o.AfterCheck, o.SecondCrash = min(o.MaxImages, 4), -1, min(o.SecondCrash, 1)
	case thorough():
		o.MaxImages, o.AfterCheck, o.SecondCrash = 8*o.MaxImages, 4*o.AfterCheck, 4*o.SecondCrash
	}
	if raceDetector() { // from one point to the next the same goroutines run the same code
		o.Every = 5
	}
	return o
}

// Every transition and every recovery, cut off before and after each of its
// operations: by SIGKILL, and by the loss of power in every way that the disk may come
// back. The process after goes on by the same route or by the other one.
func TestCrash(t *testing.T) {
	eachRoute(t, func(t *testing.T, c crashScenario, route, next Route) {
		// Going on by the same route, the process after only recovers.
		o := crashtest.Options{MaxImages: 10, AfterCheck: -1}
		if c.twice || thorough() {
			o.AfterCheck = 1
		}
		crashtest.Explore(t, c.scenario(route, next, next == route), sized(o))
	})
}

// A second crash, at each operation of the recovery from the first.
func TestCrashTwice(t *testing.T) {
	eachRoute(t, func(t *testing.T, c crashScenario, route, next Route) {
		if !c.twice && !thorough() {
			return // like another one, but for what its first process did
		}
		if raceDetector() && !c.two {
			return
		}
		crashtest.Explore(t, c.scenario(route, next, true), sized(crashtest.Options{MaxImages: 1, AfterCheck: -1, SecondCrash: 1}))
	})
}

// Making the directories, cut off anywhere: once it was answered they are there for
// good, and before that it can be called again.
func TestCrashOpenOrCreate(t *testing.T) {
	create := func(fsys fsguard.FS) (*Store, error) {
		return OpenOrCreate(simPlace.queue, simPlace.options(fsys, HardLink, crashTime))
	}
	for _, sc := range []crashtest.Scenario{
		{Name: "open-or-create", Setup: func(testing.TB, *crashtest.Disk) {}},
		{Name: "open-or-create-cut", Setup: func(t testing.TB, d *crashtest.Disk) {
			if _, err := create(crashtest.Wrap(d.Process(), crashtest.StopAfter(2))); err == nil {
				t.Fatal("it was not cut off")
			}
		}},
	} {
		sc.Run = func(fsys fsguard.FS, j *crashtest.Journal) {
			j.Begin("create", nil)
			s, err := create(fsys)
			if err != nil {
				j.Fail("create", err)
				return
			}
			j.Ack("create", nil)
			_ = s.Close()
		}
		sc.Check = func(_ testing.TB, fsys fsguard.FS, j *crashtest.Journal) error {
			s, err := Open(simPlace.queue, simPlace.options(fsys, HardLink, crashTime))
			if _, acked := j.Last("create", crashtest.Acked); acked && err != nil {
				return fmt.Errorf("directories that were made: %w", err)
			}
			if err != nil && !errors.Is(err, ErrNoDirectory) {
				return err
			}
			if err == nil {
				if err := s.Close(); err != nil {
					return err
				}
			}
			if s, err = create(fsys); err != nil {
				return fmt.Errorf("again: %w", err)
			}
			j.Ack("create", nil)
			defer s.Close()
			for _, d := range []fsguard.Dir{s.queue.dir, s.fail.dir} {
				if info, err := d.Info(); err != nil || info.Mode.Perm() != 0o700 || info.Mode&fs.ModeDir == 0 {
					return fmt.Errorf("%s: %+v %w", d.Name(), info, err)
				}
			}
			return nil
		}
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			crashtest.Explore(t, sc, sized(crashtest.Options{MaxImages: 32, AfterCheck: 4, SecondCrash: 3}))
		})
		t.Run(sc.Name+"/faults", func(t *testing.T) {
			t.Parallel()
			crashtest.ExploreErrors(t, sc, crashtest.Options{MaxImages: 4, AfterCheck: -1, Errnos: []syscall.Errno{syscall.EIO, syscall.ENOSPC}})
		})
	}
}
