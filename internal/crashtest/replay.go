//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The path of a finding is the scenario's name and its steps in turn: what
// happened to Run, what was lost, what happened to Check, what was lost, …, such as
//
//	enqueue stop-after-12 image=4:011,7:h12 clean
//
// With it in the environment variable CRASHTEST_REPLAY, Explore and ExploreErrors
// do exactly that and nothing else.

// A findingError is what the explorer reports.
type findingError struct {
	text string
	err  error
}

func (f *findingError) Error() string { return f.text }
func (f *findingError) Unwrap() error { return f.err }

// finding describes err, which came up between the worlds before and after.
func (e *explorer) finding(before, after world, err error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario %s: %s: %v\n", e.s.Name, strings.Join(after.path, ", "), err)
	fmt.Fprintf(&b, "replay:\n  %s\n", e.hint(after.path))
	fmt.Fprintf(&b, "seed: %d\n", e.o.Seed)
	section(&b, "the power loss", before.disk.Story())
	section(&b, "the journal", after.journal.String())
	for _, p := range after.played {
		section(&b, "operations of "+p.what, tail(p.ops.Trace(), 80))
	}
	section(&b, "the disk before the last step", before.disk.Tree())
	return &findingError{b.String(), err}
}

func section(b *strings.Builder, title, text string) {
	if text != "" {
		fmt.Fprintf(b, "%s:\n  %s\n", title, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  "))
	}
}

// hint is the command that replays a path.
func (e *explorer) hint(path []string) string {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	var names []string
	for name := range strings.SplitSeq(e.t.Name(), "/") {
		names = append(names, "^"+regexp.QuoteMeta(name)+"$")
	}
	return fmt.Sprintf("cd %s && CRASHTEST_REPLAY='%s %s' go test -run '%s' .",
		dir, e.s.Name, strings.Join(path, " "), strings.Join(names, "/"))
}

// replay does what a path says and fails the test if it ends in a finding again.
func (e *explorer) replay(text string) {
	e.t.Helper()
	rest, mine := strings.CutPrefix(text, e.s.Name+" ")
	if !mine {
		e.t.Logf("scenario %s: left out, CRASHTEST_REPLAY is of another", e.s.Name)
		return
	}
	w := world{disk: e.start, journal: &Journal{}}
	for i, step := range strings.Fields(rest) {
		var err error
		switch {
		case step == "live":
			w = e.live(w)
		case strings.HasPrefix(step, "image="):
			var img *Disk
			if img, err = w.disk.Image(strings.TrimPrefix(step, "image=")); err == nil {
				w = w.after(img, w.journal, step)
			}
		default:
			w, _, err = e.play(w, step, i == 0)
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
	e.t.Logf("scenario %s: replayed without a finding: %s", e.s.Name, text)
	for _, p := range w.played {
		e.t.Logf("operations of %s:\n%s", p.what, p.ops.Trace())
	}
}

// parsePlan reads a plan as the explorer writes it.
func parsePlan(text string) (Plan, error) {
	if text == clean {
		return Plan{}, nil
	}
	bad := fmt.Errorf("crashtest: bad step %q", text)
	parts := strings.Split(text, "-")
	if len(parts) < 3 {
		return Plan{}, bad
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil {
		return Plan{}, bad
	}
	switch kind := parts[0] + "-" + parts[1]; {
	case kind == "stop-before" && len(parts) == 3:
		return StopBefore(n), nil
	case kind == "stop-after" && len(parts) == 3:
		return StopAfter(n), nil
	case len(parts) == 4:
		errno, err := parseErrno(parts[3])
		if err != nil {
			return Plan{}, errors.Join(bad, err)
		}
		switch kind {
		case "fail-at":
			return FailAt(n, errno), nil
		case "fail-after":
			return FailAfter(n, errno), nil
		case "fail-from":
			return FailAlwaysFrom(n, errno), nil
		}
	case len(parts) == 6 && parts[4] == "die": // after a failure
		plan, err := parsePlan(strings.Join(parts[:4], "-"))
		if err != nil {
			return Plan{}, err
		}
		if plan.Die, err = strconv.Atoi(parts[5]); err != nil {
			return Plan{}, bad
		}
		return plan, nil
	}
	return Plan{}, bad
}

func errnoName(errno syscall.Errno) string {
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return strconv.Itoa(int(errno))
}

func parseErrno(name string) (syscall.Errno, error) {
	for errno := syscall.Errno(1); errno < 1000; errno++ {
		if errnoName(errno) == name {
			return errno, nil
		}
	}
	return 0, fmt.Errorf("crashtest: no errno %q", name)
}
