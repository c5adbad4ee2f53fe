//go:build unix

package main

import (
	"strings"
	"testing"
	"time"
)

// claimed enqueues a message and claims it.
func (s *session) claimed(q, id, lease string) claimLine {
	s.t.Helper()
	s.must("enqueue", q, `"`+id+`"`, "--id", id)
	return s.claim(q, id, "--lease", lease)
}

// claim claims one message and wants it to be this one.
func (s *session) claim(q, id string, flags ...string) claimLine {
	s.t.Helper()
	c := decode[claimLine](s.t, s.must(append([]string{"claim", q, "--json"}, flags...)...))
	if c.ID != id {
		s.t.Fatalf("claimed %s, want %s", c.ID, id)
	}
	return c
}

// entry gives the one live message of a queue.
func (s *session) entry(q string) entryLine {
	s.t.Helper()
	return decode[entryLine](s.t, s.must("ls", q, "--json"))
}

// reapUntil reaps until a lease is over: a lease of 1 ms is so at once, or soon.
func (s *session) reapUntil(args ...string) []reapedLine {
	s.t.Helper()
	var got answer
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if got = s.run(append([]string{"reap", "--json"}, args...)...); got.code != exitNothing {
			break
		}
	}
	if got.code != exitDone || got.err != "" {
		s.t.Fatalf("reap %q: exit %d, %s", args, got.code, got.err)
	}
	var reaped []reapedLine
	for _, l := range lines(got.out) {
		reaped = append(reaped, decode[reapedLine](s.t, l))
	}
	return reaped
}

// T04, by commands: a reaped worker's receipt is good until the next claim, and from
// then on refused for everything; the next worker is not touched.
func TestT04ALateReceiptIsStale(t *testing.T) {
	s := newStore(t)
	a := s.claimed("chat", "m", "1ms")
	s.must("enqueue", "chat", `"other"`, "--id", "n")
	other := s.claim("chat", "n", "--lease", "none")
	reaped := s.reapUntil("chat")
	if want := (reapedLine{Queue: "chat", ID: "m", Result: "reaped", Cause: "deadline", Attempt: 1, Lapses: 1}); len(reaped) != 1 || reaped[0] != want {
		t.Fatalf("reaped %+v, want %+v", reaped, want)
	}
	b := s.claim("chat", "m", "--lease", "none")
	if b.Attempt != 2 || b.Generation != a.Generation {
		t.Errorf("the next claim: %+v", b)
	}
	before := s.listing("chat")
	for _, args := range [][]string{
		{"ack", a.Receipt}, {"retry", a.Receipt}, {"extend", a.Receipt}, {"release", a.Receipt},
		{"fail", a.Receipt, "--cause", "late"}, {"reap", "--receipt", a.Receipt},
	} {
		got := s.refused(exitRefused, "stale", args...)
		if l := decode[errorLine](t, got.err); l.Queue != "chat" || l.ID != "m" || l.Receipt != a.Receipt || l.Run != "holdfast show chat m --dir "+s.dir {
			t.Errorf("%s: %+v", args[0], l)
		}
	}
	// The right attempt, with another ID.
	for _, receipt := range []string{strings.Replace(b.Receipt, ":m:", ":n:", 1), strings.Replace(b.Receipt, ":m:", ":nobody:", 1)} {
		for _, args := range [][]string{{"ack"}, {"retry"}, {"extend"}, {"fail", "--cause", "x"}, {"reap", "--receipt"}} {
			s.refused(exitRefused, "gone", append(args, receipt)...)
		}
	}
	if after := s.listing("chat"); after != before {
		t.Errorf("B was touched: %s, before %s", after, before)
	}
	s.must("ack", b.Receipt, other.Receipt)
}

// listing gives the live messages of a queue, a line each.
func (s *session) listing(q string) string { s.t.Helper(); return s.must("ls", q, "--json") }

// Nothing stays in processing: what a reaped worker can still do, and what not.
func TestAReapedReceiptIsGoodUntilTheNextClaim(t *testing.T) {
	for name, try := range map[string]struct {
		args   []string // with the receipt
		result string
		left   string // the state afterwards; empty: gone
	}{
		"ack":     {[]string{"ack"}, "acked", ""},
		"retry":   {[]string{"retry", "--cause", "late"}, "retried", "ready"},
		"release": {[]string{"release"}, "released", "ready"},
		"fail":    {[]string{"fail", "--cause", "late"}, "failed", ""},
		"extend":  {[]string{"extend", "--lease", "none"}, "extended", "processing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			c := s.claimed("chat", "m", "1ms")
			s.reapUntil()
			if e := s.entry("chat"); e.State != "ready" || e.Returned != "reaped" || e.Lapses != 1 || e.Attempts != 1 || e.Receipt != "" {
				t.Errorf("after reap: %+v", e)
			}
			if text := s.must("show", "chat", "m"); !strings.Contains(text, "  state       ready, returned: reaped\n") || !strings.Contains(text, "  attempts    1, 1 lapsed\n") {
				t.Errorf("show: %q", text)
			}
			s.refused(exitUsage, "invalid_receipt", append(try.args, c.Receipt[len(c.Receipt)-12:])...) // it is no current claim's
			got := s.must(append(try.args, c.Receipt, "--json")...)
			if l := decode[map[string]any](t, got); l["result"] != try.result || l["receipt"] != c.Receipt {
				t.Errorf("%s", got)
			}
			state, late := "", "gone" // what a second settlement meets
			if left := s.listing("chat"); left != "" {
				state, late = decode[entryLine](t, left).State, "stale"
			}
			if state != try.left {
				t.Errorf("it is %q, want %q", state, try.left)
			}
			if name == "extend" { // the claim is the worker's again
				if e := s.entry("chat"); e.Lapses != 0 || e.Receipt != c.Receipt {
					t.Errorf("extended: %+v", e)
				}
				s.must("ack", c.Receipt)
				return
			}
			s.refused(exitRefused, late, "ack", c.Receipt)
		})
	}
}

// The operator ends one named claim, whatever its deadline.
func TestReapOfANamedClaim(t *testing.T) {
	s := newStore(t)
	long, none := s.claimed("chat", "m", "1h"), s.claimed("chat", "n", "none")
	if got := s.refused(exitNothing, "nothing", "reap"); got.out != "" {
		t.Errorf("reaped: %s", got.out)
	}
	got := s.must("reap", "--receipt", long.Receipt, "--json")
	if l := decode[reapedLine](t, got); l != (reapedLine{long.Receipt, "chat", "m", "reaped", "operator", 1, 1, ""}) {
		t.Errorf("%s", got)
	}
	s.refused(exitRefused, "stale", "reap", "--receipt", long.Receipt) // it came back already
	both := s.run("reap", "--receipt", long.Receipt, "--receipt", none.Receipt[len(none.Receipt)-12:])
	if both.code != exitRefused || len(lines(both.err)) != 1 || both.out != "reaped chat n: it was named; attempt 1, reaped 1 time so far\n" {
		t.Errorf("%+v", both)
	}
	s.must("ack", long.Receipt, none.Receipt)
	s.refused(exitRefused, "gone", "reap", "--receipt", none.Receipt)
}

// The claims of claim and load name no holder: the end of the process that made them
// proves nothing.
func TestClaimsOutliveTheCommand(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1", "--id", "m")
	s.must("enqueue", "chat", "2", "--id", "n")
	ack := []string{"ack"}
	for _, args := range [][]string{{"claim", "chat", "--lease", "none"}, {"load", "chat", "n", "--lease", "1h"}} {
		out, err := cliCommand(s.dir, append(args, "--json")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		ack = append(ack, decode[claimLine](t, string(out)).Receipt)
	}
	s.refused(exitNothing, "nothing", "reap")
	s.must(ack...)
}

func TestReapFailsAtTheCapOfLapses(t *testing.T) {
	s := newStore(t)
	s.claimed("chat", "m", "none")
	s.must("fail", s.entry("chat").Receipt, "--cause", "the first of this name")
	c := s.claimed("chat", "m", "1ms")
	reaped := s.reapUntil("--max-lapses", "1")
	name := "m~" + c.Generation
	if want := (reapedLine{"", "chat", "m", "failed", "deadline", 1, 1, name}); len(reaped) != 1 || reaped[0] != want {
		t.Errorf("got %+v, want %+v", reaped, want)
	}
	if e := decode[map[string]any](t, s.must("failed", "show", name, "--json")); e["lapses"] != 1.0 || e["id"] != "m" {
		t.Errorf("%v", e)
	}
}

func TestReapIsBoundedAndOfQueues(t *testing.T) {
	s := newStore(t)
	for _, q := range []string{"a", "b"} {
		for _, id := range []string{"m", "n"} {
			s.claimed(q, id, "1ms")
		}
	}
	if got := s.reapUntil("b"); got[0].Queue != "b" {
		t.Errorf("reap b: %+v", got)
	}
	for decode[statusLine](t, s.must("status", "a", "--json")).Queues["a"].Overdue < 2 {
		// the leases of 1 ms run out
	}
	if rows := lines(s.must("ls", "--overdue", "--json")); len(rows) < 2 || decode[entryLine](t, rows[0]).Queue != "a" {
		t.Errorf("ls --overdue: %q", rows)
	}
	rows := lines(s.must("ls", "a", "--overdue"))
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "QUEUE  ID  STATE") || !strings.HasPrefix(rows[1], "a      m   processing, overdue since ") {
		t.Errorf("ls a --overdue: %q", rows)
	}
	if got := s.refused(exitNothing, "empty", "claim", "a"); decode[errorLine](t, got.err).Overdue != 2 {
		t.Errorf("claim: %s", got.err)
	}
	got := s.run("reap", "a", "--limit", "1")
	if got.code != exitDone || got.err != "holdfast: there may be more; run: holdfast reap a --dir "+s.dir+"\n" ||
		got.out != "reaped a m: its lease was past its deadline; attempt 1, reaped 1 time so far\n" {
		t.Errorf("--limit 1: %+v", got)
	}
	s.must("reap", "a")
	if got := s.must("ls", "a", "--overdue", "--json"); got != "" {
		t.Errorf("left: %s", got)
	}
}
