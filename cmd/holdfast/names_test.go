//go:build unix

package main

import (
	"strings"
	"testing"
)

func TestT24RefusedNamesNameTheRule(t *testing.T) {
	s := newStore(t)
	for _, try := range []struct{ queue, id, rule string }{
		{"chat", "CON", "a device name on Windows"},
		{"chat", "nul.txt", "a device name on Windows"},
		{"chat", "lpt1.json", "a device name on Windows"},
		{"chat", "x.", "may not end with a dot"},
		{"chat", ".x", "may not begin with a dot"},
		{"chat", "..", "may not begin with a dot"},
		{"chat", "a/b", "only A-Z a-z 0-9 . _ - may stand in it"},
		{"chat", "é", "only A-Z a-z 0-9"},
		{"chat", "e\u0301", "only A-Z a-z 0-9"},
		{"chat", strings.Repeat("x", 129), "at most 128"},
		{"status", "m", `the last component may not be "status"`},
		{"a/ack", "m", `the last component may not be "ack"`},
		{"a//b", "m", "an empty component beside a slash"},
		{"", "m", "empty queue name"},
		{"a/../b", "m", "may not begin with a dot"},
	} {
		got := s.refused(exitUsage, "invalid_name", "enqueue", try.queue, "1", "--id", try.id)
		if !strings.Contains(got.err, try.rule) {
			// In JSON the quotes of the rule are escaped.
			if !strings.Contains(decode[errorLine](t, got.err).Error, try.rule) {
				t.Errorf("%q %q: %s does not name the rule %q", try.queue, try.id, got.err, try.rule)
			}
		}
	}
	for _, id := range []string{"A", "a", "state", "format", "_", "-", "0"} {
		s.must("enqueue", "chat", `"`+id+`"`, "--id="+id)
	}
	for _, id := range []string{"A", "a", "state", "format", "_", "0"} {
		if got := s.must("show", "chat", id, "--payload"); got != `"`+id+`"` {
			t.Errorf("%s: got %s", id, got)
		}
	}
}

// A bad name of a key, a cursor, a namespace or a queue never reaches the store.
func TestBadTextsAreRefused(t *testing.T) {
	s := &session{t: t, dir: "/nonexistent"}
	long := strings.Repeat("x", 1025)
	for _, try := range []struct {
		code string
		args []string
	}{
		{"invalid_name", []string{"enqueue", "chat", "1", "--key", "a\nb"}},
		{"invalid_name", []string{"enqueue", "chat", "1", "--key", long}},
		{"invalid", []string{"enqueue", "chat", "1", "--at", "1969-12-31T23:59:59Z"}},
		{"too_large", []string{"cursor", "chat", "--set", long}},
		{"invalid", []string{"cursor", "chat", "--set", "\xff"}},
		{"invalid_name", []string{"cursor", "status"}},
		{"invalid_name", []string{"reap", "a", "status"}},
		{"invalid_name", []string{"wait", "a", "status"}},
		{"invalid_name", []string{"ls", "status", "--overdue"}},
		{"invalid_name", []string{"wait", "a", "--message", "x."}},
		{"invalid_name", []string{"set", "--queue", "status"}},
		{"invalid_name", []string{"set", "--queue", "a", "failed_namespace=a/"}},
		{"invalid_name", []string{"reprocess", "--all", "--queue", "status"}},
		{"invalid_name", []string{"reprocess", "m", "--namespace", ".x"}},
	} {
		s.refused(exitUsage, try.code, try.args...)
	}
}

func TestDirectoryComesFromFlagEnvironmentOrHere(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1")
	byEnv := &session{t: t, env: map[string]string{"HOLDFAST_DIR": s.dir}}
	if got := decode[statusLine](t, byEnv.must("status", "--json")); got.Queues["chat"].Pending != 1 {
		t.Errorf("HOLDFAST_DIR: %+v", got)
	}
	t.Chdir(s.dir)
	here := &session{t: t}
	if got := decode[statusLine](t, here.must("status", "--json")); got.Queues["chat"].Pending != 1 {
		t.Errorf("here: %+v", got)
	}
}

func TestInitUnderTermuxChoosesRecover(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"version": {"TERMUX_VERSION": "0.118"},
		"prefix":  {"PREFIX": "/data/data/com.termux/files/usr"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{t: t, dir: t.TempDir() + "/store", env: env}
			if got := s.must("init"); !strings.Contains(got, "on_dead_owner is recover (chosen because this is Termux)") {
				t.Errorf("it does not say so: %q", got)
			}
			if got := s.must("set"); got != "on_dead_owner=recover\n" {
				t.Errorf("settings: %q", got)
			}
		})
	}
	s := &session{t: t, dir: t.TempDir() + "/store"}
	s.must("init")
	if got := s.must("set", "--json"); got != `{"on_dead_owner":"stop"}`+"\n" {
		t.Errorf("elsewhere: %q", got)
	}
	s.must("set", "on_dead_owner=recover")
	if got := s.must("set"); got != "on_dead_owner=recover\n" {
		t.Errorf("after set: %q", got)
	}
	other := &session{t: t, dir: t.TempDir() + "/store"}
	other.must("init", "--on-dead-owner", "recover")
	if got := other.must("set"); got != "on_dead_owner=recover\n" {
		t.Errorf("by flag: %q", got)
	}
	other.refused(exitUsage, "usage", "init", "--on-dead-owner", "guess")
}
