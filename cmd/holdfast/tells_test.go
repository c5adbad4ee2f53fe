//go:build unix

package main

import (
	"strings"
	"testing"
)

func TestWorkSaysHowManyFailed(t *testing.T) {
	s := newStore(t)
	s.must("fail", s.claimed("chat", "before", "none").Receipt, "--cause", "x")
	s.must("enqueue", "chat", "1", "--id", "bad")
	s.must("enqueue", "chat", "2", "--id", "good")
	got := s.work("chat", "--", "/bin/sh", "-c", `test "$HOLDFAST_ID" = good || exit 65`)
	if rows := lines(got.err); got.code != 0 || rows[len(rows)-1] != "holdfast: complete; 2 failed in all" {
		t.Errorf("%+v", got)
	}
	got = s.work("chat", "--json", "--", "/bin/sh", "-c", "exit 0")
	if rows := lines(got.err); got.code != 0 || !strings.HasSuffix(rows[len(rows)-1], `"msg":"complete","queue":"chat","failed":2}`) {
		t.Errorf("%+v", got)
	}
}

func TestPauseTellsNewQueues(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1")
	s.must("pause", "chat")
	got := s.run("pause", "chat", "q3")
	if got.code != 0 || got.out != "paused chat\npaused q3\n" || got.err != "holdfast: q3 is new: it will be paused when messages come\n" {
		t.Errorf("%+v", got)
	}
	if got := s.must("pause", "q3", "q4", "--json"); got != `{"queue":"q3","result":"paused"}`+"\n"+`{"queue":"q4","result":"paused","new":true}`+"\n" {
		t.Errorf("%q", got)
	}
	s.must("enqueue", "q3", "1")
	s.refused(exitNothing, "empty", "claim", "q3")
}

// A failed name that is not where it was looked for may be in another namespace.
func TestFailedNamesElsewhere(t *testing.T) {
	s := newStore(t)
	s.must("fail", s.claimed("chat", "common", "none").Receipt, "--cause", "x")
	s.must("set", "--queue", "bot", "failed_namespace=bot/dead")
	s.must("fail", s.claimed("bot", "m", "none").Receipt, "--cause", "x")
	const there, common = "; there is one in the namespace bot/dead; run: ", "; there is one in the store's common namespace; run: "
	for _, try := range []struct{ args, want string }{
		{"failed show m", there + "holdfast failed show m --namespace bot/dead --dir " + s.dir},
		{"reprocess m", there + "holdfast reprocess m --namespace bot/dead --dir " + s.dir},
		{"failed purge m", there + "holdfast failed show m --namespace bot/dead --dir " + s.dir},
		{"failed show common --namespace bot/dead", common + "holdfast failed show common --dir " + s.dir},
		{"failed show nowhere", "; run: holdfast failed ls --dir " + s.dir},
	} {
		got := s.run(strings.Fields(try.args)...)
		if got.code != exitNothing || !strings.HasSuffix(got.err, try.want+"\n") || strings.Contains(got.err, "there is one") != strings.Contains(try.want, "there is one") {
			t.Errorf("%s: %+v, want %q", try.args, got, try.want)
		}
	}
	s.must("reprocess", "m", "--namespace", "bot/dead")
}

func TestHelpSaysIt(t *testing.T) {
	s := &session{t: t}
	for command, wants := range map[string][]string{
		"work":   {"Complete is not success", "What the commands write to stderr is passed through unchanged between the lines of the log, also with --json."},
		"ls":     {"in order of enqueue"},
		"status": {"-1 means not counted"},
		"wait":   {"With --timeout 0s it looks once"},
	} {
		help := strings.Join(strings.Fields(s.must(command, "--help")), " ")
		for _, want := range wants {
			if !strings.Contains(help, want) {
				t.Errorf("%s --help lacks %q", command, want)
			}
		}
	}
}
