//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/migrate"
	v1 "example.com/holdfast/v1"

	"example.com/holdfast/queue"
)

const (
	importLock    = ".fs-safe-transfer-0123456789abcdef0123456789abcdef.lock"
	importOldLock = "{\"ownerToken\":\"me\",\"createdAt\":\"2026-01-01T00:00:00.000Z\"}"
)

// importDirs makes a v1 directory with these files, and its failed directory. A name with
// a slash is below one of the two: q or f.
func importDirs(t *testing.T, files map[string]string) (from, failed string) {
	t.Helper()
	base := t.TempDir()
	from, failed = filepath.Join(base, "q"), filepath.Join(base, "f")
	for _, dir := range []string{from, failed} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return from, failed
}

func importFiles(t *testing.T, dir string) string {
	t.Helper()
	listed, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range listed {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

const stopped = "--i-have-stopped-old-programs"

// The whole way, in text.
func TestImport(t *testing.T) {
	s := newStore(t)
	from, failed := importDirs(t, map[string]string{
		"q/a.json": `{"n":1}`, "q/b.processing": `{"n":2}`, "q/both.json": `"new"`, "q/both.processing": `"old"`, "f/bad.json": `"bad"`,
		"q/half.processing": "1", "q/.fs-safe-retirements/half.json/entry": "2", "q/done.delivered": "1", "q/x.1.2.tmp": "{", "q/README": "x",
		"q/" + importLock: importOldLock,
	})
	flags := []string{"import-v1", "--from", from, "--failed", failed, "--queue", "mail", "--remove-lock", filepath.Join(from, importLock)}
	dry := s.must(append(flags, "--dry-run")...)
	for _, line := range []string{
		"would import 6 messages into mail: 3 claimed, 2 pending, 1 failed; 30 bytes",
		"would finish what was interrupted of: half",
		"would remove the lock " + importLock + ", owner me, ",
		"not imported, markers of work that was done: done.delivered",
		"not imported, temporary files: x.1.2.tmp",
		"not imported, no entries: README",
		"dry run: nothing was changed",
	} {
		if !strings.Contains(dry, line) {
			t.Errorf("the dry run does not say %q:\n%s", line, dry)
		}
	}
	if got := s.must("status"); !strings.Contains(got, "no queues") {
		t.Errorf("the dry run left\n%s", got)
	}
	remove := "holdfast import-v1 --from " + from + " --failed " + failed + " --queue mail --remove-source --dir " + s.dir
	got := s.must(append(flags, stopped)...)
	for _, line := range []string{
		"imported 7 messages into mail: 3 claimed, 3 pending, 1 failed; 31 bytes\n",
		"finished what was interrupted of: half\n", "removed the lock " + importLock,
		"the old files are still in " + from + "; to remove them, when nobody goes back: " + remove + "\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("it does not say %q:\n%s", line, got)
		}
	}
	var ids []string
	for i, row := range lines(s.must("claim", "mail", "-n", "9", "--json")) {
		c := decode[claimLine](t, row)
		if ids = append(ids, c.ID); i < 3 && c.Attempt != 2 {
			t.Errorf("a claimed one comes as attempt %d", c.Attempt)
		}
	}
	if len(ids) != 4 { // the newer ones of half and both wait
		t.Errorf("claimed %v", ids)
	}
	if got := s.must("failed", "show", "bad", "--payload"); got != `"bad"` {
		t.Errorf("failed: %q", got)
	}
	s.refused(exitRefused, "closed_source", append(flags, stopped)...)

	// The last step is as the summary says it, and asks first.
	args := strings.Fields(remove)[1:]
	asked := &session{t: t, tty: true}
	if got := asked.feed("n\n", args...); got.code != exitRefused || !strings.Contains(got.err, "remove the imported files from "+from) || !strings.HasSuffix(got.err, "is as it was: not confirmed\n") {
		t.Errorf("declined: %+v", got)
	}
	s.refused(exitUsage, "usage", args...) // nobody is there to ask
	done := (&session{t: t}).must(append(args, "--yes")...)
	if !strings.HasPrefix(done, "removed 7 files that had been imported into mail\n") || !strings.Contains(done, "left in the directories: done.delivered, x.1.2.tmp, README\n") {
		t.Errorf("removed: %q", done)
	}
	if got := importFiles(t, from); got != ".fs-safe-retirements .holdfast-import README done.delivered x.1.2.tmp" {
		t.Errorf("left %q", got)
	}
}

func TestImportMachineForm(t *testing.T) {
	s := newStore(t)
	from, failed := importDirs(t, map[string]string{
		"q/a.json": "1", "q/b.processing": "2", "q/no..json": "3", "f/bad.json": "4", "q/t.tmp": "", "q/d.delivered": "", "q/other": "",
		"q/" + importLock: importOldLock,
	})
	got := s.must("import-v1", "--from", from, "--failed", failed, "--queue", "mail", stopped, "--skip-invalid", "--remove-lock", importLock, "--json")
	l := decode[importLine](t, got)
	age := l.LocksRemoved[0].Age
	store := decode[struct {
		Dir         string `json:"dir"`
		Store       string `json:"store"`
		OnDeadOwner string `json:"on_dead_owner"`
		Resumed     bool   `json:"resumed"`
	}](t, (&session{t: t, dir: filepath.Join(t.TempDir(), "x")}).must("init", "--json"))
	if l.Store == "" || len(l.Store) != len(store.Store) || age < 1 {
		t.Errorf("store %q, age %v", l.Store, age)
	}
	seconds, _ := json.Marshal(age)
	want := fmt.Sprintf(`{"queue":"mail","store":"%s","failed_dir":"%s","import":"%s","dry_run":false,"resumed":false,"closed":true,"claimed":1,"pending":1,"failed":1,"bytes":3,"added":3,`+
		`"recovered":[],"locks_removed":[{"file":"%s","id":"","owner":"me","age_seconds":%s}],"locks_missing":[],`+
		`"skipped":[{"file":"no..json","reason":"ID \"no.\": may not end with a dot: invalid name"}],"delivered":["d.delivered"],"temporary":["t.tmp"],"other":["other"]}`+"\n",
		l.Store, failed, l.Import, importLock, seconds)
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	gone := s.must("import-v1", "--from", from, "--remove-source", "--yes", "--json")
	if want := `{"queue":"mail","import":"` + l.Import + `","removed":3,"gone":0,"kept":[],"left":["no..json","d.delivered","t.tmp","other"]}` + "\n"; gone != want {
		t.Errorf("got %s, want %s", gone, want)
	}
}

// Each refusal has its code, and names a command that leads on.
func TestImportRefusals(t *testing.T) {
	for name, try := range map[string]struct {
		files map[string]string
		flags []string
		exit  int
		code  string
		run   string // {cmd}: import-v1 with the same directory and queue
		out   string // what stdout begins with
	}{
		"not fenced":   {map[string]string{"q/a.json": "1"}, []string{}, exitUsage, "not_fenced", "{cmd} --dry-run --dir {dir}", ""},
		"no directory": {nil, []string{stopped, "--failed", "/nonexistent"}, exitOperator, "v1_no_directory", "ls -la /", ""},
		"a lock": {map[string]string{"q/" + importLock: importOldLock}, []string{stopped}, exitOperator, "v1_locked",
			"{cmd} " + stopped + " --remove-lock " + importLock + " --dir {dir}", importLock + ", owner me, "},
		"a record": {map[string]string{"q/.fs-safe-retirements/x.json/entry": "1"}, []string{stopped}, exitOperator, "v1_ambiguous",
			"ls -laR {from}/.fs-safe-retirements", ".fs-safe-retirements/x.json: it stands beside no claim\n"},
		"a bad entry": {map[string]string{"q/x.json": "{", "q/y.json": ""}, []string{stopped}, exitUsage, "unimportable",
			"{cmd} " + stopped + " --skip-invalid --dir {dir}", "x.json: payload at byte 1: ends inside the value: invalid payload\n"},
		"a bad entry in a dry run": {map[string]string{"q/x.json": "{"}, []string{"--dry-run"}, exitUsage, "unimportable",
			"{cmd} --dry-run --skip-invalid --dir {dir}", "x.json: "},
		"a taken ID":         {map[string]string{"q/mine.json": "1"}, []string{stopped}, exitRefused, "ids_taken", "holdfast ls mail --dir {dir}", "mine.json: the ID is live already\n"},
		"a marker":           {map[string]string{"q/.holdfast-import": "{"}, []string{stopped}, exitOperator, "marker", "ls -l {from}/.holdfast-import", ""},
		"nothing to abandon": {nil, []string{"--abandon"}, exitNothing, "no_import", "holdfast status --dir {dir}", ""},
		"nothing to remove":  {nil, []string{"--remove-source", "--yes"}, exitNothing, "no_import", "holdfast status --dir {dir}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.must("enqueue", "mail", "1", "--id", "mine")
			from, _ := importDirs(t, try.files)
			args := append([]string{"import-v1", "--from", from, "--queue", "mail"}, try.flags...)
			want := strings.NewReplacer("{cmd}", "holdfast import-v1 --from "+from+" --queue mail", "{dir}", s.dir, "{from}", from).Replace(try.run)
			got := s.run(args...)
			if got.code != try.exit || !strings.HasSuffix(got.err, "; run: "+want+"\n") || strings.Count(got.err, "\n") != 1 || !strings.HasPrefix(got.out, try.out) {
				t.Errorf("exit %d, stdout %q, stderr %q; want %d, %q, and to run %q", got.code, got.out, got.err, try.exit, try.out, want)
			}
			if l := decode[errorLine](t, s.refused(try.exit, try.code, args...).err); l.Run != want || l.Queue != "mail" {
				t.Errorf("--json: %+v", l)
			}
			if strings.HasPrefix(want, "holdfast import-v1 --from") {
				(&session{t: t}).must(strings.Fields(want)[1:]...)
			}
		})
	}
}

func TestImportUsage(t *testing.T) {
	s := &session{t: t, dir: "/nonexistent"}
	for _, args := range [][]string{
		{}, {"--from", "x"}, {"--queue", "q"}, {"--from", "x", "--queue", "q", "--abandon", "--dry-run"}, {"--from", "x", "--remove-source", "--dry-run"},
		{"--abandon"}, {"--abandon", "--queue", "q", "--skip-invalid"}, {"--remove-source"}, {"--from", "x", "--remove-source", "--remove-lock", importLock},
		{"--from", "x", "--queue", "q", stopped, "--yes"}, {"--from", "x", "--queue", "q", stopped, "--claim-by", "copy"},
		{"--from", "x", "--queue", "q", stopped, "--failed", ""}, {"--from", "x", "--queue", "q", stopped, "--remove-lock", "/elsewhere/" + importLock},
		{"x"}, {"--from", "x", "--queue", "q", stopped, "--remove-lock", "a.json"}, {"--from", "x", "--queue", "q", "--remove-source"},
	} {
		s.refused(exitUsage, "usage", append([]string{"import-v1"}, args...)...)
	}
	s.refused(exitUsage, "invalid_name", "import-v1", "--from", "x", "--queue", "a/ack", stopped)
	s.refused(exitUsage, "not_fenced", "import-v1", "--from", "x", "--queue", "q")
}

// While an import is open its queue says so, and what to do; it goes on, or is taken
// back, with or without its directory.
func TestImportIsOpen(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *session, from string){
		"it goes on": func(t *testing.T, s *session, from string) {
			got := s.must("import-v1", "--from", from, "--queue", "mail", stopped)
			if !strings.Contains(got, "went on with an import that had been begun; 2 messages came now\n") {
				t.Errorf("%q", got)
			}
			s.must("claim", "mail")
		},
		"it is taken back": func(t *testing.T, s *session, from string) {
			if got := s.must("import-v1", "--abandon", "--from", from, "--queue", "mail"); !strings.HasPrefix(got, "took back import ") {
				t.Errorf("%q", got)
			}
			s.refused(exitNothing, "empty", "claim", "mail")
			if got := importFiles(t, from); got != "a.json b.processing" {
				t.Errorf("left %q", got)
			}
		},
		"it is taken back without its directory": func(t *testing.T, s *session, from string) {
			got := s.must("import-v1", "--abandon", "--queue", "mail", "--json")
			l := decode[struct{ Queue, Import, Result string }](t, got)
			if l.Queue != "mail" || l.Import == "" || l.Result != "abandoned" {
				t.Errorf("%q", got)
			}
			s.refused(exitNothing, "empty", "claim", "mail")
			if got := importFiles(t, from); got != ".holdfast-import a.json b.processing" {
				t.Errorf("left %q", got)
			}
			s.must("import-v1", "--from", from, "--queue", "mail", stopped)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			from, _ := importDirs(t, map[string]string{"q/a.json": "1", "q/b.processing": "2"})
			got := s.importCut("importing: ", "import-v1", "--from", from, "--queue", "mail", stopped)
			again := "holdfast import-v1 --from " + from + " --queue mail " + stopped + " --dir " + s.dir
			if got.code != exitIO || !strings.HasSuffix(got.err, "stopped: 0 of 2 brought now; the import is open: nothing of it can be claimed yet, and the same command goes on; run: "+again+"\n") {
				t.Fatalf("cut: %+v", got)
			}
			for _, args := range [][]string{{"enqueue", "mail", "1"}, {"pause", "mail"}, {"clear", "mail"}} {
				got := s.run(args...)
				if got.code != exitRefused || !strings.HasSuffix(got.err, "; that is the import of a v1 directory; run: holdfast status mail --dir "+s.dir+"\n") ||
					!strings.Contains(got.err, "run it again until it closes, or abandon it") {
					t.Errorf("%q: %+v", args, got)
				}
				s.refused(exitRefused, "importing", args...)
			}
			s.must("status", "mail")
			other := filepath.Join(t.TempDir(), "other")
			(&session{t: t, dir: other}).must("init")
			elsewhere := (&session{t: t, dir: other}).refused(exitRefused, "other_import", "import-v1", "--from", from, "--queue", "mail", stopped)
			if l := decode[errorLine](t, elsewhere.err); !strings.HasPrefix(l.Error, from+": ") {
				t.Errorf("elsewhere: %+v", l)
			}
			end(t, s, from)
		})
	}
}

// importCut runs an import on a terminal and interrupts it when it shows this. At
// "importing: " the last message was read: the import is open then, and none was brought.
func (s *session) importCut(at string, args ...string) answer {
	s.t.Helper()
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	var out bytes.Buffer
	errs := &cutter{at: at, cut: cut}
	a := newApp(strings.NewReader(""), &out, errs)
	a.env = func(string) string { return "" }
	a.tty = func(stream any) bool { return stream == a.stderr }
	code := a.run(ctx, append([]string{"--dir", s.dir}, args...))
	return answer{code, out.String(), errs.text.String()}
}

// A cutter keeps what is written, and cuts when it comes to a word.
type cutter struct {
	text bytes.Buffer
	at   string
	cut  func()
}

func (c *cutter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.at)) {
		c.cut()
	}
	return c.text.Write(p)
}

// What stops an open import and is nobody's fault leads back to the same command; a route
// that does not work here to the other.
func TestImportNext(t *testing.T) {
	a := newApp(strings.NewReader(""), io.Discard, io.Discard)
	a.dir, a.command = "/s", "holdfast import-v1"
	c := &importCall{from: "/q", failed: "/f", queue: "mail", fenced: true, claimBy: "rename", locks: []string{"l"}}
	const same = "holdfast import-v1 --from /q --failed /f --queue mail " + stopped
	for _, try := range []struct {
		err       error
		run, text string
	}{
		{stoppedImport(migrate.Report{Token: "t"}, queue.ErrFull), same + " --remove-lock l --dir /s", "the store is full; the import is open: make room, and the same command goes on"},
		{&v1.Error{File: "/q", What: v1.ErrUncertain}, same + " --remove-lock l --dir /s", "call again"},
		{&v1.LinkError{Route: v1.RenameNoReplace, Errno: syscall.EINVAL}, same + " --claim-by link --remove-lock l --dir /s", "helper-unavailable"},
		{&migrate.MarkerError{What: migrate.ErrNotClosed, Queue: "other"}, "holdfast import-v1 --from /q --queue other " + stopped + " --dir /s", "not closed"},
		{&v1.Error{File: "x", What: v1.ErrPathMismatch}, "ls -la /q", "x: path-mismatch"},
	} {
		err := a.aboutImport(c, try.err)
		if got := a.next(kindOf(err), factsOf(err)); got != try.run || !strings.Contains(err.Error(), try.text) {
			t.Errorf("%v: run %q, want %q", err, got, try.run)
		}
	}
}

// Progress is for terminals only.
func TestImportProgress(t *testing.T) {
	for _, try := range []struct {
		tty  bool
		json bool
		want bool
	}{{true, false, true}, {false, false, false}, {true, true, false}} {
		s := newStore(t)
		from, _ := importDirs(t, map[string]string{"q/a.json": "1", "q/b.json": "2"})
		args := []string{"import-v1", "--from", from, "--queue", "mail", stopped}
		if try.json {
			args = append(args, "--json")
		}
		s.tty = try.tty
		got := s.run(args...)
		s.tty = false
		if got.code != exitDone || strings.Contains(got.err, "\rimporting: 2 of 2") != try.want || (got.err == "") == try.want {
			t.Errorf("%+v: %+v", try, got)
		}
		if try.want && !strings.HasSuffix(got.err, "\r\x1b[K") {
			t.Errorf("the line stays: %q", got.err)
		}
	}
}
