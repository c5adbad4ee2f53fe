//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// What a command did it also tells when stdout takes nothing any more.
func TestAChangeIsToldWhenStdoutFails(t *testing.T) {
	s := newStore(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		skip(t, err.Error())
	}
	defer full.Close()
	run := func(stdin string, args ...string) answer {
		t.Helper()
		var errs bytes.Buffer
		a := newApp(strings.NewReader(stdin), full, &errs)
		a.env, a.tty = func(string) string { return "" }, func(any) bool { return false }
		code := a.run(t.Context(), append([]string{"--dir", s.dir}, args...))
		if code != exitIO || strings.Contains(errs.String(), "; run: ") {
			t.Errorf("%q: exit %d, %q", args, code, errs.String())
		}
		return answer{code: code, err: errs.String()}
	}
	tells := func(got answer, want string) {
		t.Helper()
		if !strings.HasPrefix(got.err, want) || !strings.Contains(got.err, "no space left on device") {
			t.Errorf("got %q, want it to begin %q", got.err, want)
		}
	}
	tells(run("", "enqueue", "mail", "1", "--id", "m"), "holdfast: accepted mail m, but this could not be written: ")
	tells(run("", "ls", "mail"), "holdfast: write ")

	got := run("", "claim", "mail", "--lease", "none")
	tells(got, "holdfast: claimed mail m, but this could not be written: ")
	rows := lines(got.err)
	if len(rows) != 2 {
		t.Fatalf("no receipt: %q", got.err)
	}
	s.must("release", rows[1])
	got = run("", "claim", "mail", "--lease", "none", "--json")
	l := decode[errorLine](t, got.err)
	if len(l.Receipts) != 1 || l.Code != "io" {
		t.Fatalf("no receipt: %+v", l)
	}
	got = run("", "load", "mail", "m", "--lease", "none")
	receipt := lines(got.err)[1]
	tells(got, "holdfast: claimed mail m, but")
	got = run("", "load", "mail", "m", "--lease", "none", "--payload")
	if rows := lines(got.err); len(rows) != 2 || rows[0] == receipt {
		t.Errorf("--payload: %q", got.err)
	} else {
		receipt = rows[0]
	}
	tells(run("", "extend", receipt, "--lease", "none"), "holdfast: extended mail m, but")
	tells(run("", "reap", "--receipt", receipt), "holdfast: reaped mail m, but")
	tells(run("", "retry", receipt), "holdfast: retried mail m, but")
	tells(run("", "fail", s.claim("mail", "m").Receipt, "--cause", "x"), "holdfast: failed mail m, but")
	tells(run("", "reprocess", "m"), "holdfast: reprocessed m, but")
	tells(run("", "retry", s.claim("mail", "m").Receipt, "--max-failures", "1"), "holdfast: failed mail m, but")
	tells(run("", "failed", "purge", "m"), "holdfast: purged m, but")
	tells(run("", "pause", "mail"), "holdfast: paused mail, but")
	tells(run("", "resume", "mail"), "holdfast: resumed mail, but")
	tells(run("", "cursor", "mail", "--set", "7"), "holdfast: set the cursor of mail, but")
	tells(run("", "set", "--queue", "mail", "failed_namespace=x"), "holdfast: set failed_namespace=x of mail, but")
	tells(run("", "status", "--watch"), "holdfast: write ")
	tells(run("1\n2\n3\n", "enqueue", "mail", "--ndjson"), "holdfast: accepted 3 messages, the first mail ")
	tells(run("", "clear", "mail"), "holdfast: removed the messages of mail, but")
	tells(run("", "set", "on_dead_owner=recover"), "holdfast: set on_dead_owner=recover, but")

	var receipts []string
	s.mustFeed(strings.Repeat("1\n", 40), "enqueue", "mail", "--ndjson")
	got = run("", "claim", "mail", "-n", "40")
	if receipts = lines(got.err)[1:]; len(receipts) != 40 {
		t.Fatalf("%d receipts", len(receipts))
	}
	tells(run("", append([]string{"ack"}, receipts...)...), fmt.Sprintf("holdfast: acked %d messages, the first mail ", 40))
	if st := decode[statusLine](t, s.must("status", "--json")); !st.Queues["mail"].Complete {
		t.Errorf("%+v", st)
	}
	other := t.TempDir() + "/other"
	s2 := s.dir
	s.dir = other
	tells(run("", "init"), "holdfast: created a store in "+other+", but")
	s.dir = s2
}
