//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/bench/load"
	"example.com/holdfast/internal/crashtest/leak"
)

func TestMain(m *testing.M) {
	load.Child() // when this is a process of a trial, it ends here
	os.Exit(leak.Main(m))
}

// A whole run, as short as can be: every table has its peers, the file is what was
// printed, and nothing is left.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "page.md")
	var stdout, log bytes.Buffer
	err := run(t.Context(), []string{
		"-dir", dir, "-out", out, "-reps", "1", "-messages", "2", "-limit", "1ms",
		"-only", "one,joint,two,1k,cpu", "-peers", "holdfast,control,worker,bolt,floor-append",
	}, &stdout, &log)
	if err != nil {
		t.Fatal(err, log.String())
	}
	page := stdout.String()
	for _, want := range []string{
		"# Benchmarks\n", "## At a glance\n", "## By depth\n", "## What the device does for a message\n",
		"## Holdfast's state file\n", "### Two processes\n", "| bbolt | one process only |", "| holdfast v2, worker | ",
		"| 1,000 | ", "- **bbolt**: ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != page {
		t.Errorf("the file is not what was printed: %v, %d and %d bytes", err, len(text), len(page))
	}
	for _, word := range []string{dir, "NaN", "Inf", "%!"} {
		if strings.Contains(page, word) {
			t.Errorf("the page has %q", word)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "holdfast-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	if t.Failed() {
		t.Log(page)
	}
}

// A run that is interrupted says so, writes nothing and leaves nothing.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	err := run(ctx, []string{"-dir", dir, "-out", filepath.Join(dir, "page.md"), "-only", "one", "-peers", "bolt"}, io.Discard, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		args             string
		peers, workloads int // 0: an error
	}{
		"picked":           {"-peers redis,holdfast -only one,64", 2, 2},
		"deep":             {"-peers bolt -only 1m -deep", 1, 1},
		"not deep":         {"-peers bolt -only 1m", 0, 0},
		"an unknown peer":  {"-peers kafka", 0, 0},
		"no repetition":    {"-reps 0", 0, 0},
		"no message":       {"-messages 0", 0, 0},
		"no time":          {"-limit 0s", 0, 0},
		"something behind": {"-peers bolt one", 0, 0},
	} {
		o, err := parse(strings.Fields(c.args), io.Discard)
		if (err != nil) != (c.peers == 0) || err == nil && (len(o.peers) != c.peers || len(o.workloads) != c.workloads) {
			t.Errorf("%s: got %d peers and %d workloads, %v", name, len(o.peers), len(o.workloads), err)
		}
	}
}

func TestHelp(t *testing.T) {
	var log bytes.Buffer
	if err := run(t.Context(), []string{"-help"}, io.Discard, &log); err != nil || !strings.Contains(log.String(), "-messages") {
		t.Errorf("got %v and %q", err, log.String())
	}
}

func TestList(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-list", "-package", t.TempDir()}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  one ", "  holdfast ", "(left out: not installed; see -package)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
