//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/migrate"
	v1 "example.com/holdfast/v1"
)

// importNext wants one line on stderr with this exit code, and this at its end.
func (s *session) importNext(want string, exit int, args ...string) answer {
	s.t.Helper()
	got := s.run(args...)
	if got.code != exit || !strings.HasSuffix(got.err, want+"\n") || strings.Count(got.err, "\n") != 1 {
		s.t.Errorf("%q: exit %d, %q; want %d, and at its end %q", args, got.code, got.err, exit, want)
	}
	return got
}

// A directory in the wrong role, or shared, leads to a command that works.
func TestImportRoles(t *testing.T) {
	s := newStore(t)
	from, failed := importDirs(t, map[string]string{"q/a.json": "1", "q/c.processing": "2", "f/x.json": "3"})
	second, _ := importDirs(t, map[string]string{"q/b.json": "1"})
	cmd := func(from, failed, queue string) []string {
		return []string{"import-v1", "--from", from, "--failed", failed, "--queue", queue}
	}
	spelled := func(args []string, more string) string {
		return "holdfast " + strings.Join(args, " ") + " " + more + " --dir " + s.dir
	}
	swapped := cmd(failed, from, "mail")
	got := s.importNext("looks like a queue directory: are --from and --failed swapped?: c.processing is in it; run: "+spelled(cmd(from, failed, "mail"), "--dry-run"),
		exitUsage, append(swapped, stopped)...)
	if got.out != "" {
		t.Errorf("stdout %q", got.out)
	}
	s.must(append(cmd(from, failed, "mail"), stopped)...)

	shared := append(cmd(second, failed, "news"), stopped)
	alone := []string{"import-v1", "--from", second, "--queue", "news", "--dry-run"}
	s.importNext("it went over with "+from+": leave --failed out; run: "+spelled(alone[:5], "--dry-run"), exitRefused, shared...)
	s.refused(exitRefused, "failed_taken", shared...)
	if got := s.must(alone...); !strings.Contains(got, "no --failed was given: what is set aside is not imported\n") {
		t.Errorf("it is silent about what failed: %q", got)
	}
	s.importNext("it is the failed directory of "+from+"; name the directory of the queue with --from, and its failed directory with --failed",
		exitRefused, "import-v1", "--from", failed, "--queue", "news", stopped)
	s.refused(exitRefused, "other_role", append(cmd(second, from, "news"), stopped)...)
	s.refused(exitRefused, "in_store", append(cmd(s.dir, failed, "news"), stopped)...)

	above := filepath.Join(t.TempDir(), "above")
	inner := &session{t: t, dir: filepath.Join(above, "deep", "er", "store")}
	if err := os.MkdirAll(filepath.Dir(inner.dir), 0o700); err != nil {
		t.Fatal(err)
	}
	inner.must("init")
	inner.importNext(above+": a v1 directory and a v2 store may not be in one another: the store "+inner.dir+" is in it; run: holdfast import-v1 --help",
		exitRefused, "import-v1", "--from", above, "--queue", "mail", stopped)
	empty := t.TempDir()
	s.importNext("; run: ls -la "+empty, exitNothing, "import-v1", "--from", empty, "--queue", "news", stopped)
	if got := importFiles(t, empty); got != "" {
		t.Errorf("left %q", got)
	}
}

// Where a v1 directory stands no store is suggested, and none inside it.
func TestNoStoreButV1(t *testing.T) {
	for name, try := range map[string]struct {
		files []string
		v1    bool
	}{
		"a claim":        {[]string{"a.processing", "README"}, true},
		"a marker":       {[]string{".holdfast-import"}, true},
		"only pending":   {[]string{"a.json", "b.1.2.tmp"}, true},
		"something else": {[]string{"package.json", "main.js"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{t: t, dir: t.TempDir()}
			for _, file := range try.files {
				if err := os.WriteFile(filepath.Join(s.dir, file), []byte("1"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			const next = "; this is a v1 queue directory: make a store elsewhere, and import this into it; run: holdfast import-v1 --help\n"
			for _, args := range [][]string{{"status"}, {"enqueue", "mail", "1"}, {"claim", "mail"}, {"init"}} {
				got := s.run(args...)
				if strings.HasSuffix(got.err, next) != try.v1 || got.code == exitDone {
					t.Errorf("%q: exit %d, %q", args, got.code, got.err)
				}
				l := decode[errorLine](t, s.run(append(args, "--json")...).err)
				if (l.Run == "holdfast import-v1 --help") != try.v1 {
					t.Errorf("%q --json: %+v", args, l)
				}
			}
		})
	}
}

// A marker leads to its own queue in this store; of another store no command of this one
// is named.
func TestImportMarkerNext(t *testing.T) {
	for _, open := range []bool{true, false} {
		t.Run(fmt.Sprintf("open %v", open), func(t *testing.T) {
			s, other := newStore(t), newStore(t)
			from, failed := importDirs(t, map[string]string{"q/a.json": "1"})
			wrong := t.TempDir()
			args := []string{"import-v1", "--from", from, "--failed", failed, "--queue", "mail", stopped}
			if open {
				s.importCut("importing: ", args...)
			} else {
				s.must(args...)
			}
			into := []string{"import-v1", "--from", from, "--queue", "news", stopped}
			abandon := []string{"import-v1", "--from", from, "--queue", "mail", "--abandon"}
			remove := []string{"import-v1", "--from", from, "--queue", "news", "--remove-source", "--yes"}
			base := "holdfast import-v1 --from " + from + " --queue mail "
			if !open {
				s.importNext("; run: holdfast status mail --dir "+s.dir, exitRefused, into...)
				s.importNext("; run: "+base+"--remove-source --dir "+s.dir, exitRefused, remove...)
				other.importNext("; that store has it; nothing of it goes into this one", exitRefused, into...)
				other.importNext("; that store has it; nothing of it goes into this one", exitRefused, abandon...)
				other.importNext("; name that store (--dir): only it can tell that everything came over", exitRefused, remove...)
				return
			}
			there := "; go on with it there (--dir), or take it back there; if that store is lost for good, docs/migrating.md says what to do"
			other.importNext(there, exitRefused, into...)
			other.importNext(there, exitRefused, abandon...)
			s.importNext("it was begun with the failed directory "+failed+", and not with "+wrong+": name that one, or leave --failed out; run: "+base+stopped+" --dir "+s.dir,
				exitRefused, "import-v1", "--from", from, "--failed", wrong, "--queue", "mail", stopped)
			if got := s.must("import-v1", "--from", from, "--queue", "mail", "--dry-run"); !strings.Contains(got, "would import 1 message") ||
				!strings.Contains(got, "would go on with an import that was begun\n") {
				t.Errorf("dry run: %q", got)
			}
			s.importNext("; run: "+base+"--abandon --dir "+s.dir, exitRefused, "import-v1", "--from", from, "--queue", "news", "--abandon")
			s.importNext("; run: "+base+stopped+" --dir "+s.dir, exitRefused, into...)
			(&session{t: t}).must(strings.Fields(base + stopped + " --dir " + s.dir)[1:]...)
		})
	}
}

// While an import is open the queue's messages are shown as held back, and everything
// names the way out.
func TestImportingIsShown(t *testing.T) {
	s := newStore(t)
	from, _ := importDirs(t, map[string]string{"q/a.json": "1", "q/c.processing": "1"})
	for i := range 600 {
		if err := os.WriteFile(filepath.Join(from, fmt.Sprintf("m%03d.json", i)), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.importCut("importing: 576 ", "import-v1", "--from", from, "--queue", "mail", stopped)
	back := "holdfast import-v1 --abandon --queue mail --dir " + s.dir
	if got := s.must("status"); !strings.Contains(got, "mail takes nothing else while the import of your v1 directory is open: run that import again; to take it back: "+back+"\n") {
		t.Errorf("status: %q", got)
	}
	if got := s.must("ls", "mail"); !strings.Contains(got, "c     importing, returned: released") || strings.Contains(got, "ready") {
		t.Errorf("ls: %.300q", got)
	}
	if got := s.must("peek", "mail"); !strings.Contains(got, "state       importing") {
		t.Errorf("peek: %q", got)
	}
	if l := decode[entryLine](t, lines(s.must("ls", "mail", "--json"))[0]); l.State != "ready" {
		t.Errorf("--json: %+v", l) // the machine form has the states of the contract
	}

	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	errs := &cutter{at: "an import into mail is open: nothing can be claimed until it ends", cut: cut}
	a := newApp(strings.NewReader(""), io.Discard, errs)
	a.env, a.tty = os.Getenv, func(any) bool { return false }
	a.run(ctx, []string{"--dir", s.dir, "work", "mail", "--", "true"})
	if first, _, _ := strings.Cut(errs.text.String(), "\n"); !strings.HasSuffix(first, "; run the import of your v1 directory again, or take it back: "+back) {
		t.Errorf("work: %q", errs.text.String())
	}

	// The directory is lost.
	if err := os.Rename(from, from+".lost"); err != nil {
		t.Fatal(err)
	}
	s.importNext("--from "+from+": no such directory; run: ls -la "+filepath.Dir(from), exitOperator, "import-v1", "--from", from, "--queue", "mail", stopped)
	s.importNext("--from "+from+": no such directory; if it is lost, leave --from out; run: holdfast import-v1 --queue mail --abandon --dir "+s.dir, exitOperator, "import-v1", "--from", from, "--queue", "mail", "--abandon")
	s.must(strings.Fields(back)[1:]...)
	s.importNext("--from "+from+".lost/a.json: not a directory; run: ls -la "+from+".lost", exitOperator, "import-v1", "--from", from+".lost/a.json", "--queue", "mail", stopped)
}

func TestImportTakenNext(t *testing.T) {
	s := newStore(t)
	from, failed := importDirs(t, map[string]string{"q/a.json": "1", "f/x.json": "2"})
	s.must("enqueue", "mail", "1", "--id", "x")
	c := decode[claimLine](t, s.must("claim", "mail", "--json"))
	s.must("fail", c.Receipt, "--cause", "x")
	args := []string{"import-v1", "--from", from, "--failed", failed, "--queue", "mail", stopped}
	const shared = "if those failed messages came from the same shared failed directory, with another queue, leave --failed out; else reprocess or purge them first"
	s.importNext("; "+shared+"; run: holdfast failed ls --dir "+s.dir, exitRefused, args...)
	s.must("enqueue", "mail", "1", "--id", "a")
	s.importNext("; take another queue, or let those messages be settled first; "+shared+"; run: holdfast ls mail --dir "+s.dir, exitRefused, args...)
}

// A lock that is young is no lock to remove; one that does not stand is named, and not
// suggested again.
func TestImportLocksNext(t *testing.T) {
	const gone = ".fs-safe-transfer-00000000000000000000000000000000.lock"
	s := newStore(t)
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	from, _ := importDirs(t, map[string]string{"q/a.json": "1", "q/" + importLock: `{"ownerToken":"me","createdAt":"` + now + `"}`})
	base := "import-v1 --from " + from + " --queue mail"
	args := append(strings.Fields(base), stopped)
	got := s.importNext("; a program is at work, or died just now: stop it and look again; run: holdfast "+base+" --dry-run --dir "+s.dir, exitOperator, append(args, "--remove-lock", gone)...)
	if got.out != "no lock of that name stands: "+gone+"\n"+importLock+", owner me, 0s old\n" {
		t.Logf("a slow run may tell another age: %q", got.out)
		if !strings.HasPrefix(got.out, "no lock of that name stands: "+gone+"\n"+importLock+", owner me, ") {
			t.Errorf("stdout %q", got.out)
		}
	}
	if err := os.WriteFile(filepath.Join(from, importLock), []byte(importOldLock), 0o600); err != nil {
		t.Fatal(err)
	}
	s.importNext("; run: holdfast "+base+" "+stopped+" --remove-lock "+importLock+" --dir "+s.dir, exitOperator, append(args, "--remove-lock", gone)...)
	if got := s.must(append(args, "--remove-lock", gone, "--remove-lock", importLock)...); !strings.Contains(got, "no lock of that name stands: "+gone+"\n") {
		t.Errorf("%q", got)
	}
}

// Stopped while it reads, an import has begun nothing, and says so.
func TestImportIsStoppedWhileChecking(t *testing.T) {
	s := newStore(t)
	from, _ := importDirs(t, nil)
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(from, fmt.Sprintf("m%d.json", i)), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := importFiles(t, from)
	for _, flag := range []string{stopped, "--dry-run"} {
		got := s.importCut("checking: 64 ", "import-v1", "--from", from, "--queue", "mail", flag)
		want := "stopped while checking; nothing was begun; run: holdfast import-v1 --from " + from + " --queue mail " + flag + " --dir " + s.dir + "\n"
		if got.code != exitIO || !strings.HasSuffix(got.err, want) || importFiles(t, from) != before {
			t.Errorf("%s: %+v", flag, got)
		}
	}
}

// What was done to the v1 directory before an error is told; of a dry run nothing was.
func TestImportToldBeforeAnError(t *testing.T) {
	rep := migrate.Report{Recovered: []string{"a", "b"}, LocksRemoved: []v1.HeldLock{{Lock: v1.Lock{File: "l"}, ID: "a"}}, LocksMissing: []string{"m"}}
	for _, try := range []struct {
		dry  bool
		want string
	}{
		{false, "finished what was interrupted of: a, b\nremoved the lock l of a, 0s old\nno lock of that name stands: m\n"},
		{true, "no lock of that name stands: m\n"},
	} {
		var out, errs bytes.Buffer
		a := newApp(strings.NewReader(""), &out, &errs)
		rep.DryRun = try.dry
		a.printUnfinished(rep)
		if a.flush(); out.String() != try.want {
			t.Errorf("dry run %v: %q, want %q", try.dry, out.String(), try.want)
		}
		out.Reset()
		a.json = true
		a.printUnfinished(rep)
		a.flush()
		if l := decode[importLine](t, out.String()); len(l.LocksMissing) != 1 || l.DryRun != try.dry || l.Closed {
			t.Errorf("--json: %+v", l)
		}
		out.Reset()
		a.printUnfinished(migrate.Report{Token: "t"})
		if a.flush(); out.Len() > 0 {
			t.Errorf("nothing was done: %q", out.String())
		}
	}
}

func TestImportHelp(t *testing.T) {
	s := newStore(t)
	if got := s.must("import-v1", "--help"); !strings.Contains(got, "Examples:\n  holdfast import-v1 --from outbox --failed outbox-failed --queue mail --dir store --dry-run\n") {
		t.Errorf("%q", got)
	}
	s.importNext(`unexpected argument "x": the directories come with --from and --failed; run: holdfast import-v1 --help`, exitUsage, "import-v1", "x")
}
