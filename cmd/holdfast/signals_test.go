//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A script starts what it sends to the background with SIGINT ignored; the second signal
// ends the process all the same, while a command runs that the drain waits for.
func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	for name, try := range map[string]struct {
		trap   string
		signal syscall.Signal
		want   int
	}{
		"ignored by who started it": {"trap '' INT; ", syscall.SIGINT, 130},
		"interrupt":                 {"", syscall.SIGINT, 130},
		"terminate":                 {"", syscall.SIGTERM, 143},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			fifo := s.fifo(".go")
			s.must("enqueue", "chat", "1", "--id", "m")
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/bin/sh", "-c", try.trap+`exec "$@"`, "sh", exe, "--dir", s.dir,
				"work", "chat", "--drain", "1h", "--", "/bin/sh", "-c", `echo started; read go <"$HOLDFAST_DIR.go"`)
			cmd.Env = append(os.Environ(), asCommand+"=1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if said := bufio.NewScanner(out); !said.Scan() {
				t.Fatal("the command did not start")
			}
			defer letGo(t, fifo) // it goes on without its worker
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			// Two that come before the process has taken the first count as one: more follow.
			cliWithin(t, "the process ends", func() bool {
				cmd.Process.Signal(try.signal)
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
			if got := cmd.ProcessState.ExitCode(); got != try.want {
				t.Errorf("exit code %d, want %d", got, try.want)
			}
		})
	}
}
