// Package planted proves of tests that they catch the bugs they are there for: it plants
// each in the source, in an overlay, and runs the test. Only tests import it.
//
// Building a package's tests takes longer than most of them run, so bugs share a build
// where that changes nothing: of a function that a bug changes inside its braces, that
// build has both bodies whole, and the environment tells the process which one it is. What
// is tested is so the real code but for that one change. A bug that changes anything else,
// a constant or a type, has a build of its own. Tests that have a list each share one build
// by a [Bed].
package planted

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A Bug is a change of the source that a named test must catch.
type Bug struct {
	Name  string
	Test  string // as for go test -run, from the beginning of the name
	In    string // directory of the test's package, as File is; "": of the running test's
	Edits []Edit
}

// An Edit changes one place of a file: Old stands there once. File is relative to the
// directory of the running test's package, and may lie in another package.
type Edit struct{ File, Old, New string }

// Catch plants each bug, and fails if the bug's test does not fail, or if it does not pass
// without the bug. The variables are set for those runs besides what is set already.
func Catch(t *testing.T, bugs []Bug, env ...string) {
	t.Helper()
	own(t, bugs, env).Catch(t, bugs)
}

// An Uncaught is a bug that no test can catch, or that is none because something else
// stands in for what it takes away.
type Uncaught struct {
	Bug        // Test: the one that comes nearest to it, and passes
	Why string // nothing catches it
}

// Bugs are those of a list of uncaught ones.
func Bugs(list []Uncaught) (bugs []Bug) {
	for _, u := range list {
		bugs = append(bugs, u.Bug)
	}
	return bugs
}

// Miss plants each bug and fails if its test fails: it is caught then, and belongs to the
// others. So it does where the source has changed under it, or it does not build.
func Miss(t *testing.T, list []Uncaught, env ...string) {
	t.Helper()
	own(t, Bugs(list), env).Miss(t, list)
}

// caught says why bug i is not caught, or nil.
func (p *plot) caught(i int) error {
	b := p.bugs[i]
	out, err := p.try(i)
	switch {
	case err == nil:
		return fmt.Errorf("%s passes in spite of it", b.Test)
	case out == "":
		return err
	case !strings.Contains(out, "--- FAIL: "+b.test()+" (") && !b.crashed(out):
		return fmt.Errorf("it did not fail in %s: %w\n%s", b.Test, err, out)
	case b.hung(out):
		return fmt.Errorf("it hung in %s, which is not to be caught: %w\n%s", b.Test, err, out)
	}
	return nil
}

// crashed reports whether the process panicked, in whatever goroutine, while nothing but
// the bug's test had begun. That a test hung is no such panic.
func (b Bug) crashed(out string) bool {
	for line := range strings.Lines(out) {
		name, begun := strings.CutPrefix(line, "=== RUN   ")
		name, _, _ = strings.Cut(strings.TrimSpace(name), "/")
		if begun && name != b.test() {
			return false
		}
	}
	return strings.Contains(out, "\npanic: ") && !strings.Contains(out, "\npanic: test timed out")
}

// hangs is what the explorer says of a run that it waited for too long.
const hangs = "did not return within "

var heading = regexp.MustCompile(`^ *(?:=== (?:RUN|CONT|NAME) +|--- FAIL: )(\S+)`)

// hung reports whether the bug's test failed only because somebody lost patience with it: so
// would it on a machine that is slow enough.
func (b Bug) hung(out string) bool {
	current, failed, waited := "", map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(out) {
		if m := heading.FindStringSubmatch(line); m != nil {
			current = m[1]
			failed[current] = failed[current] || strings.Contains(line, "--- FAIL: ")
		}
		if strings.Contains(line, hangs) {
			waited[current] = true
		}
	}
	for name := range failed {
		mine := name == b.test() || strings.HasPrefix(name, b.test()+"/")
		if !failed[name] || !mine || waited[name] {
			continue
		}
		below := func(other string) bool { return failed[other] && strings.HasPrefix(other, name+"/") }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(failed)), below) {
			return false // this one failed by itself, and without waiting
		}
	}
	return len(waited) > 0
}

// missed says why bug i is not an uncaught one, or nil.
func (p *plot) missed(i int) error {
	out, err := p.try(i)
	switch {
	case err == nil:
		return nil
	case out == "":
		return err
	}
	return fmt.Errorf("%s catches it: %w\n%s", p.bugs[i].Test, err, out)
}

// sound checks that the test of each of these bugs passes without it.
func (p *plot) sound(bugs []Bug) error {
	var tests []string
	for _, b := range bugs {
		tests = append(tests, "^"+b.Test)
	}
	out, err := p.shared.run("", strings.Join(tests, "|"), p.env)
	for _, b := range bugs {
		if !strings.Contains(out, "--- PASS: "+b.test()+" (") {
			err = errors.Join(err, fmt.Errorf("%s does not pass without a bug", b.Test))
		}
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// test is the whole name: the pattern may match longer ones.
func (b Bug) test() string {
	if end := strings.IndexAny(b.Test, "$/"); end >= 0 {
		return b.Test[:end]
	}
	return b.Test
}
