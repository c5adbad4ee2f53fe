package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A Suite is all tests of a package, to be run under a filter.
type Suite struct {
	// Apart are tests, or subtests, that this run leaves out, as for -test.skip, and why.
	Apart map[string]string
	// Skips are parts of the reasons for which tests, and subtests, may leave themselves out,
	// besides that of StartsProcess.
	Skips []string
	// Only runs no other tests, as for -test.run. "": all.
	Only string
}

// Run runs built tests under a filter, small (-test.short), and says what is wrong with how
// they ended: nothing, where every test has passed or was left out for a reason given.
func (s Suite) Run(t *testing.T, l *Launcher, how Confinement, path string) error {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), path, "-test.list=.").Output()
	if err != nil {
		t.Fatal(err)
	}
	only := s.Only
	if only == "" {
		only = "."
	}
	apart := slices.Sorted(maps.Keys(s.Apart))
	out, err := l.Command(t, how, path, "-test.v=test2json", "-test.short", "-test.timeout=10m",
		"-test.run="+only, "-test.skip="+strings.Join(apart, "|")).CombinedOutput()
	r := parse(string(out))
	t.Logf("%s: %s", how, r.summary(s))
	return r.judge(s, how, tests(string(listed)), err)
}

// tests keeps of a list what -test.run runs.
func tests(list string) []string {
	return slices.DeleteFunc(strings.Fields(list), func(name string) bool { return strings.HasPrefix(name, "Benchmark") })
}

// A result is what tests printed. Subtests have their parents' names before theirs.
type result struct {
	ended map[string]string // PASS, SKIP, FAIL
	said  map[string]string // the last line of each
	text  string
}

// mark is before each line in which -test.v=test2json tells of a test.
const mark = "\x16"

var told = regexp.MustCompile(`^(?:=== (?:RUN|CONT|NAME|PAUSE) +(\S+)|--- (PASS|SKIP|FAIL): (\S+) \(.*)$`)

// parse reads it.
func parse(text string) result {
	r := result{map[string]string{}, map[string]string{}, strings.ReplaceAll(text, mark, "")}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		said, event, marked := strings.Cut(line, mark)
		if said = strings.TrimSpace(said); said != "" {
			r.said[current] = said
		}
		if !marked {
			continue
		}
		if m := told.FindStringSubmatch(strings.TrimSpace(event)); m != nil {
			if current = m[1]; m[2] != "" {
				r.ended[m[3]] = m[2]
			}
		}
	}
	return r
}

// why is the reason that a test gave for leaving itself out.
func (r result) why(name string) string {
	_, why, _ := strings.Cut(r.said[name], ": ")
	return why
}

// judge compares it with what was to be run.
func (r result) judge(s Suite, how Confinement, listed []string, err error) error {
	if err != nil {
		return fmt.Errorf("under %s: %w%s%s", how, err, r.failed(), r.trapped())
	}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	apart := map[string]bool{}
	for _, pattern := range slices.Sorted(maps.Keys(s.Apart)) {
		name, sub, below := strings.Cut(pattern, "/")
		if name = strings.Trim(name, "^$"); !slices.Contains(listed, name) {
			wrong("%s is not a test: it cannot be left out", name)
		}
		if !below || sub == "" {
			apart[name] = true
		}
	}
	only, err := regexp.Compile(s.Only)
	if err != nil {
		return err
	}
	passed := 0
	for _, name := range listed {
		switch ended := r.ended[name]; {
		case apart[name] || !only.MatchString(name):
			if ended != "" {
				wrong("%s was run", name)
			}
		case ended == "PASS":
			passed++
		case ended == "SKIP":
			if !s.mayBeSkipped(r.why(name)) {
				wrong("%s was left out: %q is no reason here", name, r.why(name))
			}
		default:
			wrong("%s did not come to an end: %q", name, ended)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.ended)) {
		if strings.Contains(name, "/") && r.ended[name] == "SKIP" && !s.mayBeSkipped(r.why(name)) {
			wrong("%s was left out: %q is no reason here", name, r.why(name))
		}
	}
	if passed == 0 {
		wrong("no test passed")
	}
	return errors.Join(errs...)
}

// failed lists tests that failed, and the last that each said.
func (r result) failed() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.ended)) {
		if r.ended[name] == "FAIL" {
			fmt.Fprintf(&b, "\n%s: %s", name, r.said[name])
		}
	}
	return b.String()
}

func (s Suite) mayBeSkipped(why string) bool {
	return why == startsProcess || slices.ContainsFunc(s.Skips, func(part string) bool { return strings.Contains(why, part) })
}

// summary counts tests, without subtests, and lists those that were left out.
func (r result) summary(s Suite) string {
	passed := 0
	skipped := map[string][]string{}
	for name, ended := range r.ended {
		switch {
		case ended == "SKIP":
			skipped[r.why(name)] = append(skipped[r.why(name)], name)
		case ended == "PASS" && !strings.Contains(name, "/"):
			passed++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d tests passed", passed)
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		slices.Sort(skipped[why])
		fmt.Fprintf(&b, "\n%d left themselves out: %s\n\t%s", len(skipped[why]), why, strings.Join(skipped[why], "\n\t"))
	}
	for _, pattern := range slices.Sorted(maps.Keys(s.Apart)) {
		fmt.Fprintf(&b, "\nleft out: %s: %s", pattern, s.Apart[pattern])
	}
	return b.String()
}
