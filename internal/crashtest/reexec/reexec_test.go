//go:build unix

package reexec

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	Main(m, map[string]func(args []string) error{
		"repeat": func(args []string) error {
			fmt.Println(strings.Join(args, " "))
			in := bufio.NewScanner(os.Stdin)
			for in.Scan() {
				fmt.Println(in.Text())
			}
			return in.Err()
		},
		"count": func([]string) error {
			for n := 1; ; n++ {
				if _, err := fmt.Println(n); err != nil {
					return err
				}
			}
		},
		"fail": func([]string) error { return errors.New("a bad day") },
	})
}

func TestProcess(t *testing.T) {
	p := Start(t, "repeat", "a", "b")
	if got := p.Line(t); got != "a b" {
		t.Errorf("got %q, want its arguments", got)
	}
	if _, err := fmt.Fprint(p.In, "c\nd\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.In.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, err := p.Rest(); err != nil || !slices.Equal(lines, []string{"c", "d"}) {
		t.Errorf("got %q, %v, want c and d", lines, err)
	}
}

func TestExitCode(t *testing.T) {
	for role, want := range map[string]struct {
		code int
		says string
	}{
		"fail": {1, "role fail: a bad day\n"},
		"none": {2, "no role \"none\"\n"},
	} {
		t.Run(role, func(t *testing.T) {
			cmd := Command(t, role)
			cmd.Stderr = nil
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != want.code || string(out) != want.says {
				t.Errorf("got %v, %q, want exit %d, %q", err, out, want.code, want.says)
			}
			if got := KilledBy(err); got != 0 {
				t.Errorf("killed by %v, want no signal", got)
			}
		})
	}
}

func TestKill(t *testing.T) {
	p := Start(t, "repeat")
	p.Line(t)
	p.Kill(t)
	if p.Cmd.ProcessState == nil || p.Cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v, want killed and gone", p.Cmd.ProcessState)
	}
	if err := p.Cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("killed again: %v", err)
	}
}

func TestKillAtRandom(t *testing.T) {
	lines := Start(t, "count").KillAtRandom(t, rand.New(rand.NewPCG(1, 2)), 9, 1<<10)
	if len(lines) == 0 {
		t.Fatal("no line")
	}
	for i, got := range lines[:len(lines)-1] { // the last may be cut short
		if got != fmt.Sprint(i+1) {
			t.Fatalf("line %d is %q", i+1, got)
		}
	}
}
