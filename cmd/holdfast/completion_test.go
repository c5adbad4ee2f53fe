//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	holdfast "example.com/holdfast/v2"
)

// offered gives what the shell is offered after a line.
func (s *session) offered(args ...string) []string {
	s.t.Helper()
	got := s.run(append([]string{"__complete"}, args...)...)
	rows := lines(got.out)
	if got.code != 0 || len(rows) == 0 || !strings.HasPrefix(rows[len(rows)-1], ":") {
		s.t.Fatalf("complete %q: exit %d\n%s%s", args, got.code, got.out, got.err)
	}
	return rows[:len(rows)-1]
}

func TestCompletionOfNames(t *testing.T) {
	s := newStore(t)
	for _, id := range []string{"one", "only", "two"} {
		s.must("enqueue", "chat", "1", "--id", id)
	}
	s.must("enqueue", "bot/in", "1", "--id", "bad")
	receiptOf := func(queue string) string { return decode[claimLine](t, s.must("claim", queue, "--json")).Receipt }
	s.must("set", "--queue", "bot/in", "failed_namespace=dead")
	s.must("fail", receiptOf("bot/in"), "--cause", "no")
	s.must("fail", receiptOf("chat"), "--cause", "no") // one
	before := treeOf(t, s.dir)
	for _, c := range []struct {
		line string
		want []string
	}{
		{"claim ", []string{"bot/in", "chat"}},
		{"claim b", []string{"bot/in"}},
		{"claim chat ", nil},
		{"enqueue c", []string{"chat"}},
		{"wait chat ", []string{"bot/in"}},
		{"show chat ", []string{"only", "two"}},
		{"show chat o", []string{"only"}},
		{"show chat only ", nil},
		{"show ../x ", nil},
		{"load chat t", []string{"two"}},
		{"reprocess ", []string{"one"}},
		{"reprocess --namespace dead ", []string{"bad"}},
		{"reprocess --namespace ", []string{"dead"}},
		{"failed show --namespace dead b", []string{"bad"}},
		{"failed purge one ", nil},
		{"failed ls ", []string{"bot/in", "chat"}},
		{"set --queue c", []string{"chat"}},
		{"init --on-dead-owner ", []string{"stop", "recover"}},
		{"enqueue chat --if-exists ", []string{"refuse", "keep", "replace"}},
		{"completion p", []string{"powershell"}},
	} {
		if got := s.offered(strings.Split(c.line, " ")...); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
	if after := treeOf(t, s.dir); !maps.Equal(after, before) {
		t.Errorf("completing changed the store")
	}
}

// Where the store cannot be looked at the shell is offered nothing, and told nothing.
func TestCompletionIsSilent(t *testing.T) {
	empty := t.TempDir()
	broken := newBrokenStore(t)
	for name, s := range map[string]*session{
		"no directory": {t: t, dir: filepath.Join(empty, "none")},
		"no store":     {t: t, dir: empty},
		"corrupt":      {t: t, dir: broken},
		"refused": {t: t, dir: empty, engine: &engine{look: func(context.Context, string, *holdfast.Options) (store, error) {
			return nil, errors.New("refused")
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, line := range []string{"claim ", "show chat ", "reprocess ", "reprocess --namespace "} {
				if got := s.offered(strings.Split(line, " ")...); len(got) > 0 {
					t.Errorf("%q: got %q", line, got)
				}
			}
		})
	}
}

// A dead owner's lock, or one that is held, keeps nobody's shell waiting.
func TestCompletionDoesNotWait(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1")
	lock, err := os.Open(filepath.Join(s.dir, ".fs-safe-queue-v2", ".state-transfer.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if got := s.offered("claim", ""); !slices.Equal(got, []string{"chat"}) {
		t.Errorf("while the lock is held: got %q", got)
	}
}

// The tables speak of commands and flags that there are.
func TestCompletionTables(t *testing.T) {
	var out, errs bytes.Buffer
	root := newApp(strings.NewReader(""), &out, &errs).root()
	flags := map[string]bool{}
	for _, c := range allCommands(root) {
		for flag := range flagNames {
			flags[flag] = flags[flag] || c.Flags().Lookup(flag) != nil
		}
		for flag := range flagValues {
			flags[flag] = flags[flag] || c.Flags().Lookup(flag) != nil
		}
		name := commandName(c)
		takes := strings.Contains(c.Use, "QUEUE") && !strings.Contains(c.Use, "--queue QUEUE") || strings.Contains(c.Use, "NAME...") || strings.HasSuffix(c.Use, " NAME")
		if _, ok := offers[name]; ok != takes && !c.Hidden {
			t.Errorf("%s (%s): offers %v, takes names %v", name, c.Use, ok, takes)
		}
	}
	for name := range offers {
		if c, _, err := root.Find(strings.Fields(name)); err != nil || commandName(c) != name {
			t.Errorf("no command %q", name)
		}
	}
	for flag, there := range flags {
		if !there {
			t.Errorf("no command has --%s", flag)
		}
	}
}

// newBrokenStore makes a store whose state is not what the format says.
func newBrokenStore(t *testing.T) string {
	t.Helper()
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
	s.must("init")
	if err := os.WriteFile(filepath.Join(s.dir, ".fs-safe-queue-v2", "state.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.dir
}
