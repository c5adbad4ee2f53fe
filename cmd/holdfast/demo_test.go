//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	t.Setenv(asCommand, "1") // its workers are this test binary
	s := &session{t: t, dir: t.TempDir()}
	r := decode[demoResult](t, s.must("demo", "--json"))
	if !r.OK || r.Messages < 200 || r.Acked != uint64(r.Messages) || r.verdict != (verdict{}) || r.Faults != 0 ||
		r.KilledInCommit == 0 || r.KilledInMessage == "" || r.TakenOver != 1 {
		t.Errorf("%+v", r)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestDemoTellsItsStory(t *testing.T) {
	t.Setenv(asCommand, "1")
	s := &session{t: t, dir: t.TempDir()}
	story := s.must("demo", "--keep")
	for _, part := range []string{"SIGKILL", "UNSETTLED", "holdfast recover", "Load takes it over", "none lost", "Verify"} {
		if !strings.Contains(story, part) {
			t.Errorf("no %q in the story:\n%s", part, story)
		}
	}
	kept, err := filepath.Glob(filepath.Join(s.dir, "holdfast-demo-*"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	s.dir = kept[0]
	s.must("verify")
}

// The ledger must be able to say no.
func TestDemoLedgerNotices(t *testing.T) {
	book := func(steps ...string) (verdict, error) {
		l := newLedger()
		l.sent["a"], l.sent["b"] = "ha", "hb"
		for _, step := range steps {
			l.note("w", step)
		}
		return l.judge(2)
	}
	const a, b = "claimed a 1 ha s:q:a:g:1", "claimed b 1 hb s:q:b:g:1"
	if v, err := book(a, "acked a", b, "acked b"); err != nil || v != (verdict{}) {
		t.Errorf("all well: %+v, %v", v, err)
	}
	for name, try := range map[string]struct {
		steps []string
		want  verdict
	}{
		"lost":    {[]string{a, "acked a", b}, verdict{Lost: 1}},
		"altered": {[]string{a, "acked a", "claimed b 1 other s:q:b:g:1", "acked b"}, verdict{Altered: 1}},
		"twice":   {[]string{a, "acked a", "acked a", b, "acked b"}, verdict{AckedTwice: 1}},
		"foreign": {[]string{a, "acked a", b, "acked b", "acked c"}, verdict{}},
	} {
		if v, err := book(try.steps...); !errors.Is(err, errDemo) || v != try.want {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// The updates must stay as awkward as real ones.
func TestDemoUpdates(t *testing.T) {
	n, deep, large := 0, 0, 0
	for text := range bytes.Lines(demoUpdates) {
		n++
		if !json.Valid(text) {
			t.Errorf("line %d is no JSON", n)
		}
		if bytes.Count(text, []byte(`"reply_to_message"`)) > 3 {
			deep++
		}
		if len(text) > 64<<10 {
			large++
		}
	}
	if n < 200 || deep == 0 || large == 0 {
		t.Errorf("%d updates, %d deep, %d large", n, deep, large)
	}
	for _, part := range []string{"9007199254740993", "-9223372036854775808", "1e400", `\u00e9`, `\/`, `\ud83d\ude00`, "🎂", "\u2028", `\n`, "\t", " :  "} {
		if !bytes.Contains(demoUpdates, []byte(part)) {
			t.Errorf("no %q in the updates", part)
		}
	}
}
