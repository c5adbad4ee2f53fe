//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// awkward is the payload of trial T01: each part is something that a decoder and
// an encoder do not give back. All white space between tokens is in it too.
const (
	awkward    = "{ \"b\":9007199254740993, \"a\":1.0,\r\n\t\"z\":-0, \"e\":1e400, \"s\":\"<a&b>\u2028\", \"q\": \" \\\" \\\\\", \"u\":\"\\u00e9\\/\", \"a\":[ ] } "
	awkwardRow = "{\"b\":9007199254740993,\"a\":1.0,\"z\":-0,\"e\":1e400,\"s\":\"<a&b>\u2028\",\"q\":\" \\\" \\\\\",\"u\":\"\\u00e9\\/\",\"a\":[]}"
)

func TestT01BytesAreUnchangedAtEveryStage(t *testing.T) {
	ways := map[string]func(s *session, file string){
		"argument": func(s *session, _ string) { s.must("enqueue", "chat", awkward, "--id", "m") },
		"stdin":    func(s *session, _ string) { s.mustFeed(awkward, "enqueue", "chat", "--id", "m") },
		"dash":     func(s *session, _ string) { s.mustFeed(awkward, "enqueue", "chat", "--id", "m", "--file", "-") },
		"file":     func(s *session, file string) { s.must("enqueue", "chat", "--id", "m", "--file", file) },
	}
	for name, enqueue := range ways {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			file := filepath.Join(t.TempDir(), "payload.json")
			if err := os.WriteFile(file, []byte(awkward), 0o600); err != nil {
				t.Fatal(err)
			}
			enqueue(s, file)
			same := func(stage, got string) {
				t.Helper()
				if got != awkward {
					t.Errorf("%s: got %q, want %q", stage, got, awkward)
				}
			}
			row := func(stage, got string) {
				t.Helper()
				if !strings.HasSuffix(got, `,"payload":`+awkwardRow+"}\n") || strings.Count(got, "\n") != 1 {
					t.Errorf("%s: %q does not end with the payload on its one line", stage, got)
				}
			}
			same("show", s.must("show", "chat", "m", "--payload"))
			row("show", s.must("show", "chat", "m", "--json"))
			row("peek", s.must("peek", "chat", "--json"))

			claim := s.run("claim", "chat", "--payload", "--lease", "none")
			same("claim", claim.out)
			receipt := strings.TrimSuffix(claim.err, "\n")
			same("show of a claimed one", s.must("show", "chat", "m", "--payload"))

			s.must("release", receipt)
			row("claim again", s.must("claim", "chat", "--json", "--lease", "none"))
			load := s.run("load", "chat", "m", "--payload")
			same("load", load.out)
			s.must("fail", strings.TrimSuffix(load.err, "\n"), "--cause", "T01")
			same("failed", s.must("failed", "show", "m", "--payload"))
			row("failed", s.must("failed", "show", "m", "--json"))

			s.must("reprocess", "m")
			same("reprocessed", s.must("show", "chat", "m", "--payload"))
			for _, cap := range []string{"2", "1"} { // returned, then failed at the cap
				claim = s.run("claim", "chat", "--payload", "--lease", "none")
				same("claim of what came back", claim.out)
				s.must("retry", strings.TrimSuffix(claim.err, "\n"), "--max-failures", cap)
			}
			same("failed at the cap", s.must("failed", "show", "m", "--payload"))
			s.must("reprocess", "--all")
			claim = s.run("claim", "chat", "--payload", "--lease", "none")
			s.must("reap", "--receipt", strings.TrimSuffix(claim.err, "\n"))
			row("reaped", s.must("claim", "chat", "--json"))
		})
	}
	t.Run("ndjson", func(t *testing.T) {
		s := newStore(t)
		line := strings.NewReplacer("\r", " ", "\n", " ").Replace(awkward)
		s.mustFeed("\r\n"+line+"\r\n", "enqueue", "chat", "--ndjson")
		if got := s.run("claim", "chat", "--payload"); got.out != line {
			t.Errorf("got %q, want %q", got.out, line)
		}
	})
}

func TestOneLineOnlyDropsSpaceBetweenTokens(t *testing.T) {
	for in, want := range map[string]string{
		awkward:              awkwardRow,
		" \t\r\n1.50 ":       "1.50",
		`"a \" b \\" `:       `"a \" b \\"`,
		"[ \"\u2029 \" , 2]": "[\"\u2029 \",2]",
	} {
		if got := string(appendOneLine(nil, []byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestPayloadIsNeverReadWithoutBound(t *testing.T) {
	s := newStore(t)
	got := s.feed(`"`+strings.Repeat("x", maxPayload)+`"`, "enqueue", "chat", "--json")
	if got.code != exitUsage || decode[errorLine](t, got.err).Code != "too_large" {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	endless, err := os.Open("/dev/zero")
	if err != nil {
		skip(t, err.Error())
	}
	defer endless.Close()
	if got := s.feedFrom(t.Context(), endless, "enqueue", "chat"); got.code != exitUsage {
		t.Errorf("endless input: exit %d, %s", got.code, got.err)
	}
}

func TestTextForPeopleCannotSteerATerminal(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "\"\u009b2J\"", "--id", "m")
	claim := decode[claimLine](t, s.must("claim", "chat", "--json"))
	s.must("fail", claim.Receipt, "--cause", "\x1b[2J\ngone")
	for _, out := range []string{s.must("failed", "ls"), s.must("failed", "show", "m")} {
		if strings.ContainsAny(out, "\x1b\u009b") {
			t.Errorf("%q carries a control sequence", out)
		}
	}
}
