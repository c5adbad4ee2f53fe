package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
)

const confined = "confined"

func init() {
	confine = func(how string) error {
		if how != confined {
			return nil
		}
		return sandbox.Kill(sandbox.Known(slices.Concat(sandbox.Links, sandbox.Android)))
	}
}

// T05: every command that starts no process works under a filter that kills at the
// first call that an Android app may not make, or that makes a link.
func TestT05CommandsUnderTheAndroidFilter(t *testing.T) {
	sandbox.Need(t)
	everyCommand(t, func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asCommand+"="+confined)
		return cmd
	})
}

// everyCommand runs each command that starts no process, as the function prepares it, and
// fails where one ends otherwise than it should.
func everyCommand(t *testing.T, command func(args ...string) *exec.Cmd) {
	dir := filepath.Join(t.TempDir(), "store")
	seen := map[string]bool{}
	run := func(stdin string, wantCode int, args ...string) string {
		t.Helper()
		seen[args[0]] = true
		cmd := command(append([]string{"--dir", dir}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if call := sandbox.Trapped(errs.String(), err); call != "" {
			t.Fatalf("holdfast %q: %s is not admitted\n%s", args, call, errs.String())
		}
		if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != wantCode {
			t.Fatalf("holdfast %q: exit %d, want %d\n%s%s", args, got, wantCode, out.String(), errs.String())
		}
		return out.String()
	}
	receipt := func(id string) string {
		t.Helper()
		line := run("", 0, "load", "mail", id, "--json")
		_, rest, _ := strings.Cut(line, `"receipt":"`)
		text, _, ok := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("no receipt in %q", line)
		}
		return text
	}
	run("", 0, "init")
	run("", 0, "enqueue", "mail", `{"n":1}`, "--id", "a")
	run(`{"n":2}`, 0, "enqueue", "mail", "--file", "-", "--id", "b")
	run("1\n2\n3\n", 0, "enqueue", "mail", "--ndjson")
	run("", 0, "peek", "mail")
	run("", 0, "claim", "mail", "-n", "2", "--lease", "none")
	run("", 0, "ls", "mail")
	run("", 0, "show", "mail", "a", "--payload")
	run("", 0, "ack", receipt("a"))
	run("", 0, "release", receipt("b"))
	run("", 0, "retry", receipt("b"), "--error", "later")
	run("", 0, "extend", receipt("b"), "--lease", "none")
	run("", 1, "reap", "mail")
	run("", 0, "fail", receipt("b"), "--cause", "no")
	run("", 0, "reprocess", "b")
	run("", 0, "fail", receipt("b"), "--cause", "no")
	run("", 0, "pause", "mail")
	run("", 0, "resume", "mail")
	run("", 0, "cursor", "mail", "--set", "7")
	run("", 0, "failed", "ls")
	run("", 0, "failed", "show", "b", "--payload")
	run("", 0, "failed", "purge", "b")
	run("", 1, "failed", "purge", "--lost")
	run("", 0, "clear", "mail")
	run("", 0, "wait", "mail")
	run("", 0, "enqueue", "mail", "1", "--key", "k", "--delay", "1h")
	run("", 1, "wait", "mail", "--timeout", "10ms") // parks before it gives up
	run("", 0, "wait", "mail", "--ignore-scheduled")
	run("", 0, "status", "--json")
	run("", 2, "top") // without a terminal: TestTopUnderTheAndroidFilter has one
	run("", 0, "verify")
	run("", 0, "status", "--orphans")
	run("", 0, "collect", "--dry-run")
	run("", 0, "collect", "--json")
	run("", 0, "backup", dir+"-copy")
	tape := run("", 0, "backup", "-")
	run("", 5, "restore", dir+"-copy")
	for at, from := range []string{dir + "-copy", "-"} { // into directories of their own: the last --dir counts
		run(tape, 0, "restore", from, "--dir", dir+"-restored"+string(rune('0'+at)))
	}
	run("", 0, "recover")
	run("", 0, "set", "on_dead_owner=recover")
	from, failed := importDirs(t, map[string]string{
		"q/a.json": "1", "q/b.processing": "2", "f/c.json": "3", "q/" + importLock: "{",
		"q/d.processing": "4", "q/.fs-safe-retirements/d.json/entry": "5",
	})
	run("", 3, "import-v1", "--from", from, "--failed", failed, "--queue", "old", "--i-have-stopped-old-programs")
	run("", 0, "import-v1", "--from", from, "--failed", failed, "--queue", "old", "--dry-run", "--remove-lock", importLock)
	run("", 0, "import-v1", "--from", from, "--failed", failed, "--queue", "old", "--i-have-stopped-old-programs", "--remove-lock", importLock)
	run("", 1, "import-v1", "--abandon", "--queue", "old")
	run("", 0, "import-v1", "--from", from, "--remove-source", "--yes")
	run("", 0, "doctor", "--skip", "hard_link", "--skip", "rename_no_replace") // under Termux the second is left out anyway
	run("", 0, "version")
	run("", 0, "completion", "bash")
	run("", 0, "tree")
	run("", 0, "__complete", "show", "mail", "")
	run("", 1, "claim", "mail", "--fair")
	run("", 2, "enqueue", "a/ack", "1")

	var out, errs bytes.Buffer
	for _, c := range newApp(strings.NewReader(""), &out, &errs).root().Commands() {
		switch name := c.Name(); {
		case c.Hidden, name == "demo", name == "work", name == "help": // demo and work start processes
		case name == "serve": // see serveAsProcess
		case !seen[name]:
			t.Errorf("%s was not run under the filter", name)
		}
	}
}
