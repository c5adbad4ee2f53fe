//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/leak"
	"example.com/holdfast/internal/crashtest/testrun"
)

// asCommand makes the test binary be the command: the demo and some tests start
// it again as a second process.
const asCommand = "HOLDFAST_TEST_AS_COMMAND"

// mute is a command that ends at once and says nothing.
const mute = "mute"

// confine puts this process under a filter, where a test asks for one and has one.
var confine = func(how string) error { return nil }

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == mute {
		os.Exit(1)
	}
	if os.Getenv(asCommand) != "" {
		if err := confine(os.Getenv(asCommand)); err != nil {
			panic(err)
		}
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(leak.Main(m))
}

var skip = testrun.Skip

// A session is a way to call the command in this process.
type session struct {
	t      *testing.T
	dir    string
	env    map[string]string
	engine *engine // nil: the real one
	tty    bool
}

type answer struct {
	code     int
	out, err string
}

func (s *session) run(args ...string) answer { s.t.Helper(); return s.feed("", args...) }

// feed runs the command with stdin.
func (s *session) feed(stdin string, args ...string) answer {
	s.t.Helper()
	return s.feedFrom(context.Background(), strings.NewReader(stdin), args...)
}

func (s *session) feedFrom(ctx context.Context, stdin io.Reader, args ...string) answer {
	s.t.Helper()
	var out, errs bytes.Buffer
	a := newApp(stdin, &out, &errs)
	a.env = func(name string) string { return s.env[name] }
	a.tty = func(any) bool { return s.tty }
	if s.engine != nil {
		a.engine = *s.engine
	}
	if s.dir != "" {
		args = append([]string{"--dir", s.dir}, args...)
	}
	code := a.run(ctx, args)
	return answer{code, out.String(), errs.String()}
}

// must runs the command and wants exit code 0 and a silent stderr.
func (s *session) must(args ...string) string {
	s.t.Helper()
	return s.mustFeed("", args...)
}

func (s *session) mustFeed(stdin string, args ...string) string {
	s.t.Helper()
	got := s.feed(stdin, args...)
	if got.code != 0 || got.err != "" {
		s.t.Fatalf("holdfast %q: exit %d, stderr %q", args, got.code, got.err)
	}
	return got.out
}

// refused runs the command and wants this exit code, and with --json this code.
func (s *session) refused(exit int, code string, args ...string) answer {
	s.t.Helper()
	got := s.run(append([]string{"--json"}, args...)...)
	var l errorLine
	first, _, _ := strings.Cut(got.err, "\n")
	if err := json.Unmarshal([]byte(first), &l); err != nil {
		s.t.Fatalf("holdfast %q: stderr %q: %v", args, got.err, err)
	}
	if got.code != exit || l.Code != code {
		s.t.Fatalf("holdfast %q: exit %d, code %q (%s); want %d, %q", args, got.code, l.Code, l.Error, exit, code)
	}
	return got
}

// newStore makes a store; when the test ends it must verify.
func newStore(t *testing.T) *session {
	t.Helper()
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
	s.must("init")
	t.Cleanup(func() {
		if !t.Failed() {
			s.must("verify")
		}
	})
	return s
}

// decode reads one JSON line.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// cliCommand makes the command a process of its own.
func cliCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"--dir", dir}, args...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}
