//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each hint leads somewhere, or there is none.
func TestHints(t *testing.T) {
	s := newStore(t)
	open := &session{t: t, dir: t.TempDir()}
	if err := os.Chmod(open.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	orphan := &session{t: t, dir: filepath.Join(t.TempDir(), "a", "b")}
	empty, other := &session{t: t, dir: t.TempDir()}, &session{t: t, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(other.dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	backup := &session{t: t, dir: filepath.Join(t.TempDir(), "copy")}
	if got := s.run("backup", backup.dir); got.code != 0 {
		t.Fatalf("backup: %+v", got)
	}
	for _, try := range []struct {
		s    *session
		args []string
		exit int
		want string
	}{
		{s, []string{"enqueue", "mail", "--file", "nosuch.json"}, exitIO, "holdfast: nosuch.json: no such file\n"},
		{s, []string{"enqueue", "mail", "--ndjson", "--file", "nosuch.json"}, exitIO, "holdfast: nosuch.json: no such file\n"},
		{s, []string{"enqueue", "mail", "--file", "/"}, exitIO, "holdfast: /: is a directory\n"},
		{open, []string{"init"}, exitOperator, "; run: chmod 700 " + open.dir + "\n"},
		{orphan, []string{"init"}, exitIO, "holdfast: " + orphan.dir + ": the parent directory " + filepath.Dir(orphan.dir) +
			" does not exist; make it first; run: mkdir -p " + filepath.Dir(orphan.dir) + "\n"},
		{orphan, []string{"status"}, exitOperator, "; if a disk belongs there, mount it first; run: holdfast init --dir " + orphan.dir + "\n"},
		{empty, []string{"claim", "mail"}, exitOperator, "; if a disk belongs there, mount it first; run: holdfast init --dir " + empty.dir + "\n"},
		{other, []string{"status"}, exitOperator, "; there is something else; run: ls -la " + other.dir + "\n"},
		{backup, []string{"status"}, exitOperator, "; this is a backup: restore it into another directory; run: holdfast restore " + backup.dir + " --dir NEW_DIRECTORY\n"},
		{empty, []string{"restore", s.dir}, exitRefused, "holdfast: " + s.dir + ": \"manifest.json\" in the copy: is missing: this is no copy, or one that was not finished; this is a store: holdfast backup makes a copy of it\n"},
		{s, []string{"enqueue", "a/b c", "1"}, exitUsage, "holdfast: a component of the queue name \"b c\": only A-Z a-z 0-9 . _ - may stand in it: invalid name; run: holdfast enqueue --help\n"},
		{s, []string{"ack", "x"}, exitUsage, "; run: holdfast ls QUEUE --dir " + s.dir + "\n"},
		{s, []string{"ack", "zzzzzzzz.0:1"}, exitUsage, "; run: holdfast ls QUEUE --dir " + s.dir + "\n"},
		{s, []string{"ack", "other:mail:m:g.0:1"}, exitUsage, "; run: holdfast ls mail --dir " + s.dir + "\n"},
		{s, []string{"enqueue", "mail", "1", "--id", ""}, exitUsage, "--id is empty: leave it out for a generated ID; run: holdfast enqueue --help\n"},
		{s, []string{"enqueue", "mail", "-"}, exitUsage, "--file - reads stdin; run: holdfast enqueue --help\n"},
		{s, []string{"enqueue", "mail", "-5"}, exitUsage, "holdfast: -5 reads as a flag: a payload that begins with a minus goes after --; run: holdfast enqueue QUEUE -- -5\n"},
		{s, []string{"enqueue", "mail", "-x"}, exitUsage, "holdfast: unknown shorthand flag: 'x' in -x; run: holdfast enqueue --help\n"},
		{s, []string{"claim", "mail", "--lease", "876001h"}, exitUsage, "from 1ms to 876000h, or none; run: holdfast claim --help\n"},
		{s, []string{"claim", "mail", "--lease", "1us"}, exitUsage, "from 1ms to 876000h, or none; run: holdfast claim --help\n"},
		{s, []string{"claim", "mail", "-n", "x"}, exitUsage, "holdfast: invalid argument \"x\" for \"-n, --number\" flag; run: holdfast claim --help\n"},
		{s, []string{"ack"}, exitUsage, "holdfast: usage: holdfast ack RECEIPT...; run: holdfast ack --help\n"},
		{s, []string{"init", "here"}, exitUsage, "holdfast: usage: holdfast init; run: holdfast init --help\n"},
		{s, []string{"failed", "show"}, exitUsage, "holdfast: usage: holdfast failed show NAME; run: holdfast failed show --help\n"},
		{s, []string{"reap", "s:mail:m:g.0:1"}, exitUsage, "holdfast: to end one named claim: reap --receipt RECEIPT; run: holdfast reap --help\n"},
		{s, []string{"reap", "mail", "--receipt", "r"}, exitUsage, "not both; each receipt has a --receipt of its own; run: holdfast reap --help\n"},
		{s, []string{"reap"}, exitNothing, ": no lease is over; run: holdfast status --dir " + s.dir + "\n"},
		{s, []string{"reap", "mail", "chat"}, exitNothing, ": no lease is over in mail, chat; run: holdfast status --dir " + s.dir + "\n"},
		{s, []string{"reap", "--receipt", "x"}, exitUsage, "; run: holdfast ls QUEUE --dir " + s.dir + "\n"},
		{s, []string{"reprocess", "m"}, exitNothing, "; run: holdfast failed ls --dir " + s.dir + "\n"},
		{s, []string{"reprocess", "m", "--namespace", "x"}, exitNothing, "; run: holdfast failed ls --namespace x --dir " + s.dir + "\n"},
		{s, []string{"reprocess", "--all"}, exitNothing, ": no message has failed; run: holdfast failed ls --dir " + s.dir + "\n"},
		{s, []string{"reprocess", "--match", "x"}, exitNothing, ": no failed message has \"x\" in its name, its ID or its last error; run: holdfast failed ls --dir " + s.dir + "\n"},
		{s, []string{"reprocess"}, exitUsage, "holdfast: say which: NAME..., --match TEXT or --all; run: holdfast reprocess --help\n"},
		{s, []string{"cursor", "mail"}, exitNothing, ": queue mail has no cursor; run: holdfast cursor mail --set TEXT --dir " + s.dir + "\n"},
		{s, []string{"set", "failed_namespace=x"}, exitUsage, "holdfast: failed_namespace is a setting of a queue: add --queue QUEUE; run: holdfast set --help\n"},
		{s, []string{"ls"}, exitUsage, "holdfast: usage: holdfast ls QUEUE; run: holdfast ls --help\n"},
		{s, []string{"pause"}, exitUsage, "holdfast: usage: holdfast pause QUEUE...; run: holdfast pause --help\n"},
		{s, []string{"enqueue", "mail", "1", "--delay", "1m", "--at", "2026-01-31T08:00:00Z"}, exitUsage, "holdfast: give --delay or --at, not both; run: holdfast enqueue --help\n"},
		{s, []string{"enqueue", "mail", "1", "--key", ""}, exitUsage, "--key is empty: leave it out for none; run: holdfast enqueue --help\n"},
		{s, []string{"stat"}, exitUsage, "holdfast: unknown command \"stat\"; did you mean status?; run: holdfast --help\n"},
		{s, []string{"xyzzy"}, exitUsage, "holdfast: unknown command \"xyzzy\"; run: holdfast --help\n"},
		{s, []string{"enqueue", "mail", "--ndjson", "--id", "m"}, exitUsage, "; run: holdfast enqueue --help\n"},
		{s, []string{"enqueue", "mail", "--ndjson", "--if-exists", "keep"}, exitUsage, "; run: holdfast enqueue --help\n"},
		{s, []string{"enqueue", "mail", "--ndjson", "--if-exists", "replace"}, exitUsage, "; run: holdfast enqueue --help\n"},
	} {
		got := try.s.run(try.args...)
		if got.code != try.exit || !strings.HasSuffix(got.err, try.want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%q: exit %d, %q; want %d, %q", try.args, got.code, got.err, try.exit, try.want)
		}
	}
	s.must("claim", "--help")
	if got := s.run("claim", "mail", "--lease", "876000h"); got.code != exitNothing {
		t.Errorf("the longest lease: %+v", got)
	}
}

func TestPermissionDeniedLooksAtTheDirectory(t *testing.T) {
	a := newApp(strings.NewReader(""), os.Stdout, os.Stderr)
	a.dir = "/a b"
	if got := a.next(kindOf(fmt.Errorf("open: %w", os.ErrPermission)), facts{}); got != "ls -ld '/a b'" {
		t.Errorf("got %q", got)
	}
	a.command = "holdfast verify"
	if got := a.next(ioKind, facts{}); got != "" {
		t.Errorf("verify names itself: %q", got)
	}
}

func TestACorruptStoreHasNoCommand(t *testing.T) {
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
	s.must("init")
	s.must("enqueue", "mail", "1")
	state := filepath.Join(s.dir, ".fs-safe-queue-v2", "state.json")
	if err := os.WriteFile(state, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	const advice = "; no command repairs this; restore a copy, into another directory (holdfast restore)\n"
	for _, args := range [][]string{{"verify"}, {"claim", "mail"}, {"status"}} {
		got := s.run(args...)
		if got.code != exitOperator || !strings.HasSuffix(got.err, advice) || strings.Contains(got.err, "run: ") {
			t.Errorf("%q: %+v", args, got)
		}
		if l := decode[errorLine](t, s.run(append(args, "--json")...).err); l.Run != "" {
			t.Errorf("%q: the next command is %q", args, l.Run)
		}
	}
	got := s.run("verify").out
	if !strings.HasSuffix(got, "\nnothing was counted: the store cannot be read\n") || strings.Contains(got, "0 messages") ||
		!strings.HasPrefix(got, "fault state: state.json: at byte") {
		t.Errorf("verify: %q", got)
	}
}

func TestClaimNamesTheOverdue(t *testing.T) {
	f := &overdueStore{}
	s := &session{t: t, dir: "/fake", engine: with(f)}
	if got := s.run("claim", "mail"); got.code != exitNothing || got.err !=
		"holdfast: /fake: queue mail: nothing is due; 3 processing, 2 overdue; reap returns what is overdue or whose process is gone; run: holdfast reap mail --dir /fake\n" {
		t.Errorf("%+v", got)
	}
	got := s.refused(exitNothing, "empty", "claim", "mail")
	if l := decode[errorLine](t, got.err); l.Overdue != 2 || l.Run != "holdfast reap mail --dir /fake" || !strings.Contains(got.err, `"overdue":2`) {
		t.Errorf("%+v", l)
	}
	if help := s.must("claim", "--help"); !strings.Contains(strings.Join(strings.Fields(help), " "),
		`it ends when it is settled, or by "holdfast reap" once it is past its deadline. Until then it shows as overdue, its receipt still settles it, and claim does not give the message out again.`) {
		t.Errorf("help: %s", help)
	}
	if rows := lines(s.must("ls", "--overdue")); len(rows) != 3 || !strings.Contains(rows[1], "x") || !strings.Contains(rows[2], "y") {
		t.Errorf("ls --overdue: %q", rows)
	}
}

func TestStatusOfAnUnknownQueue(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "mail", "1")
	s.must("clear", "mail")
	rows := lines(s.must("status", "--orphans", "mail", "mial"))
	if len(rows) != 4 || !strings.HasSuffix(rows[1], " yes") || !strings.HasSuffix(rows[2], " unknown (empty)") {
		t.Errorf("%q", rows)
	}
}

func TestStreamLinesAreNumbered(t *testing.T) {
	s := newStore(t)
	for i, l := range lines(s.mustFeed("\n1\n\n2\n", "enqueue", "mail", "--ndjson", "--json")) {
		if want := fmt.Sprintf(`,"line":%d}`, 2*i+2); !strings.HasSuffix(l, want) {
			t.Errorf("%q does not end with %s", l, want)
		}
	}
	if got := s.must("enqueue", "mail", "1", "--json"); strings.Contains(got, "line") {
		t.Errorf("one message: %q", got)
	}
}
