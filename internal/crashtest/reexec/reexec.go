//go:build unix

// Package reexec starts the running test binary again as a process of its own, in a
// role, and kills it. Only tests import it.
package reexec

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest/leak"
	"example.com/holdfast/internal/crashtest/sandbox"
)

// Env names the role that a test binary plays. The arguments after it are handed on.
const Env = "HOLDFAST_TEST_ROLE"

// Main is what a TestMain calls. It runs the tests, which must leave nothing behind, and what
// is to be done after them all, or the role that the environment names, and exits.
func Main(m *testing.M, roles map[string]func(args []string) error, after ...func()) {
	name := os.Getenv(Env)
	if name == "" {
		os.Exit(leak.Main(m, after...))
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

// Command prepares this binary in a role. It is killed when the test ends. In a process
// that was started under a filter it leaves the test out.
func Command(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	sandbox.StartsProcess(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), Env+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// A Process is a child that was started: what it prints is read line by line, and it is
// told to go on by lines, or by the end, of its input.
type Process struct {
	Cmd *exec.Cmd
	In  io.WriteCloser
	Out *bufio.Scanner
}

// Start starts a role.
func Start(t testing.TB, role string, args ...string) *Process {
	t.Helper()
	cmd := Command(t, role, args...)
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
	t.Cleanup(func() {
		if cmd.ProcessState == nil { // nobody waited for its end; it was killed with the test's context
			_ = cmd.Wait()
		}
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return &Process{cmd, in, lines}
}

// Line gives the next line that the child prints, or ends the test.
func (p *Process) Line(t testing.TB) string {
	t.Helper()
	if !p.Out.Scan() {
		t.Fatalf("the child printed no further line: %v, %v", p.Out.Err(), p.Cmd.Wait())
	}
	return p.Out.Text()
}

// Rest gives what the child still prints, and how it ended.
func (p *Process) Rest() (lines []string, err error) {
	for p.Out.Scan() {
		lines = append(lines, p.Out.Text())
	}
	return lines, errors.Join(p.Out.Err(), p.Cmd.Wait())
}

// Kill kills the child, and returns when it is gone. One that had ended by itself ends
// the test.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Wait(); KilledBy(err) != syscall.SIGKILL {
		t.Fatalf("the child ended by itself: %v", err)
	}
}

// KillAtRandom reads from one to most lines, kills the child at some moment after them,
// fewer than yields turns of the scheduler on, and gives all that it printed. One that had
// ended by itself ends the test.
func (p *Process) KillAtRandom(t testing.TB, rng *rand.Rand, most, yields int) (lines []string) {
	t.Helper()
	for range 1 + rng.IntN(most) {
		lines = append(lines, p.Line(t))
	}
	for range rng.IntN(yields) { // on into whatever comes next
		runtime.Gosched()
	}
	if err := p.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	more, err := p.Rest()
	if KilledBy(err) != syscall.SIGKILL {
		t.Fatalf("the child %q ended by itself: %v", p.Cmd.Args[1:], err)
	}
	return append(lines, more...)
}

// KilledBy is the signal that ended a process, or 0.
func KilledBy(err error) syscall.Signal {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}
