//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// To the cap, into failed under a free name, and back.
func TestRetryToTheCapAndReprocess(t *testing.T) {
	s := newStore(t)
	s.claimed("chat", "m", "none")
	s.must("fail", s.entry("chat").Receipt, "--cause", "another m")
	s.must("enqueue", "chat", "1", "--id", "m")
	for attempt := uint64(1); attempt <= 3; attempt++ {
		c := s.claim("chat", "m")
		flag := []string{"--cause", "--error"}[attempt%2] // the same
		got := decode[settledLine](t, s.must("retry", c.Receipt, "--max-failures", "3", flag, fmt.Sprint("no answer ", attempt), "--json"))
		want := settledLine{Receipt: c.Receipt, Queue: "chat", ID: "m", Result: "retried"}
		if attempt == 3 {
			want.Result, want.FailedName = "failed", "m~"+c.Generation
		}
		if c.Attempt != attempt || got != want {
			t.Errorf("attempt %d: got %+v, want %+v", c.Attempt, got, want)
		}
		if attempt < 3 {
			if e := s.entry("chat"); e.State != "ready" || e.Returned != "retried" || e.LastError != fmt.Sprint("no answer ", attempt) || e.Attempts != attempt {
				t.Errorf("after %d: %+v", attempt, e)
			}
			s.refused(exitRefused, "stale", "ack", c.Receipt)
		} else {
			s.refused(exitRefused, "gone", "ack", c.Receipt)
		}
	}
	rows := lines(s.must("failed", "ls", "--json"))
	if len(rows) != 2 {
		t.Fatalf("failed: %q", rows)
	}
	name := decode[entryLine](t, rows[1]).FailedName
	if got := s.must("reprocess", name, "--json"); got != fmt.Sprintf(`{"failed_name":"%s","queue":"chat","id":"m","result":"reprocessed"}`+"\n", name) {
		t.Errorf("reprocess: %s", got)
	}
	if e := s.entry("chat"); e.Excused != 3 || e.Attempts != 3 || e.LastError != "no answer 3" || e.Returned != "reprocessed" || e.State != "ready" {
		t.Errorf("reprocessed: %+v", e)
	}
	if text := s.must("show", "chat", "m"); !strings.Contains(text, "  attempts    3, 3 excused\n") {
		t.Errorf("show: %q", text)
	}
	// The other m is refused while this one is there, and its evidence stays.
	got := s.refused(exitRefused, "in_flight", "reprocess", "m")
	if l := decode[errorLine](t, got.err); l.Run != "holdfast show chat m --dir "+s.dir || l.Name != "m" {
		t.Errorf("in flight: %+v", l)
	}
	c := s.claim("chat", "m")
	if text := s.must("retry", c.Receipt, "--max-failures", "3"); text != "retried chat m\n" { // a first failure again
		t.Errorf("retry after reprocess: %q", text)
	}
}

func TestRetryAndReleaseWithADelay(t *testing.T) {
	for _, command := range []string{"retry", "release"} {
		t.Run(command, func(t *testing.T) {
			s := newStore(t)
			c := s.claimed("chat", "m", "none")
			begun := time.Now()
			line := decode[settledLine](t, s.must(command, c.Receipt, "--delay", "1h", "--json"))
			e := s.entry("chat")
			if e.State != "scheduled" || e.NotBefore == nil || e.NotBefore.Before(begun.Add(time.Hour).Truncate(time.Millisecond)) || e.NotBefore.After(time.Now().Add(time.Hour+time.Second)) {
				t.Errorf("%+v", e)
			}
			if command == "retry" && (line.NotBefore == nil || !line.NotBefore.Equal(*e.NotBefore)) {
				t.Errorf("%s says %v, the store %v", command, line.NotBefore, e.NotBefore)
			}
			if command == "release" && (e.Excused != 1 || e.Returned != "released") {
				t.Errorf("a snooze is excused: %+v", e)
			}
			if q := decode[statusLine](t, s.must("status", "--json")).Queues["chat"]; q.Scheduled != 1 || q.Ready != 0 || q.Complete {
				t.Errorf("status: %+v", q)
			}
			got := s.run("claim", "chat")
			if got.code != exitNothing || !strings.Contains(got.err, "queue chat: nothing is due; 1 scheduled; run: holdfast status chat --dir ") {
				t.Errorf("claim: %+v", got)
			}
			s.must("load", "chat", "m") // whatever its schedule
		})
	}
}

func TestExtendMovesTheDeadline(t *testing.T) {
	s := newStore(t)
	c := s.claimed("chat", "m", "1h")
	got := s.must("extend", c.Receipt[len(c.Receipt)-12:], "--lease", "3h", "--json")
	l := decode[extendedLine](t, got)
	if l.Deadline == nil || l.Deadline.Sub(*c.Deadline) < time.Hour || l.Result != "extended" || l.Receipt != c.Receipt {
		t.Errorf("%s", got)
	}
	if e := s.entry("chat"); e.Deadline == nil || !e.Deadline.Equal(*l.Deadline) {
		t.Errorf("the store says %v, extend said %v", e.Deadline, l.Deadline)
	}
	if got := s.must("extend", c.Receipt, "--lease", "none", "--json"); got != fmt.Sprintf(`{"receipt":"%s","queue":"chat","id":"m","result":"extended","deadline":null}`+"\n", c.Receipt) {
		t.Errorf("none: %s", got)
	}
	if got := s.must("extend", c.Receipt); !strings.HasPrefix(got, "extended chat m until ") {
		t.Errorf("for people: %q", got)
	}
	s.must("ack", c.Receipt)
	s.refused(exitRefused, "gone", "extend", c.Receipt)
}
