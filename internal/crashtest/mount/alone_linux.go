package mount

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// aloneEnv names the test that runs in a process of its own.
const aloneEnv = "HOLDFAST_TEST_ALONE"

// Alone runs the calling test, or the part of it that was asked for, once more in a
// process with a mount namespace of its own, and fails if it fails there. It reports
// whether the caller is that process; any other has nothing more to do. However that
// process ends, the kernel unmounts what it had mounted and detaches its loop devices.
//
// Tests that mount run one after another in such a process: a child that another one was
// just starting would have their files open for a moment more, and they be busy.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneEnv) == t.Name() {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.v", "-test.run=" + partOf(t.Name())}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if end, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(end).String())
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	// What it leaves of temporary files, if it is killed, goes with this test's own.
	cmd.Env = append(os.Environ(), aloneEnv+"="+t.Name(), "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // whose end would be the parent's death
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	t.Logf("in a mount namespace of its own:\n%s", out)
	if err := ended(t.Name(), string(out), err); err != nil {
		t.Error(err)
	}
	return false
}

// ended says why a process that ran the named test is not to be believed: it failed, or it
// ended before it had told what became of that test.
func ended(name, out string, err error) error {
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		for _, how := range []string{"PASS", "SKIP"} {
			if strings.HasPrefix(strings.TrimLeft(line, " "), "--- "+how+": "+name+" (") {
				return nil
			}
		}
	}
	return fmt.Errorf("%s did not come to its end there", name)
}

// partOf gives the pattern that runs the named test, and of its subtests those that this
// run was asked for, by whichever of several alternatives.
func partOf(name string) string {
	parts := strings.Split(name, "/")
	pattern := slices.Clone(parts)
	for i, part := range pattern {
		pattern[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	whole := strings.Join(pattern, "/")
	f := flag.Lookup("test.run")
	if f == nil {
		return whole
	}
	var below []string
	for _, asked := range split(f.Value.String(), '|') {
		levels := split(asked, '/')
		switch {
		case !leadTo(levels, parts):
		case len(levels) <= len(parts):
			return whole // all of it
		default:
			below = append(below, strings.Join(append(slices.Clone(pattern), levels[len(parts):]...), "/"))
		}
	}
	if len(below) == 0 {
		return whole
	}
	return strings.Join(below, "|")
}

// leadTo reports whether a pattern, level by level, lets a test run, or some test below it.
func leadTo(levels, parts []string) bool {
	for i, part := range parts[:min(len(levels), len(parts))] {
		if matched, err := regexp.MatchString(levels[i], part); err != nil || !matched {
			return false
		}
	}
	return true
}

// split takes a pattern apart where sep stands outside of brackets, as the go command does.
func split(pattern string, sep byte) (parts []string) {
	from, round, square := 0, 0, 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			square++
		case ']':
			square = max(0, square-1)
		case '(':
			if square == 0 {
				round++
			}
		case ')':
			if square == 0 {
				round--
			}
		case sep:
			if round == 0 && square == 0 {
				parts = append(parts, pattern[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, pattern[from:])
}
