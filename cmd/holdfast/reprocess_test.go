//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cliFailAll puts messages into failed: queue, ID, cause.
func cliFailAll(s *session, rows ...[3]string) {
	s.t.Helper()
	for _, r := range rows {
		s.must("fail", s.claimed(r[0], r[1], "none").Receipt, "--cause", r[2])
	}
}

func TestReprocessMatching(t *testing.T) {
	for name, try := range map[string]struct {
		args []string
		want string // IDs, in the order of their names
	}{
		"name":         {[]string{"--match", "renamed"}, "m4"},
		"id":           {[]string{"--match", "m4"}, "m4"},
		"id or name":   {[]string{"--match", "m"}, "m1 m2 m3 m4"},
		"last error":   {[]string{"--match", "refused"}, "m1 m3"},
		"case":         {[]string{"--match", "Refused"}, ""},
		"no pattern":   {[]string{"--match", "m."}, ""},
		"all":          {[]string{"--all"}, "m1 m2 m3 m4"},
		"queue":        {[]string{"--all", "--queue", "mail"}, "m3"},
		"match, queue": {[]string{"--match", "refused", "--queue", "chat"}, "m1"},
		"names":        {[]string{"m2", "m1"}, "m2 m1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			cliFailAll(s, [3]string{"chat", "m1", "connection refused"}, [3]string{"chat", "m2", "timed out"}, [3]string{"mail", "m3", "refused"})
			s.must("fail", s.claimed("chat", "m4", "none").Receipt, "--cause", "x", "--as", "renamed")
			got := s.run(append([]string{"reprocess", "--json"}, try.args...)...)
			var ids []string
			for _, l := range lines(got.out) {
				ids = append(ids, decode[map[string]string](t, l)["id"])
			}
			if strings.Join(ids, " ") != try.want {
				t.Errorf("got %q, want %s", ids, try.want)
			}
			if (got.code == exitNothing) != (try.want == "") || got.code != exitNothing && got.code != exitDone {
				t.Errorf("exit %d, %s", got.code, got.err)
			}
			if left := lines(s.must("failed", "ls", "--json")); len(left) != 4-len(ids) {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestReprocessDoesAllItCan(t *testing.T) {
	s := newStore(t)
	cliFailAll(s, [3]string{"chat", "m1", "x"}, [3]string{"chat", "m2", "x"}, [3]string{"chat", "m3", "x"})
	busy := s.claimed("chat", "m2", "none")
	got := s.run("reprocess", "--all", "--json")
	if l := decode[errorLine](t, got.err); got.code != exitRefused || len(lines(got.out)) != 2 || l.Code != "in_flight" || l.Name != "m2" || l.ID != "m2" || l.Queue != "chat" {
		t.Errorf("%+v", got)
	}
	got = s.run("reprocess", "nobody", "m2", "m.")
	if got.code != exitUsage || len(lines(got.err)) != 3 { // a bad name is worse than what is refused or not there
		t.Errorf("%+v", got)
	}
	s.must("ack", busy.Receipt)
	if got := s.must("reprocess", "m2"); got != "reprocessed m2: chat m2 is pending\n" {
		t.Errorf("%q", got)
	}
}

// What came back is ahead of a newer message of its ID, and at its old place.
func TestReprocessedComesFirst(t *testing.T) {
	s := newStore(t)
	cliFailAll(s, [3]string{"chat", "m", "x"})
	s.must("enqueue", "chat", `"other"`, "--id", "n")
	s.must("enqueue", "chat", `"newer"`, "--id", "m")
	s.must("reprocess", "m")
	for _, want := range []string{`"m"`, `"other"`, `"newer"`} {
		c := decode[claimLine](t, s.must("claim", "chat", "--json"))
		if string(c.Payload) != want {
			t.Errorf("got %s, want %s", c.Payload, want)
		}
		s.must("ack", c.Receipt)
	}
}

func TestFailedNamespaces(t *testing.T) {
	s := newStore(t)
	cliFailAll(s, [3]string{"chat", "m", "common"})
	if got := s.must("set", "--queue", "chat", "failed_namespace=bot/dead"); got != "failed_namespace=bot/dead\n" {
		t.Errorf("set: %q", got)
	}
	if got := s.must("set", "--queue", "chat", "--json"); got != `{"queue":"chat","failed_namespace":"bot/dead"}`+"\n" {
		t.Errorf("set: %s", got)
	}
	cliFailAll(s, [3]string{"chat", "m", "apart"}) // the name is free there
	if q := decode[statusLine](t, s.must("status", "--json")).Queues["chat"]; q.Space != "bot/dead" || q.Failed != 2 {
		t.Errorf("status: %+v", q)
	}
	if got := s.must("status"); !strings.Contains(got, "\nchat keeps what fails in the namespace bot/dead\n") {
		t.Errorf("status: %q", got)
	}
	// What is taken is named with its namespace.
	got := s.refused(exitRefused, "failed_exists", "fail", s.claimed("chat", "m", "none").Receipt, "--cause", "x")
	if l := decode[errorLine](t, got.err); l.Space != "bot/dead" || l.Run != "holdfast failed show m --namespace bot/dead --dir "+s.dir {
		t.Errorf("%+v", l)
	}
	s.must("clear", "chat", "--leased")

	causes := func(args ...string) (causes []string) {
		t.Helper()
		for _, l := range lines(s.run(append([]string{"failed", "ls", "--json"}, args...)...).out) {
			causes = append(causes, decode[entryLine](t, l).LastError)
		}
		return causes
	}
	for _, try := range []struct {
		args []string
		want string
	}{
		{nil, "[common]"}, {[]string{"chat"}, "[apart]"}, {[]string{"--namespace", "bot/dead"}, "[apart]"},
		{[]string{"chat", "--namespace", ""}, "[common]"}, {[]string{"other"}, "[]"},
	} {
		if got := fmt.Sprint(causes(try.args...)); got != try.want {
			t.Errorf("failed ls %q: got %s, want %s", try.args, got, try.want)
		}
	}
	if got := s.run("failed", "ls"); got.err != "holdfast: those of chat are in the namespace bot/dead; run: holdfast failed ls chat --dir "+s.dir+"\n" {
		t.Errorf("failed ls: %q", got.err)
	}
	if got := s.must("failed", "show", "m", "--namespace", "bot/dead"); !strings.Contains(got, "  namespace   bot/dead\n") || !strings.Contains(got, "apart") {
		t.Errorf("failed show: %q", got)
	}
	if l := decode[errorLine](t, s.refused(exitNothing, "not_failed", "failed", "show", "x", "--namespace", "bot/dead").err); l.Run != "holdfast failed ls --namespace bot/dead --dir "+s.dir {
		t.Errorf("failed show: %+v", l)
	}
	s.must("reprocess", "--all", "--queue", "chat") // of the queue's namespace
	if got := fmt.Sprint(causes("--namespace", "bot/dead")); got != "[]" {
		t.Errorf("left: %s", got)
	}
	s.must("fail", s.claim("chat", "m").Receipt, "--cause", "again")
	s.must("reprocess", "m", "--namespace", "bot/dead")
	s.must("fail", s.claim("chat", "m").Receipt, "--cause", "again")
	s.must("failed", "purge", "m", "--namespace", "bot/dead")
	if got := fmt.Sprint(causes()); got != "[common]" {
		t.Errorf("left: %s", got)
	}
	s.must("set", "--queue", "chat", "failed_namespace=")
	if got := fmt.Sprint(causes("chat")); got != "[common]" {
		t.Errorf("after going back: %s", got)
	}
}

// A damaged message goes where the queue keeps what fails, and the hint leads there.
func TestDamageInANamespace(t *testing.T) {
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
	s.must("init")
	s.must("set", "--queue", "chat", "failed_namespace=dead")
	s.must("enqueue", "chat", `"whole"`, "--id", "m")
	payloads, err := filepath.Glob(filepath.Join(s.dir, ".fs-safe-queue-v2", "objects", "*", "payload.json"))
	if err != nil || len(payloads) != 1 {
		t.Fatal(payloads, err)
	}
	for _, command := range [][]string{{"claim", "chat"}, {"load", "chat", "m"}} {
		if err := os.WriteFile(payloads[0], []byte(`"wh0le"`), 0o600); err != nil {
			t.Fatal(err)
		}
		l := decode[errorLine](t, s.refused(exitRefused, "damaged", command...).err)
		if l.Name != "m" || l.Space != "dead" || l.Run != "holdfast failed show m --namespace dead --dir "+s.dir {
			t.Errorf("%s: %+v", command[0], l)
		}
		// Mended by hand, it can be reprocessed.
		if err := os.WriteFile(payloads[0], []byte(`"whole"`), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must("reprocess", "m", "--namespace", "dead")
	}
	s.must("ack", s.claim("chat", "m").Receipt)
}
