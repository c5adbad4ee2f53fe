//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"strings"
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
		"the terminal went away":    {"", syscall.SIGHUP, 129},
	} {
		t.Run(name, func(t *testing.T) {
			// Where nohup started the tests, SIGHUP would be ignored in the command too. What is
			// handled here is as by default in a process that this one starts.
			heard := make(chan os.Signal, 1)
			signal.Notify(heard, syscall.SIGHUP)
			defer signal.Stop(heard)
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

// A reader that has gone ends no command by a signal: what was done is told, a worker goes
// on, and what only looked ends quietly.
func TestAReaderThatIsGone(t *testing.T) {
	s := newStore(t)
	broken := func() *os.File {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		t.Cleanup(func() { w.Close() })
		return w
	}
	run := func(args ...string) answer {
		t.Helper()
		var errs strings.Builder
		cmd := cliCommand(s.dir, args...)
		cmd.Stdout, cmd.Stderr = broken(), &errs
		if err := cmd.Run(); cmd.ProcessState == nil || !cmd.ProcessState.Exited() {
			t.Fatalf("%q: %v %s", args, err, errs.String())
		}
		return answer{code: cmd.ProcessState.ExitCode(), err: errs.String()}
	}
	if got := run("enqueue", "mail", "1", "--id", "m"); got.code != exitIO || !strings.HasPrefix(got.err, "holdfast: accepted mail m, but") {
		t.Errorf("%+v", got)
	}
	if got := run("ls", "mail"); got.code != exitIO || got.err != "" {
		t.Errorf("%+v", got)
	}
	got := run("claim", "mail")
	if rows := lines(got.err); got.code != exitIO || len(rows) != 2 {
		t.Errorf("%+v", got)
	} else {
		s.must("release", rows[1])
	}

	cmd := cliCommand(s.dir, "work", "mail", "-v", "--until-complete", "--", "/bin/sh", "-c", "echo said; echo said >&2")
	cmd.Stdout, cmd.Stderr = broken(), broken()
	if err := cmd.Run(); err != nil {
		t.Errorf("a worker whose log nobody reads: %v", err)
	}
	if st := decode[statusLine](t, s.must("status", "--json")); st.Queues["mail"].Counters.Completed != 1 {
		t.Errorf("%+v", st)
	}
}
