//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// claimLine is what a program reads from claim --json: these fields, no others.
type claimLine struct {
	Receipt    string          `json:"receipt"`
	Queue      string          `json:"queue"`
	ID         string          `json:"id"`
	Generation string          `json:"generation"`
	Attempt    uint64          `json:"attempt"`
	Fence      uint64          `json:"fence"`
	Deadline   *time.Time      `json:"deadline"`
	Key        string          `json:"key"`
	EnqueuedAt time.Time       `json:"enqueued_at"`
	LastError  string          `json:"last_error"`
	Failures   uint64          `json:"failures"`
	Lapses     uint64          `json:"lapses"`
	Payload    json.RawMessage `json:"payload"`
}

func TestMachineInterface(t *testing.T) {
	s := newStore(t)
	one := s.must("enqueue", "chat", `{"n":1}`, "--id", "one", "--json")
	e := decode[enqueuedLine](t, one)
	if want := fmt.Sprintf(`{"queue":"chat","id":"one","generation":"%s","revision":%d}`+"\n", e.Generation, e.Revision); one != want {
		t.Errorf("enqueue: got %s, want %s", one, want)
	}
	if kept := s.must("enqueue", "chat", `{"n":2}`, "--id", "one", "--if-exists", "keep", "--json"); !strings.HasSuffix(kept, `,"kept":true}`+"\n") {
		t.Errorf("keep: %s", kept)
	}
	s.refused(exitRefused, "duplicate", "enqueue", "chat", `{"n":2}`, "--id", "one")
	s.must("enqueue", "chat", `{"n":3}`, "--id", "one", "--if-exists", "replace")

	line := s.must("claim", "chat", "--json", "--lease", "90s", "--label", "me")
	c := decode[claimLine](t, line)
	if string(c.Payload) != `{"n":3}` || c.Attempt != 1 || c.Queue != "chat" || c.ID != "one" || c.Deadline == nil {
		t.Errorf("claim: %s", line)
	}
	if left := time.Until(*c.Deadline); left < time.Minute || left > 90*time.Second {
		t.Errorf("the lease of 90s has %v left", left)
	}
	want := fmt.Sprintf(`{"receipt":"%s","queue":"chat","id":"one","generation":"%s","attempt":1,"fence":%d,"deadline":"`, c.Receipt, c.Generation, c.Fence)
	if !strings.HasPrefix(line, want) {
		t.Errorf("claim: got %s, want it to begin %s", line, want)
	}
	s.refused(exitRefused, "leased", "load", "chat", "one")
	s.refused(exitNothing, "empty", "claim", "chat")
	s.must("release", c.Receipt)
	s.refused(exitRefused, "stale", "ack", c.Receipt)
	c = decode[claimLine](t, s.must("claim", "chat", "--json", "--lease", "none"))
	if c.Deadline != nil || c.Attempt != 2 {
		t.Errorf("without a deadline: %+v", c)
	}
	taken := decode[claimLine](t, s.must("load", "chat", "one", "--json"))
	s.refused(exitRefused, "stale", "fail", c.Receipt, "--cause", "late")
	if got := s.must("ack", taken.Receipt, "--json"); got != fmt.Sprintf(`{"receipt":"%s","queue":"chat","id":"one","result":"acked"}`+"\n", taken.Receipt) {
		t.Errorf("ack: %s", got)
	}
	s.refused(exitRefused, "gone", "ack", taken.Receipt)
}

func TestStatusMachineForm(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "a", "1")
	last := decode[enqueuedLine](t, s.must("enqueue", "b", "1", "--delay", "1h", "--json"))
	line := s.must("status", "--json")
	st := decode[statusLine](t, line)
	if st.Revision != last.Revision || !strings.HasPrefix(line, fmt.Sprintf(`{"revision":%d,"settled":true,"queues":{"a":{"pending":1,"processing":0,"unacked":1,"complete":false,`+
		`"ready":1,"scheduled":0,"blocked":0,"overdue":0,"failed":0,"paused":false,"failed_namespace":"","counters":{"enqueued":1,`, last.Revision)) ||
		!strings.HasSuffix(line, `,"orphans":-1,"orphan_bytes":-1,"owner":null}`+"\n") {
		t.Errorf("got %s", line)
	}
	if st.Queues["b"].Scheduled != 1 || st.Queues["b"].Ready != 0 {
		t.Errorf("b is not scheduled: %s", line)
	}
	unknown := decode[statusLine](t, s.must("status", "nobody", "--json"))
	if q := unknown.Queues["nobody"]; !q.Complete || len(unknown.Queues) != 1 {
		t.Errorf("an unknown queue: %+v", unknown)
	}
	text := s.must("status")
	if strings.Contains(text, "UNSETTLED") || !strings.Contains(text, "QUEUE  PENDING") {
		t.Errorf("for people: %q", text)
	}
}

func TestFailedMessages(t *testing.T) {
	s := newStore(t)
	fail := func(id string, args ...string) answer {
		t.Helper()
		s.must("enqueue", "chat", "1", "--id", id)
		c := decode[claimLine](t, s.must("claim", "chat", "--json", "--lease", "none"))
		return s.run(append([]string{"fail", c.Receipt, "--cause", "no such chat"}, args...)...)
	}
	if got := fail("m"); got.code != 0 {
		t.Fatal(got.err)
	}
	got := fail("m", "--json")
	if l := decode[errorLine](t, got.err); got.code != exitRefused || l.Code != "failed_exists" || l.Name != "m" {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	held := decode[entryLine](t, s.must("ls", "chat", "--json"))
	s.must("fail", held.Receipt, "--cause", "again", "--as", "m-2")
	s.refused(exitUsage, "usage", "fail", held.Receipt)

	rows := lines(s.must("failed", "ls", "--json"))
	if len(rows) != 2 {
		t.Fatalf("failed ls: %q", rows)
	}
	if e := decode[entryLine](t, rows[0]); e.FailedName != "m" || e.LastError != "no such chat" || e.Queue != "chat" || !e.Settled || e.FailedAt == nil {
		t.Errorf("failed ls: %+v", e)
	}
	if got := s.must("failed", "ls", "other", "--json"); got != "" {
		t.Errorf("failed ls of another queue: %q", got)
	}
	if got := s.must("failed", "show", "m-2"); !strings.Contains(got, "again") {
		t.Errorf("failed show: %q", got)
	}
	purge := s.run("failed", "purge", "nobody", "m", "-2", "--json")
	if purge.code != exitUsage { // -2 reads as a flag
		t.Errorf("purge: %+v", purge)
	}
	purge = s.run("failed", "purge", "--json", "--", "nobody", "m", "-2")
	if purge.code != exitNothing || len(lines(purge.out)) != 1 || len(lines(purge.err)) != 2 { // -2 is not m-2
		t.Errorf("purge: exit %d, %q, %q", purge.code, purge.out, purge.err)
	}
}

func TestListingsInPages(t *testing.T) {
	s := newStore(t)
	s.mustFeed(strings.Repeat("1\n", 25), "enqueue", "chat", "--ndjson")
	if got := lines(s.must("ls", "chat", "--json")); len(got) != 25 {
		t.Errorf("all: %d", len(got))
	}
	first := s.run("ls", "chat", "--limit", "10")
	_, run, ok := strings.Cut(first.err, "run: holdfast ")
	if !ok || len(lines(first.out)) != 11 {
		t.Fatalf("limit: %q, %q", first.out, first.err)
	}
	args := strings.Fields(run)
	second := s.run(append(args, "--json")...)
	if len(lines(second.out)) != 10 || second.code != 0 {
		t.Errorf("holdfast %q: %+v", args, second)
	}
	if got := lines(s.must("peek", "chat", "-n", "3", "--json")); len(got) != 3 {
		t.Errorf("peek: %d", len(got))
	}
	if got := s.must("clear", "chat", "--json"); got != `{"queue":"chat","cleared":25}`+"\n" {
		t.Errorf("clear: %s", got)
	}
	s.refused(exitNothing, "empty", "peek", "chat")
	if got := s.must("ls", "chat"); got != "" {
		t.Errorf("an empty listing: %q", got)
	}
}

func TestClearAsksOnATerminalOnly(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1", "--id", "m")
	s.tty = true
	if got := s.feed("n\n", "clear", "chat"); got.code != exitRefused {
		t.Errorf("no: %+v", got)
	}
	if got := s.feed("y\n", "clear", "chat"); got.code != 0 || got.out != "removed 1 message from chat\n" {
		t.Errorf("yes: %+v", got)
	}
	s.must("enqueue", "chat", "1", "--id", "m")
	s.must("claim", "chat")
	s.must("clear", "chat", "--yes")
	if got := lines(s.must("ls", "chat", "--json")); len(got) != 1 {
		t.Errorf("a leased one was cleared unasked")
	}
	s.must("clear", "chat", "--yes", "--leased")
	if got := s.must("ls", "chat"); got != "" {
		t.Errorf("left: %s", got)
	}
	s.tty = false
}

func TestTwoGenerationsOfOneID(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", `"old"`, "--id", "m")
	s.must("claim", "chat", "--lease", "none")
	newer := decode[enqueuedLine](t, s.must("enqueue", "chat", `"new"`, "--id", "m", "--if-exists", "replace", "--json"))
	rows := lines(s.must("show", "chat", "m", "--json"))
	if len(rows) != 2 || decode[map[string]any](t, rows[1])["state"] != string(queue.Blocked) {
		t.Errorf("show: %q", rows)
	}
	got := s.run("show", "chat", "m", "--payload")
	if got.out != `"old"` || !strings.Contains(got.err, newer.Generation) || got.code != 0 {
		t.Errorf("show --payload: %+v", got)
	}
	if got := s.must("show", "chat", "m", "--payload", "--generation", newer.Generation); got != `"new"` {
		t.Errorf("the newer one: %q", got)
	}
	s.refused(exitNothing, "not_found", "show", "chat", "m", "--generation", "none")
}

func TestUsageIsCheckedBeforeTheStore(t *testing.T) {
	s := &session{t: t, dir: "/nonexistent"}
	for _, args := range [][]string{
		{"claim", "chat", "-n", "0"}, {"claim", "chat", "--lease", "0"}, {"claim", "chat", "--lease", "soon"},
		{"claim", "chat", "-n", "2", "--payload"}, {"enqueue", "chat", "1", "--ndjson"}, {"enqueue", "chat", "1", "--file", "x"},
		{"enqueue", "chat", "--ndjson", "--id", "m"}, {"enqueue", "chat", "1", "--if-exists", "guess"},
		{"enqueue", "chat", "1", "--delay", "soon"}, {"enqueue", "chat", "1", "--delay", "-1s"}, {"enqueue", "chat", "1", "--delay", "876001h"},
		{"enqueue", "chat", "1", "--at", "1h"}, {"enqueue", "chat", "1", "--at", "2026-01-31"},
		{"completion", "cmd"}, {"peek", "chat", "-n", "-1"}, {"ack"},
		{"retry"}, {"retry", "r", "--delay", "soon"}, {"retry", "r", "--max-failures", "0"}, {"retry", "r", "--max-failures", "-1"},
		{"extend"}, {"extend", "r", "--lease", "0"}, {"release", "r", "--delay", "x"},
		{"reap", "--limit", "0"}, {"reap", "--limit", "10001"}, {"reap", "--max-lapses", "0"},
		{"reprocess", "m", "--all"}, {"reprocess", "--all", "--match", "x"}, {"reprocess", "--match", ""}, {"reprocess", "m", "--queue", "q"},
		{"wait", "--timeout", "soon"}, {"wait", "--message", "m"}, {"wait", "a", "b", "--message", "m"}, {"wait", "a", "--message", ""},
		{"status", "--interval", "1s"}, {"status", "--watch", "--interval", "1ms"}, {"status", "--watch", "--interval", "x"},
		{"ls", "--overdue", "--limit", "1"}, {"ls", "--overdue", "a", "b"}, {"cursor"}, {"resume"},
		{"set", "--queue", "a", "on_dead_owner=stop"}, {"set", "failed_namespace=x"},
	} {
		s.refused(exitUsage, "usage", args...)
	}
	s.tty = true
	s.refused(exitUsage, "usage", "enqueue", "chat") // no payload, and stdin is a terminal
}

func TestVersionAndCompletion(t *testing.T) {
	s := &session{t: t}
	if v := decode[versionLine](t, s.must("version", "--json")); v.Go == "" || v.Version == "" {
		t.Errorf("%+v", v)
	}
	if got := s.must("version"); !strings.HasPrefix(got, "holdfast ") {
		t.Errorf("%q", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := s.must("completion", shell); !strings.Contains(got, "holdfast") {
			t.Errorf("%s: %q", shell, got)
		}
	}
}
