//go:build unix

package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

func TestWait(t *testing.T) {
	s := newStore(t)
	if st := decode[statusLine](t, s.must("wait", "--json")); len(st.Queues) != 0 || !st.Settled {
		t.Errorf("an empty store: %+v", st)
	}
	c := s.claimed("chat", "m", "none")
	s.must("enqueue", "mail", "1", "--id", "later", "--delay", "1h")
	for _, args := range [][]string{{"wait"}, {"wait", "mail"}, {"wait", "chat", "--ignore-scheduled"}, {"wait", "chat", "--message", "m"}} {
		got := s.run(append(args, "--timeout", "1ms", "--json")...)
		if st := decode[statusLine](t, got.out); got.code != exitNothing || decode[errorLine](t, got.err).Code != "timed_out" || len(args) == 1 && len(st.Queues) != 2 {
			t.Errorf("%q: %+v", args, got)
		}
	}
	for _, try := range []struct{ args, want string }{
		{"wait", "the store is not complete after 1ms: timed out; 1 processing; reap returns what is overdue or whose process is gone; run: holdfast reap --dir "},
		{"wait chat", "chat is not complete after 1ms: timed out; 1 processing; reap returns what is overdue or whose process is gone; run: holdfast reap chat --dir "},
		{"wait chat mail", "chat, mail is not complete after 1ms: timed out; 1 processing; reap returns what is overdue or whose process is gone; run: holdfast reap chat mail --dir "},
		{"wait chat --message m", "chat m is not complete after 1ms: timed out; 1 processing; reap returns what is overdue or whose process is gone; run: holdfast reap chat --dir "},
		{"wait mail", "mail is not complete after 1ms: timed out; run: holdfast status mail --dir "},
	} {
		got := s.run(append(strings.Fields(try.args), "--timeout", "1ms")...)
		if got.code != exitNothing || !strings.HasSuffix(got.err, ": "+try.want+s.dir+"\n") || !strings.HasPrefix(got.out, "QUEUE ") {
			t.Errorf("%s: %+v", try.args, got)
		}
	}
	for _, args := range [][]string{{"wait", "unknown"}, {"wait", "mail", "--ignore-scheduled"}, {"wait", "chat", "--message", "other"}} {
		s.must(append(args, "--timeout", "60s")...)
	}
	s.must("ack", c.Receipt)
	if st := decode[statusLine](t, s.must("wait", "chat", "--json", "--timeout", "60s")); !st.Queues["chat"].Complete {
		t.Errorf("complete: %+v", st)
	}
}

// A lateStore is complete when the time to wait for that is over.
type lateStore struct{ store }

func (*lateStore) Close() error { return nil }

func (*lateStore) Wait(ctx context.Context, _ queue.WaitOptions) (queue.Status, error) {
	<-ctx.Done()
	return queue.Status{}, ctx.Err()
}

func (*lateStore) Status(context.Context, queue.StatusOptions) (queue.Status, error) {
	return queue.Status{Settled: true}, nil
}

// What the last look finds counts: nobody is shown that all is done and told that it is not.
func TestWaitThatEndsComplete(t *testing.T) {
	s := &session{t: t, dir: "/fake", engine: with(&lateStore{})}
	if st := decode[statusLine](t, s.must("wait", "--timeout", "1ms", "--json")); !st.Settled {
		t.Errorf("%+v", st)
	}
}

func TestAnInterruptedWaitSaysSo(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1")
	ctx, interrupt := context.WithCancel(t.Context())
	got := make(chan answer)
	go func() { got <- s.feedFrom(ctx, strings.NewReader(""), "wait") }()
	interrupt()
	if a := <-got; a.code != exitIO || !strings.HasSuffix(a.err, ": stopped waiting\n") {
		t.Errorf("%+v", a)
	}
}

// A waiting process is woken by the ack of another.
func TestWaitIsWokenByAnotherProcess(t *testing.T) {
	s := newStore(t)
	c := s.claimed("chat", "m", "none")
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := cliCommand(s.dir, "wait", "chat", "--json", "--timeout", "60s")
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	cliArmed(t, cmd.Process.Pid)
	s.must("ack", c.Receipt)
	var st statusLine
	if err := json.NewDecoder(out).Decode(&st); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || !st.Queues["chat"].Complete || st.Queues["chat"].Counters.Completed != 1 {
		t.Errorf("%v, %+v", err, st)
	}
}

// cliWithin calls done until it says so.
func cliWithin(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
