//go:build unix

package holdfast

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
)

// A test that needs a process of its own starts this binary again: roleEnv names
// the part that it plays, the arguments after it are handed on.
const roleEnv = "HOLDFAST_V1_ROLE"

// roles are the parts. Each file adds its own in an init.
var roles = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	name := os.Getenv(roleEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	role, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no role %q\n", name)
		os.Exit(2)
	}
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "role %s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child prepares this binary in a role. It is killed when the test ends.
func child(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// A process is a child that was started: what it prints is read line by line, and
// it is told to go on by lines, or by the end, of its input.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// start starts a role.
func start(t testing.TB, role string, args ...string) *process {
	t.Helper()
	cmd := child(t, role, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return &process{cmd, in, lines}
}

// line gives the next line that the child prints, or ends the test.
func (p *process) line(t testing.TB) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the child printed no further line: %v, %v", p.out.Err(), p.cmd.Wait())
	}
	return p.out.Text()
}

// rest gives what the child still prints, and how it ended.
func (p *process) rest() (lines []string, err error) {
	for p.out.Scan() {
		lines = append(lines, p.out.Text())
	}
	return lines, errors.Join(p.out.Err(), p.cmd.Wait())
}

// killedBy is the signal that ended a process, or 0.
func killedBy(err error) syscall.Signal {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}

// skip leaves out a test for want of something in the environment, or fails it
// where nothing may be left out.
func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("HOLDFAST_REQUIRE_ALL") == "1" {
		t.Fatalf("may not be skipped here: %s", reason)
	}
	t.Skip(reason)
}

// raceDetector reports whether this binary was built with it.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
