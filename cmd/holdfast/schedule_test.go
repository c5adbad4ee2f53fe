//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestDelayedMessagesShow(t *testing.T) {
	s := newStore(t)
	at := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	begun := time.Now()
	s.must("enqueue", "chat", "1", "--id", "delayed", "--delay", "1h")
	s.must("enqueue", "chat", "2", "--id", "dated", "--at", at.Format(time.RFC3339))
	s.must("enqueue", "chat", "3", "--id", "past", "--at", "2001-01-31T08:00:00+01:00")
	s.mustFeed("4\n", "enqueue", "chat", "--ndjson", "--delay", "2h")
	from := map[string]time.Time{"delayed": begun.Add(time.Hour), "dated": at, "past": time.Date(2001, 1, 31, 7, 0, 0, 0, time.UTC), "": begun.Add(2 * time.Hour)}
	for _, row := range lines(s.listing("chat")) {
		e := decode[entryLine](t, row)
		id := e.ID
		if len(id) > 8 {
			id = "" // the one of the stream
		}
		state := "scheduled"
		if id == "past" {
			state = "ready"
		}
		early, late := from[id].Truncate(time.Millisecond), from[id].Add(time.Since(begun)+time.Millisecond)
		if e.NotBefore == nil || e.NotBefore.Before(early) || e.NotBefore.After(late) || e.State != state {
			t.Errorf("%s: %s, not before %v; want %s, from %v to %v", e.ID, e.State, e.NotBefore, state, early, late)
		}
	}
	if got := s.must("ls", "chat"); !strings.Contains(got, "dated    scheduled for "+when(at)+" ") && !strings.Contains(got, "  scheduled for "+when(at)+"  ") {
		t.Errorf("ls: %q", got)
	}
	if got := s.must("show", "chat", "past"); !strings.Contains(got, "  not before  2001-01-31 ") {
		t.Errorf("show: %q", got)
	}
	if q := decode[statusLine](t, s.must("status", "--json")).Queues["chat"]; q.Scheduled != 3 || q.Ready != 1 {
		t.Errorf("status: %+v", q)
	}
	s.must("ack", s.claim("chat", "past").Receipt)
	s.refused(exitNothing, "empty", "claim", "chat")
}

// Messages of one key come in order and one at a time; other keys go on.
func TestKeysKeepTheirOrder(t *testing.T) {
	s := newStore(t)
	for _, m := range []string{"a1", "a2", "b1", "a3", "n1"} {
		args := []string{"enqueue", "chat", "1", "--id", m}
		if m[0] != 'n' {
			args = append(args, "--key", m[:1])
		}
		s.must(args...)
	}
	a1, b1 := s.claim("chat", "a1"), s.claim("chat", "b1")
	n1 := s.claim("chat", "n1")
	s.refused(exitNothing, "empty", "claim", "chat") // a2 waits for a1
	if q := decode[statusLine](t, s.must("status", "--json")).Queues["chat"]; q.Blocked != 2 || q.Processing != 3 {
		t.Errorf("status: %+v", q)
	}
	if got := s.must("show", "chat", "a2"); !strings.Contains(got, "  state       blocked\n  key         a\n") {
		t.Errorf("show: %q", got)
	}
	if rows := lines(s.must("ls", "chat")); !strings.HasPrefix(rows[0], "ID  STATE") || !strings.Contains(rows[0], "  KEY  ") || !strings.Contains(rows[2], "  blocked  ") || !strings.Contains(rows[2], "  a    0  ") {
		t.Errorf("ls: %q", rows)
	}
	s.must("retry", a1.Receipt, "--delay", "1h") // it came back, and holds the others of its key
	s.refused(exitNothing, "empty", "claim", "chat")
	s.must("ack", b1.Receipt, n1.Receipt)
	s.must("ack", decode[claimLine](t, s.must("load", "chat", "a1", "--json")).Receipt)
	for _, id := range []string{"a2", "a3"} {
		c := s.claim("chat", id)
		s.refused(exitNothing, "empty", "claim", "chat")
		s.must("ack", c.Receipt)
	}
}

func TestFairClaimsRotateOverKeys(t *testing.T) {
	const enqueued = "a1 a2 a3 b1 c1 n1 b2"
	for _, try := range []struct {
		flags []string
		want  string
	}{
		{nil, "a1 a2 a3 b1 c1 n1 b2"},
		{[]string{"--fair"}, "a1 b1 c1 n1 a2 b2 a3"},
	} {
		s := newStore(t)
		for _, m := range strings.Fields(enqueued) {
			args := []string{"enqueue", "chat", "1", "--id", m}
			if m[0] != 'n' {
				args = append(args, "--key", m[:1])
			}
			s.must(args...)
		}
		var got []string
		for range strings.Fields(enqueued) {
			c := decode[claimLine](t, s.must(append([]string{"claim", "chat", "--json"}, try.flags...)...))
			s.must("ack", c.Receipt)
			got = append(got, c.ID)
		}
		if strings.Join(got, " ") != try.want {
			t.Errorf("claim %q: got %q, want %s", try.flags, got, try.want)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	s := newStore(t)
	held := s.claimed("chat", "held", "none")
	s.must("enqueue", "chat", "1", "--id", "m")
	got := s.run("pause", "chat", "a/ack", "mail", "--json")
	if want := `{"queue":"chat","result":"paused"}` + "\n" + `{"queue":"mail","result":"paused","new":true}` + "\n"; got.code != exitUsage || got.out != want || len(lines(got.err)) != 1 {
		t.Errorf("pause: %+v", got)
	}
	if l := decode[errorLine](t, s.refused(exitNothing, "empty", "claim", "chat").err); l.Run != "holdfast resume chat --dir "+s.dir || !strings.HasSuffix(l.Error, ": it is paused; 1 ready, 1 processing") || l.Ready != 1 || l.Processing != 1 {
		t.Errorf("claim: %+v", l)
	}
	if got := s.must("status"); !strings.Contains(got, "\nchat is paused\n") {
		t.Errorf("status: %q", got)
	}
	if q := decode[statusLine](t, s.must("status", "--json")).Queues["chat"]; !q.Paused || q.Pending != 1 {
		t.Errorf("status: %+v", q)
	}
	s.must("enqueue", "chat", "2") // enqueue and settling go on
	s.must("ack", held.Receipt)
	s.must("pause", "chat")
	if got := s.must("resume", "chat", "mail"); got != "resumed chat\nresumed mail\n" {
		t.Errorf("resume: %q", got)
	}
	s.claim("chat", "m")
	s.must("resume", "chat")
}

func TestCursor(t *testing.T) {
	s := newStore(t)
	s.refused(exitNothing, "nothing", "cursor", "chat")
	const text = "offset 9007199254740993 <&>\u2028é"
	if got := s.must("cursor", "chat", "--set", text, "--json"); got != fmt.Sprintf(`{"queue":"chat","cursor":"%s"}`+"\n", strings.ReplaceAll(text, "\u2028", `\u2028`)) {
		t.Errorf("set: %s", got)
	}
	if got := decode[cursorLine](t, s.must("cursor", "chat", "--json")); got.Cursor != text {
		t.Errorf("got %q", got.Cursor)
	}
	s.must("cursor", "chat", "--set", "42")
	if got := s.must("cursor", "chat"); got != "42\n" {
		t.Errorf("for people: %q", got)
	}
	s.refused(exitNothing, "nothing", "cursor", "mail") // each queue has its own
	if got := s.must("cursor", "chat", "--set", ""); got != "removed the cursor of chat\n" {
		t.Errorf("remove: %q", got)
	}
	s.refused(exitNothing, "nothing", "cursor", "chat")
}
