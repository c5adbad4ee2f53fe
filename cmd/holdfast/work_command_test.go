//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func testCommand(script string) (*command, *bytes.Buffer) {
	var out bytes.Buffer
	return &command{
		path: "/bin/sh", argv: []string{"sh", "-c", script}, stdout: &out, stderr: io.Discard,
		log: slog.New(slog.DiscardHandler), within: time.Minute,
	}, &out
}

// A told is a writer that tells that something was written.
type told chan struct{}

func (t told) Write(p []byte) (int, error) {
	select {
	case t <- struct{}{}:
	default:
	}
	return len(p), nil
}

// A command that is told to end has ended when run returns, willing or not, and what
// it has started too.
func TestCommandIsEnded(t *testing.T) {
	for _, c := range []struct {
		name, script string
		within       time.Duration
		signal       syscall.Signal
		exit         int
	}{
		{"willing", "trap 'exit 3' TERM; echo up; sleep 1000 & wait", time.Minute, 0, 3},
		{"by the signal", "echo up; exec sleep 1000", time.Minute, syscall.SIGTERM, 0},
		{"unwilling", "trap '' TERM; echo up; exec sleep 1000", time.Millisecond, syscall.SIGKILL, 0},
		{"with a child that ignores it", "(trap '' TERM; echo up; exec sleep 1000) & wait", time.Minute, syscall.SIGTERM, 0},
	} {
		for _, by := range []string{"context", "drain"} {
			t.Run(c.name+" "+by, func(t *testing.T) {
				cmd, _ := testCommand(c.script)
				up := make(told, 1)
				cmd.stdout, cmd.within = up, c.within
				drained := make(chan struct{})
				cmd.drained = drained
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					<-up
					if by == "drain" {
						close(drained)
					} else {
						cancel()
					}
				}()
				end, err := cmd.run(ctx, []byte("1"), nil)
				if err != nil || !end.told || end.status.Signaled() != (c.signal != 0) || c.signal != 0 && end.status.Signal() != c.signal ||
					c.signal == 0 && end.status.ExitStatus() != c.exit {
					t.Errorf("%v %+v", err, end)
				}
			})
		}
	}
}

// Its output is read to the end though nobody can take it, and the end of stderr kept.
func TestCommandWithoutAnOutput(t *testing.T) {
	cmd, _ := testCommand("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; echo last words >&2; exit 7")
	full := failingWriter{}
	cmd.stdout, cmd.stderr = full, full
	end, err := cmd.run(t.Context(), []byte("1"), nil)
	if err != nil || end.told || end.status.ExitStatus() != 7 || !strings.HasSuffix(end.String(), "last words") {
		t.Errorf("%v %v", err, end)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }

// Each variable is there once, whatever was exported before: programs differ in which
// of two they take.
func TestCommandEnvironment(t *testing.T) {
	t.Setenv("HOLDFAST_ID", "outer")
	cmd, out := testCommand("")
	cmd.path, cmd.argv = "/usr/bin/env", []string{"env"}
	if _, err := os.Stat(cmd.path); err != nil {
		skip(t, "there is no /usr/bin/env here")
	}
	if _, err := cmd.run(t.Context(), nil, []string{"HOLDFAST_ID=inner", "HOLDFAST_KEY="}); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "HOLDFAST_ID=") || strings.HasPrefix(line, "HOLDFAST_KEY=") {
			ids = append(ids, strings.TrimSpace(line))
		}
	}
	if got := strings.Join(ids, " "); got != "HOLDFAST_ID=inner HOLDFAST_KEY=" {
		t.Errorf("%q", got)
	}
}
