package planted

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
)

// A Bed is bugs that several tests of a package plant, each some of them: the first test
// builds what all share. It is ready for use. Who has one ends with Remove, after all tests.
type Bed struct {
	env   []string
	bugs  []Bug
	mu    sync.Mutex
	temp  string
	plots map[string]*plot // by where the tests are: Bug.In
}

// Add puts bugs into the bed, before the first test.
func (b *Bed) Add(bugs ...Bug) { b.bugs = append(b.bugs, bugs...) }

// Catch is as the function Catch, for bugs that are in the bed.
func (b *Bed) Catch(t *testing.T, bugs []Bug) {
	t.Helper()
	b.each(t, bugs, (*plot).caught)
}

// Miss is as the function Miss, for bugs that are in the bed.
func (b *Bed) Miss(t *testing.T, list []Uncaught) {
	t.Helper()
	for _, u := range list {
		if u.Why == "" {
			t.Errorf("%s: nobody says why it is not caught", u.Name)
		}
	}
	b.each(t, Bugs(list), (*plot).missed)
}

// Remove removes what was built.
func (b *Bed) Remove() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.temp != "" {
		removeAll(b.temp)
	}
	b.temp, b.plots = "", nil
}

// own gives a bed for one test alone.
func own(t *testing.T, bugs []Bug, env []string) *Bed {
	b := &Bed{env: env}
	b.Add(bugs...)
	t.Cleanup(b.Remove)
	return b
}

// each tries some of the bugs, and what they rest on: that their tests pass without one.
func (b *Bed) each(t *testing.T, bugs []Bug, try func(p *plot, i int) error) {
	t.Helper()
	if testrun.RaceDetector() || !testrun.Thorough() {
		t.Skip("builds this package anew: runs under HOLDFAST_REQUIRE_ALL=1, without the race detector")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		testrun.Skip(t, "no go command here to build the planted bugs with")
	}
	all := map[string][]Bug{}
	for _, bug := range bugs {
		all[bug.In] = append(all[bug.In], bug)
	}
	for in, bugs := range all {
		p, err := b.plot(goTool, in)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSpace("no bug "+in), func(t *testing.T) {
			t.Parallel()
			if err := p.sound(bugs); err != nil {
				t.Fatal(err)
			}
		})
		for _, bug := range bugs {
			i, err := p.find(bug.Name)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(bug.Name, func(t *testing.T) {
				t.Parallel()
				if err := try(p, i); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// plot gives what the bugs share whose tests are there, built once.
func (b *Bed) plot(goTool, in string) (*plot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.plots[in]; p != nil {
		return p, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if b.temp == "" {
		if b.temp, err = os.MkdirTemp(inMemory(), "planted"); err != nil {
			return nil, err
		}
		b.plots = map[string]*plot{}
	}
	bugs := slices.DeleteFunc(slices.Clone(b.bugs), func(bug Bug) bool { return bug.In != in })
	p, err := newPlot(goTool, here, in, b.temp, bugs, b.env)
	if err != nil {
		return nil, err
	}
	b.plots[in] = p
	return p, nil
}

// inMemory is a directory that no disk is behind, where there is one with room enough, or "".
// What a bug does, it does there as well, and some hundred small stores take a disk minutes.
func inMemory() string {
	const dir, enough = "/dev/shm", 2 << 30
	d, err := fsguard.OS().OpenRoot(dir)
	if err != nil {
		return ""
	}
	space, err := d.Space()
	if errors.Join(err, d.Close()) != nil || space.Free < enough {
		return ""
	}
	return dir
}

// find gives the number of a bug.
func (p *plot) find(name string) (int, error) {
	i := slices.IndexFunc(p.bugs, func(b Bug) bool { return b.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("%s: not in the bed that it is planted from", name)
	}
	return i, nil
}
