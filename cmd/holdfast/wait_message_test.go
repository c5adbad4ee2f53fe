//go:build unix

package main

import (
	"context"
	"strings"
	"testing"
)

// What became of the message that wait --message waited for.
func TestWaitSaysWhatBecameOfTheMessage(t *testing.T) {
	s := newStore(t)
	s.must("set", "--queue", "bot", "failed_namespace=dead")
	for _, q := range []string{"chat", "bot"} {
		s.must("fail", s.claimed(q, "bad", "none").Receipt, "--cause", "x")
	}
	s.must("fail", s.claimed("chat", "other", "none").Receipt, "--cause", "x")
	s.must("ack", s.claimed("chat", "good", "none").Receipt)
	s.must("enqueue", "chat", "1", "--id", "later", "--delay", "1h")
	for _, try := range []struct{ queue, id, text, json string }{
		{"chat", "bad", "not live: failed as bad", `"live":false,"failed_name":"bad"}`},
		{"bot", "bad", "not live: failed as bad", `"live":false,"failed_name":"bad","namespace":"dead"}`},
		{"chat", "good", "not live: settled, or never seen", `"live":false}`},
		{"chat", "later", "live, not due yet", `"live":true}`},
	} {
		for _, timeout := range []string{"0s", "60s"} {
			args := []string{"wait", try.queue, "--message", try.id, "--ignore-scheduled", "--timeout", timeout}
			if got := s.must(args...); !strings.HasSuffix(got, "\n"+try.queue+" "+try.id+": "+try.text+"\n") {
				t.Errorf("%s %s: %q", try.queue, try.id, got)
			}
			if got, want := s.must(append(args, "--json")...), `"message":{"queue":"`+try.queue+`","id":"`+try.id+`",`+try.json+"}\n"; !strings.HasSuffix(got, want) {
				t.Errorf("%s %s: %q, want %q", try.queue, try.id, got, want)
			}
		}
	}
	if got := s.must("wait", "bot", "--json"); strings.Contains(got, `"message"`) {
		t.Errorf("a whole queue: %s", got)
	}
}

// With a timeout of nothing wait looks once.
func TestWaitLooksOnce(t *testing.T) {
	s := newStore(t)
	s.claimed("chat", "m", "none")
	s.must("enqueue", "mail", "1", "--id", "later", "--delay", "1h")
	for _, try := range []struct {
		args string
		want int
	}{
		{"", exitNothing}, {"chat", exitNothing}, {"mail", exitNothing}, {"none", exitDone},
		{"chat --ignore-scheduled", exitNothing}, {"mail --ignore-scheduled", exitDone},
		{"chat --message m", exitNothing}, {"chat --message m --ignore-scheduled", exitNothing}, {"chat --message other", exitDone},
		{"mail --message later", exitNothing}, {"mail --message later --ignore-scheduled", exitDone},
	} {
		got := s.run(append([]string{"wait", "--timeout", "0s"}, strings.Fields(try.args)...)...)
		if got.code != try.want || !strings.HasPrefix(got.out, "QUEUE ") || strings.Contains(got.err, "not complete after 0s: timed out") != (try.want != exitDone) {
			t.Errorf("wait %s: %+v", try.args, got)
		}
	}
}

func TestAnInterruptedWaitNamesNoCommand(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1")
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	got := s.feedFrom(ctx, strings.NewReader(""), "wait", "--json")
	if l := decode[errorLine](t, got.err); l.Code != "cancelled" || strings.Contains(got.err, `"run"`) {
		t.Errorf("%+v", got)
	}
}
