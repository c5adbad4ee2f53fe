//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
)

// The newcomer's IDs: one is the beginning of another, and the other is not meant.
func TestLooksTakeShortNamesAndSaySo(t *testing.T) {
	s := newStore(t)
	for _, id := range []string{"order-1", "order-11", "parcel.7"} {
		s.must("enqueue", "chat", `"`+id+`"`, "--id", id)
	}
	for given, want := range map[string]string{
		"order-1": "order-1", "order-11": "order-11", // the whole name beats a prefix
		"p": "parcel.7", "parcel.": "parcel.7", ".7": "parcel.7", "r-1": "order-1", "11": "order-11",
	} {
		said := fmt.Sprintf("holdfast: showing %s, the only ID that fits %q\n", want, given)
		if given == want {
			said = ""
		}
		got := s.run("show", "chat", given, "--payload")
		if got.code != 0 || got.out != `"`+want+`"` || got.err != said {
			t.Errorf("%q: exit %d, %q %q; want %s", given, got.code, got.out, got.err, want)
		}
		if l := s.must("show", "chat", given, "--json"); !strings.Contains(l, `"id":"`+want+`"`) {
			t.Errorf("%q: %s", given, l)
		}
	}
	got := s.refused(exitUsage, "ambiguous", "show", "chat", "order")
	if l := decode[errorLine](t, got.err); !strings.Contains(l.Error, "order-1 order-11") {
		t.Errorf("the candidates are missing: %s", l.Error)
	}
	s.refused(exitNothing, "not_found", "show", "chat", "rder")
	s.refused(exitUsage, "invalid_name", "show", "chat", "x.")
	s.refused(exitUsage, "invalid_name", "show", "chat", "")
}

func TestChangesTakeWholeNames(t *testing.T) {
	s := newStore(t)
	made := decode[enqueuedLine](t, s.must("enqueue", "chat", "1", "--json")).ID
	for _, id := range []string{"job10", "a-long-name-1", "x" + made} {
		s.must("enqueue", "chat", "2", "--id", id)
	}
	for _, given := range []string{"job1", "b10", "job", "a-long-name", "ong-name-1", "x" + made[:30], made[:7], made[29:]} {
		s.refused(exitNothing, "not_found", "load", "chat", given)
	}
	s.refused(exitUsage, "ambiguous", "load", "chat", made[9:]) // x… ends so too
	for _, row := range lines(s.must("ls", "chat", "--json")) {
		if e := decode[entryLine](t, row); e.Receipt != "" {
			t.Errorf("%s was claimed", e.ID)
		}
	}
	got := s.run("load", "chat", made[:8], "--json")
	c := decode[claimLine](t, got.out)
	if c.ID != made || got.err != "" {
		t.Errorf("load by 8 characters of a generated ID: %+v", got)
	}
	s.must("fail", c.Receipt, "--cause", "x")
	for _, id := range []string{"job10", "a-long-name-1"} {
		c := decode[claimLine](t, s.must("load", "chat", id, "--json"))
		s.must("fail", c.Receipt, "--cause", "x")
	}
	for _, given := range []string{"job1", "10", "a-long-name", "ong-name-1", made[:7]} {
		s.refused(exitNothing, "not_failed", "failed", "purge", given)
	}
	if got := s.run("failed", "show", "job1"); got.code != 0 || got.err != "holdfast: showing job10, the only failed name that fits \"job1\"\n" {
		t.Errorf("failed show: %+v", got)
	}
	s.must("enqueue", "chat", "1", "--id", "job11")
	s.must("fail", decode[claimLine](t, s.must("load", "chat", "job11", "--json")).Receipt, "--cause", "x")
	if l := decode[errorLine](t, s.refused(exitUsage, "ambiguous", "failed", "show", "job1").err); l.Run != "holdfast failed ls --dir "+s.dir {
		t.Errorf("ambiguous: %+v", l)
	}
	if got := s.must("failed", "purge", made[len(made)-8:]); got != "purged "+made+"\n" {
		t.Errorf("purge by 8 characters of a generated ID: %q", got)
	}
	if got := lines(s.must("failed", "ls", "--json")); len(got) != 3 {
		t.Errorf("left: %q", got)
	}
}
