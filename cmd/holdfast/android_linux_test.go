package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
)

// A phone is the command, built as for a phone, under the filter of an app.
type phone struct {
	t    *testing.T
	l    *sandbox.Launcher
	path string
}

func newPhone(t *testing.T) *phone {
	l := sandbox.NewLauncher(t)
	return &phone{t, l, l.Build(t, ".")}
}

func (p *phone) command(args ...string) *exec.Cmd {
	return p.l.Command(p.t, sandbox.AsApp, p.path, args...)
}

// must runs it and wants exit code 0.
func (p *phone) must(env []string, args ...string) (out, errs string) {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Env = append(cmd.Env, env...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("holdfast %q: %v; trapped: %q\n%s", args, err, sandbox.Trapped(e.String(), err), e.String())
	}
	return o.String(), e.String()
}

// T05: so it does where everything is trapped but what Android admits, from the first
// instruction on. One command is for Android 9 and later: import-v1, where it has to put an
// entry back under its name, renames without replacing.
func TestT05CommandsAsAnApp(t *testing.T) {
	p := newPhone(t)
	everyCommand(t, func(args ...string) *exec.Cmd {
		if slices.Contains(args, "import-v1") {
			return p.l.Command(t, sandbox.AsLaterApp, p.path, args...)
		}
		return p.command(args...)
	})
	t.Run("serve", func(t *testing.T) { serveAsProcess(t, p.command) })
	t.Run("import-v1 on Android 8", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		from, failed := importDirs(t, map[string]string{"q/d.processing": "4", "q/.fs-safe-retirements/d.json/entry": "5"})
		p.must(nil, "--dir", dir, "init")
		out, err := p.command("--dir", dir, "import-v1", "--from", from, "--failed", failed, "--queue", "old", "--i-have-stopped-old-programs").CombinedOutput()
		if got := sandbox.Trapped(string(out), err); got != "renameat2" {
			t.Errorf("trapped %q, want renameat2: the documents say that import-v1 is for Android 9 and later\n%s", got, out)
		}
	})
}

// `work` and `demo` start processes without a call that is trapped, where Go's os/exec
// would make two: faccessat2 to look for the program, pidfd_open to wait for it. What they
// start is under the filter too.
func TestProcessesAsAnApp(t *testing.T) {
	p := newPhone(t)
	t.Run("work", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		bin := t.TempDir() // a copy of the command, to be found in PATH
		if err := os.Link(p.path, filepath.Join(bin, "do")); err != nil {
			t.Fatal(err)
		}
		env := []string{"PATH=" + bin}
		p.must(nil, "--dir", dir, "init")
		for _, id := range []string{"a", "b"} {
			p.must(nil, "--dir", dir, "enqueue", "mail", "1", "--id", id)
		}
		out, _ := p.must(env, "--dir", dir, "work", "mail", "--until-complete", "--", "do", "version")
		if got := strings.Count(out, "holdfast "); got != 2 {
			t.Errorf("its command ran %d times, want 2: %q", got, out)
		}
		if _, errs := p.must(env, "--dir", dir, "status"); errs != "" {
			t.Error(errs)
		}
	})
	t.Run("work that must end its command", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		p.must(nil, "--dir", dir, "init")
		p.must(nil, "--dir", dir, "enqueue", "mail", "1", "--id", "a")
		// The command waits for a queue that nothing comes to.
		_, errs := p.must(nil, "--dir", dir, "work", "mail", "--until-complete", "--timeout", "100ms", "--max-failures", "1",
			"--", p.path, "--dir", dir, "wait", "mail")
		if !strings.Contains(errs, "time limit is over: exit status 4") {
			t.Errorf("it was not told to end:\n%s", errs)
		}
	})
	t.Run("demo", func(t *testing.T) {
		p.must([]string{"TMPDIR=" + t.TempDir()}, "demo")
	})
}
