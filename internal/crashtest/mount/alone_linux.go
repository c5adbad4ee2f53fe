package mount

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
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
// run was asked for: all of them where it was asked for one thing or another.
func partOf(name string) string {
	pattern := strings.Split(name, "/")
	for i, part := range pattern {
		pattern[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	if f := flag.Lookup("test.run"); f != nil && !hasAlternatives(f.Value.String()) {
		if asked := strings.Split(f.Value.String(), "/"); len(asked) > len(pattern) {
			pattern = append(pattern, asked[len(pattern):]...)
		}
	}
	return strings.Join(pattern, "/")
}

// hasAlternatives reports whether a pattern is several, as the go command reads it.
func hasAlternatives(pattern string) bool {
	depth := 0
	for _, c := range pattern {
		switch {
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == '|' && depth == 0:
			return true
		}
	}
	return false
}
