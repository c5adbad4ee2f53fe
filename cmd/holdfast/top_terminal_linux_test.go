package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/sandbox"
	"example.com/holdfast/internal/crashtest/testrun"
)

// A cliTmux is a real terminal: tmux with a server of its own.
type cliTmux struct {
	t      *testing.T
	socket string
}

func newTmux(t *testing.T, width, height int) *cliTmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		skip(t, "no tmux here, which is the terminal")
	}
	dir, err := os.MkdirTemp("", "holdfast-tmux-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	m := &cliTmux{t, filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() // it may have ended with its shell
		os.RemoveAll(dir)
	})
	m.do("-f", "/dev/null", "new-session", "-d", "-x", itoa(width), "-y", itoa(height), "env", "-u", "NO_COLOR", "PS1=ready$", "sh")
	m.wait("ready$")
	return m
}

func (m *cliTmux) do(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", m.socket}, args...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (m *cliTmux) screen() string { return m.do("capture-pane", "-p") }

// wait waits until each text is on the screen.
func (m *cliTmux) wait(texts ...string) string {
	m.t.Helper()
	screen := ""
	defer func() {
		if m.t.Failed() {
			m.t.Logf("the screen:\n%s", screen)
		}
	}()
	cliWithin(m.t, "on the screen: "+strings.Join(texts, ", "), func() bool {
		screen = m.screen()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
	return screen
}

// In a real terminal, of the size of a phone's: what is drawn, what keys do, and that
// every way out leaves the terminal as it was.
func TestTopInATerminal(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("tmux for some seconds")
	case testrun.RaceDetector():
		t.Skip("at its end bubbletea closes what its reader still asks for its descriptor: a race of its own")
	}
	s := newStore(t)
	s.must("fail", s.claimed("mail", "bad", "none").Receipt, "--cause", evil)
	s.must("enqueue", "mail", "1", "--id", "next")
	m := newTmux(t, 40, 20)
	pidFile := filepath.Join(t.TempDir(), "pid")
	ways := []string{"q", "TERM", "C-c", "INT"}
	if !testrun.Thorough() || testrun.RaceDetector() {
		ways = ways[:2]
	}
	for _, out := range ways {
		before := m.settings()
		m.do("send-keys", topUnder(s.dir, "1", pidFile), "Enter")
		m.wait("[1:queues]", "> mail", "? keys")
		if got := m.do("display", "-p", "#{alternate_on}"); got != "1\n" {
			t.Errorf("%s: not on the alternate screen: %s", out, got)
		}
		if out == "q" {
			s.must("enqueue", "other", "1")
			m.wait("other") // it looks again by itself
			m.do("send-keys", "3")
			m.wait("\\u001b]0")
			m.do("send-keys", "d")
			m.wait("remove failed bad of mail for good?")
			m.do("send-keys", "y")
			m.wait("purged bad", "no failed messages")
			m.do("resize-window", "-x", "80", "-y", "24")
			m.wait("filter")
		}
		switch out {
		case "TERM", "INT":
			if err := unix.Kill(m.pid(pidFile), map[string]unix.Signal{"TERM": unix.SIGTERM, "INT": unix.SIGINT}[out]); err != nil {
				t.Fatal(err)
			}
		default:
			m.do("send-keys", out)
		}
		m.wait("code=0=")
		if got := m.do("display", "-p", "#{alternate_on} #{cursor_flag}"); got != "0 1\n" {
			t.Errorf("%s: alternate screen and cursor: %s", out, got)
		}
		if after := m.settings(); after != before {
			t.Errorf("%s: the terminal was\n%+v\nand is\n%+v", out, before, after)
		}
	}
	if st := decode[statusLine](t, s.must("status", "--json")); st.Queues["mail"].Counters.Purged != 1 {
		t.Errorf("%+v", st.Queues["mail"])
	}
}

// T05: it does not make a call that an Android app may not make, on a terminal too.
func TestTopUnderTheAndroidFilter(t *testing.T) {
	sandbox.Need(t)
	if testing.Short() {
		t.Skip("tmux for a second")
	}
	s := newStore(t)
	s.must("enqueue", "mail", "1")
	m := newTmux(t, 80, 24)
	m.do("send-keys", topUnder(s.dir, confined, filepath.Join(t.TempDir(), "pid")), "Enter")
	m.wait("> mail")
	m.do("send-keys", "p")
	m.wait("[y/N]")
	m.do("send-keys", "y")
	m.wait("paused mail")
	m.do("send-keys", "q")
	m.wait("code=0=")
}

// topUnder is the line for a shell that runs top under a filter, or under none, and says its
// exit code.
func topUnder(dir, filter, pidFile string) string {
	line := "echo $$ >" + shellWord(pidFile) + "; exec env " + asCommand + "=" + filter + " HOLDFAST_DIR=" + shellWord(dir) + " " + shellWord(os.Args[0]) + " top --interval 100ms"
	return "clear; sh -c " + shellWord(line) + "; echo code=$?="
}

func (m *cliTmux) pid(file string) int {
	m.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		m.t.Fatal(err)
	}
	return pid
}

// settings gives those of the terminal.
func (m *cliTmux) settings() unix.Termios {
	m.t.Helper()
	f, err := os.OpenFile(strings.TrimSpace(m.do("display", "-p", "#{pane_tty}")), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	s, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		m.t.Fatal(err)
	}
	return *s
}
