//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/doctor/steps"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// powerStore is the store of a power test, in the directory that is named for the test.
// prepare holds that directory's lock as long as it lives: check sees by it that the test
// still runs.
const powerStore = "store"

// powerBegun is what prepare says first, in its machine form.
type powerBegun struct {
	Dir  string `json:"dir"`
	Seed uint64 `json:"seed"`
	Boot string `json:"boot"` // empty: it cannot be read
}

// powerStep is what prepare says after each step, in its machine form.
type powerStep struct {
	Acknowledged uint64 `json:"acknowledged"`
}

// powerPrepare makes a store and works on it until the power goes, or until it is
// interrupted, which is a proper end too. A number that was printed is durable, if the
// device keeps what it says. Nothing is printed before the store is made; where that
// fails, what was made goes.
func (a *app) powerPrepare(ctx context.Context, fsys fsguard.FS, f doctorFlags) (err error) {
	if err := a.place(); err != nil {
		return err
	}
	p := powerTest{
		a: a, dir: filepath.Join(a.dir, doctor.PowerName), origin: powerOrigin{f.seed, doctor.SystemBoot().ID},
		path: f.journal, most: f.steps,
	}
	if p.most == 0 {
		p.most = steps.MaxSteps
	}
	root, err := fsys.OpenRoot(a.dir)
	if err != nil {
		return a.aboutPlace(err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := p.suits(fsys, root); err != nil {
		return err
	}
	lock, err := p.make(root)
	if err != nil {
		return a.aboutPlace(err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	defer func() { err = errors.Join(err, p.journal.close()) }()
	o := a.options()
	o.OnDeadOwner = holdfast.Stop
	err = use(ctx, a.engine.create, filepath.Join(p.dir, powerStore), o, func(s store) error {
		if err := p.begin(ctx, fsys, root, lock, s); err != nil {
			return err
		}
		return p.work(ctx, s)
	})
	switch {
	case a.out.Flush() != nil:
		return nil // run tells it
	case !p.begun && interrupted(err):
		a.note("stopped", "stopped before the first step")
		return p.remove()
	case !p.begun:
		return a.aboutPlace(errors.Join(err, p.remove()))
	case err != nil && !interrupted(err):
		return a.aboutPlace(fmt.Errorf("after step %d: %w", p.state.Steps, err))
	}
	a.note("stopped", "stopped after step %d, with the power on; the store stays as it is; after a reboot: %s", p.state.Steps, p.checkCommand())
	return nil
}

// A powerTest is one preparation under way.
type powerTest struct {
	a       *app
	dir     string // of the test
	origin  powerOrigin
	path    string        // of the journal; empty: the numbers are read on another machine
	journal *powerJournal // nil: there is none yet
	begun   bool          // something may have been printed, and the store must stay
	most    uint64        // steps
	state   steps.State
}

// suits refuses a place that cannot be tested, before anything is made.
func (p *powerTest) suits(fsys fsguard.FS, root fsguard.Dir) error {
	switch _, err := root.Lstat(doctor.PowerName); {
	case err == nil:
		return p.there()
	case !errors.Is(err, fs.ErrNotExist):
		return p.a.aboutPlace(err)
	}
	space, err := root.Space()
	if err != nil {
		return p.a.aboutPlace(err)
	}
	if inMemory(space) {
		return fmt.Errorf("%s is on %s: %w, and so a power test tests nothing there", p.a.dir, space.Type, errPowerMemory)
	}
	if p.path == "" {
		return nil
	}
	return fitJournal(fsys, p.path, p.a.dir)
}

func (p *powerTest) there() error {
	return fmt.Errorf("%s: %w; check it, or remove it: rm -r %s", p.dir, errPowerThere, shellWord(p.dir))
}

// make makes the directory of the test, with its lock held.
func (p *powerTest) make(root fsguard.Dir) (fsguard.Dir, error) {
	err := root.Mkdir(doctor.PowerName)
	if errors.Is(err, fs.ErrExist) {
		return nil, p.there()
	}
	if err != nil {
		return nil, err
	}
	lock, err := root.OpenDir(doctor.PowerName)
	if err != nil {
		return nil, errors.Join(err, p.remove())
	}
	if err := lock.Lock(fsguard.Exclusive); err != nil {
		return nil, errors.Join(err, lock.Close(), p.remove())
	}
	return lock, nil
}

// remove undoes make, and what was made in it. There is no journal yet: that is made last.
func (p *powerTest) remove() error { return os.RemoveAll(p.dir) }

// begin makes durable that there is a test, all the way from the directory that was given:
// a check that finds nothing must be able to say that it is lost. Then the journal is
// made, and the test is told.
func (p *powerTest) begin(ctx context.Context, fsys fsguard.FS, root, dir fsguard.Dir, s store) (err error) {
	if _, err := s.Update(ctx, queue.CursorChange{Queue: steps.Queue, Cursor: p.origin.String()}); err != nil {
		return err
	}
	if err := errors.Join(dir.Sync(), root.Sync()); err != nil {
		return err
	}
	err = syncDirectory(fsys, filepath.Dir(p.a.dir))
	if err != nil && !errors.Is(err, fs.ErrPermission) { // somebody else's directory, as on Android: theirs to sync
		return err
	}
	if p.path != "" {
		if p.journal, err = newPowerJournal(fsys, p.path, p.dir, p.origin); err != nil {
			return err
		}
	}
	p.begun = true
	if p.a.json {
		p.a.printJSON(powerBegun{p.dir, p.origin.seed, p.origin.boot})
		return nil
	}
	p.a.printf("a power test in %s, seed %d: take away the power at any moment\n", printable(p.dir), p.origin.seed)
	p.a.printf("after the reboot: %s\n", p.checkCommand())
	return nil
}

// checkCommand is what is to be run after the reboot.
func (p *powerTest) checkCommand() string {
	end := " --acknowledged N, the last number that you read"
	if p.path != "" {
		abs, err := filepath.Abs(p.path)
		if err != nil {
			abs = p.path // as good, from the same directory
		}
		end = " --journal " + shellWord(abs)
	}
	return "holdfast doctor --power-test check --dir " + shellWord(p.a.dir) + end
}

func (p *powerTest) work(ctx context.Context, s store) error {
	p.state = *steps.New(p.origin.seed)
	for {
		if err := p.say(); err != nil || p.state.Steps == p.most || ctx.Err() != nil {
			return err
		}
		if err := p.state.Do(ctx, s); err != nil {
			return err
		}
	}
}

// say tells that the store as it is now is durable, as far as the store was told.
func (p *powerTest) say() error {
	if p.journal != nil {
		if err := p.journal.note(fmt.Sprintf("acknowledged %d", p.state.Steps)); err != nil {
			return aboutJournal(p.path, fmt.Errorf("the journal: %w", err))
		}
	}
	if p.a.json {
		p.a.printJSON(powerStep{p.state.Steps})
		return p.a.out.Flush()
	}
	return p.a.sayStep("acknowledged", p.state.Steps)
}
