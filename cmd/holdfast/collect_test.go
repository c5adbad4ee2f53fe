//go:build unix

package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	holdfast "example.com/holdfast/v2"
)

// settled makes two orphans: the payloads of messages that were acked.
func (s *session) settled(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.must("enqueue", "chat", `"0123456789"`, "--id", id)
		s.must("ack", decode[claimLine](s.t, s.must("claim", "chat", "--json")).Receipt)
	}
}

func (s *session) objects() string { return filepath.Join(s.dir, ".fs-safe-queue-v2", "objects") }

func TestCollect(t *testing.T) {
	s := newStore(t)
	const none = "\n0 objects that nothing refers to\n"
	if got := s.must("status", "--orphans"); !strings.HasSuffix(got, none) {
		t.Errorf("status of a new store: %q, want it to end with %q", got, none)
	}
	s.settled("a", "b")
	s.must("enqueue", "chat", "1", "--id", "stays")
	if got := s.must("status"); strings.Contains(got, none) {
		t.Errorf("status without --orphans: %q", got)
	}
	if got, want := s.must("status", "--orphans"), "2 objects that nothing refers to (24 bytes)\n"; !strings.HasSuffix(got, want) {
		t.Errorf("status: %q, want it to end with %q", got, want)
	}
	if got := s.must("status"); strings.Contains(got, "nothing refers to") {
		t.Errorf("status counts unasked: %q", got)
	}
	if l := decode[statusLine](t, s.must("status", "--orphans", "--json")); l.Orphans != 2 || l.Bytes != 24 {
		t.Errorf("status: %+v", l)
	}
	before := treeOf(t, s.dir)
	if got, want := s.must("collect", "--dry-run"), "would free 2 objects of 24 bytes and 0 leftover temps of 0 bytes; 1 object in use\n"; got != want {
		t.Errorf("dry run: %q, want %q", got, want)
	}
	if !maps.Equal(before, treeOf(t, s.dir)) {
		t.Error("a dry run changed the store")
	}
	r := decode[holdfast.CollectReport](t, s.must("collect", "--json"))
	if !r.Done || r.Objects != 2 || r.Bytes != 24 || r.Named != 1 || r.Kept == nil {
		t.Errorf("collect: %+v", r)
	}
	if got, want := s.must("collect"), "freed 0 objects of 0 bytes and 0 leftover temps of 0 bytes; 1 object in use\n"; got != want {
		t.Errorf("again: %q, want %q", got, want)
	}
	if got := s.must("show", "chat", "stays", "--payload"); got != "1" {
		t.Errorf("what is referred to: %q", got)
	}
	s.tty = true
	if got := s.run("collect"); got.code != 0 || !strings.Contains(got.err, "1 of 1 looked at") || !strings.HasSuffix(got.err, "\r\x1b[K") {
		t.Errorf("on a terminal: %+v", got)
	}
	s.tty = false
}

// What stays is told with its reason; a reader by path defers it.
func TestCollectKeepsAndDefers(t *testing.T) {
	s := newStore(t)
	s.settled("a")
	if err := os.WriteFile(filepath.Join(s.objects(), "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(s.objects())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	got := s.refused(exitRefused, "deferred", "collect")
	if r := decode[holdfast.CollectReport](t, got.out); !r.Deferred || r.Objects > 0 {
		t.Errorf("collect: %+v", r)
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	want := "freed 1 object of 12 bytes and 0 leftover temps of 0 bytes; 0 objects in use\nkept 1, not the name of an object: objects/notes.txt\n"
	if got := s.must("collect"); got != want {
		t.Errorf("collect: %q, want %q", got, want)
	}
}

// Much of it is worth a word, in status and in verify.
func TestOrphansWorthCollecting(t *testing.T) {
	s := newStore(t)
	at := filepath.Join(s.objects(), "aaaaaaaaaaaaaaaaaaaaaaaaaa")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	for size, told := range map[int64]bool{worthBytes - 1: false, worthBytes: true} {
		if err := os.WriteFile(filepath.Join(at, "payload.json"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(at, "payload.json"), size); err != nil {
			t.Fatal(err)
		}
		for _, look := range [][]string{{"status", "--orphans"}, {"verify"}} {
			if got := s.must(look...); strings.Contains(got, "holdfast collect --dir "+s.dir) != told {
				t.Errorf("%q with %d bytes: %q", look, size, got)
			}
		}
	}
	if got := s.run("status", "--orphans", "--watch"); got.code != exitUsage {
		t.Errorf("status --orphans --watch: %+v", got)
	}
}

// A worker collects when it is told to.
func TestWorkCollects(t *testing.T) {
	s := newStore(t)
	s.settled("a")
	s.must("enqueue", "chat", "1", "--id", "m")
	got := s.run("work", "chat", "--until-complete", "--collect-every", "1ms", "--", "/bin/sh", "-c",
		`for n in $(seq 5000); do [ -z "$(ls "$0" | sed -n 2p)" ] && exit 0; done; exit 65`, s.objects())
	if got.code != 0 || !strings.Contains(got.err, "collected") || strings.Contains(got.err, "exit status") {
		t.Errorf("work: %+v", got)
	}
	if got := s.run("work", "chat", "--collect-every", "-1s", "--", "true"); got.code != exitUsage {
		t.Errorf("a negative interval: %+v", got)
	}
}
