//go:build unix

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// A Machine is what an examination asks and by what.
type Machine struct {
	FS  fsguard.FS
	UID uint32 // the caller's

	// Resolve gives a path without symlinks, Mounts the kernel's list of mounts in the
	// form of /proc/self/mountinfo.
	Resolve func(path string) (string, error)
	Mounts  func() ([]byte, error)

	// Boot reads what tells one boot from another.
	Boot func() Boot

	// Trial works on a store that it makes in a directory, which is not there yet.
	Trial func(ctx context.Context, dir string) error

	After func(time.Duration) <-chan time.Time // time.After

	Floor uint64            // bytes of free space below which a store enqueues nothing
	Skip  map[string]string // checks that are left out, by name (see Names), and why

	AllowUnsafeRoot bool // as the store's option
}

// An exam is one examination under way.
type exam struct {
	Machine
	ctx      context.Context
	report   *Report
	root     fsguard.Dir
	space    fsguard.Space
	spaceErr error       // why nothing is known of the space
	scratch  fsguard.Dir // nil: there is none
	name     string      // of the scratch directory
	refusal  error       // why there is no scratch directory
	sure     bool        // what is watched for cannot be missed
}

// A test is a check and how it is made.
type test struct {
	Check
	inside bool // it needs the scratch directory
	run    func(*exam) finding
}

// tests lists every check in the order of the report.
func tests() []test {
	return slices.Concat(placeTests, nameTests, contentTests, lockTests, eventTests)
}

// Names lists the checks that can be left out, in the order of the report: all but the
// one that the others are made in.
func Names() (names []string) {
	for _, t := range tests() {
		if t.Name != scratchDirectory {
			names = append(names, t.Name)
		}
	}
	return names
}

// Examine looks into the directory dir, or its parent where dir is not there. An error
// says that the looking failed, or that the scratch directory could not be removed; the
// report then has what was found until then.
func (m Machine) Examine(ctx context.Context, dir string) (report Report, err error) {
	report = Report{Dir: dir, FloorBytes: m.Floor, Checks: []Check{}, Leftovers: []string{}}
	e := &exam{Machine: m, ctx: ctx, report: &report}
	if err := e.pin(dir); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, e.root.Close()) }()
	e.space, e.spaceErr = e.root.Space()
	report.Filesystem, report.FreeBytes = e.space.Type, e.space.Free
	report.Mount, _ = e.Mount(report.Place) // its check says why there is none
	names, err := e.root.ReadDir()
	if err != nil {
		return report, err
	}
	for _, name := range names {
		switch {
		case isLeftover(name):
			report.Leftovers = append(report.Leftovers, name)
		case report.Exists && report.Holds == "":
			report.Holds = name
		}
	}
	err = e.makeScratch()
	if err != nil {
		return report, err
	}
	defer func() {
		if left := e.removeScratch(); left != nil {
			err = left // even of an interrupt: it is what somebody has to see to
		}
	}()
	for _, t := range tests() {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		t.settle(e.find(t))
		report.Checks = append(report.Checks, t.Check)
	}
	if err := ctx.Err(); err != nil { // the last of them may have ended by it
		return report, err
	}
	report.Mechanisms = e.mechanisms()
	return report, nil
}

// pin opens the directory where it is tried.
func (e *exam) pin(dir string) (err error) {
	e.report.Place, e.report.Exists = dir, true
	e.root, err = e.FS.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		e.report.Place, e.report.Exists = filepath.Dir(dir), false
		e.root, err = e.FS.OpenRoot(e.report.Place)
	}
	return err
}

func (e *exam) find(t test) finding {
	switch why, skip := e.Skip[t.Name]; {
	case skip && t.Name != scratchDirectory:
		return notTried(why)
	case t.inside && e.scratch == nil:
		return notTried(WithoutScratch).weighing(Fit) // the check of that one weighs
	}
	return t.run(e)
}

// mechanisms says what the store would choose, from what was found.
func (e *exam) mechanisms() Mechanisms {
	var m Mechanisms
	r := e.report
	if r.works("file_lock") && r.works("directory_lock") {
		m.Lock = "flock"
	}
	if r.works("rename_over") && r.works("directory_sync") {
		m.Publish = "rename over state.json, then a sync of its directory"
	}
	m.Wake = "a look every second"
	if r.works("watch") {
		m.Wake = "events, and a look every second"
		if e.sure {
			m.Wake = "events, and a look every 30 seconds"
		}
	}
	m.Leases = "the wall clock"
	if r.works("boot_clock") {
		m.Leases = "the boot clock, suspend included"
	}
	switch {
	case r.works("hard_link"):
		m.V1 = "link"
	case r.works("rename_no_replace"):
		m.V1 = "rename that replaces nothing, where it is chosen"
	}
	return m
}

// bytesText gives a number of bytes to people.
func bytesText(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
