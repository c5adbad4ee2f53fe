//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// The journal serves where it is on a filesystem of its own, which a reboot leaves, and
// which lies over no other.
func TestPowerTestsJournal(t *testing.T) {
	s := &session{t: t, dir: t.TempDir()}
	journal := filepath.Join(t.TempDir(), "journal")
	on := func(kind string) fsguard.FS {
		return posing{FS: fsguard.OS(), kinds: map[string]string{filepath.Dir(journal): kind}}
	}
	f := doctorFlags{steps: 7, journal: journal}
	for kind, says := range map[string]string{
		"":         "is on the same filesystem as the store",
		"tmpfs":    "which no reboot leaves",
		"ramfs":    "which no reboot leaves",
		"fuse":     "which lies over another filesystem",
		"macfuse":  "which lies over another filesystem",
		"sdcardfs": "which lies over another filesystem",
		"overlay":  "which lies over another filesystem",
	} {
		l := s.refusedOn(on(kind), f, exitRefused, "journal")
		if !strings.Contains(l.Error, says) || !strings.Contains(l.Error, "ssh, adb") || l.Run != "df "+filepath.Dir(journal)+" "+s.dir {
			t.Errorf("%s: %+v, want %q", kind, l, says)
		}
	}
	got := s.prepareOn(t.Context(), on("vfat"), f, false)
	if got.code != exitDone || !strings.Contains(got.err, "check --dir "+s.dir+" --journal "+journal+"\n") {
		t.Fatalf("%+v", got)
	}
	if r := s.checked(uncut(), "--journal", journal); *r.Steps != 7 || *r.Acknowledged != 7 {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if all := lines(string(text)); len(all) != 10 || all[1] != fmt.Sprintf("dir %q", s.powerDir()) || all[2] != "acknowledged 0" || all[9] != "acknowledged 7" {
		t.Errorf("%q", all)
	}
	again := &session{t: t, dir: t.TempDir()}
	if l := again.refusedOn(on("vfat"), f, exitRefused, "journal"); !strings.Contains(l.Error, "is there already") || l.Run != "ls -l "+journal {
		t.Errorf("%+v", l)
	}
}

// A journal that is none, or that of another test, is refused, with what to look at.
func TestJournalsThatCannotServe(t *testing.T) {
	s := prepared(t, 3, 4)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		says string
		run  string
	}{
		"no journal":      {"acknowledged 1\n", "is no journal of a power test", "ls -l "},
		"of another test": {powerOrigin{4, anotherBoot}.String() + "\ndir \"/x\"\nacknowledged 0\n", "that of another power test", "holdfast doctor --power-test check --dir " + s.dir},
	} {
		path := filepath.Join(dir, "journal")
		spoilFile(t, path, c.text)
		if c.run == "ls -l " {
			c.run += path
		}
		if l := decode[errorLine](t, s.refused(exitRefused, "journal", "doctor", "--power-test", "check", "--journal", path).err); !strings.Contains(l.Error, c.says) || l.Run != c.run {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if l := decode[errorLine](t, s.refused(exitIO, "io", "doctor", "--power-test", "check", "--journal", filepath.Join(dir, "no", "j")).err); !strings.Contains(l.Error, "no such file") || l.Run != "ls -ld "+dir {
		t.Errorf("%+v", l)
	}
	empty := &session{t: t, dir: t.TempDir()}
	for _, l := range []errorLine{
		decode[errorLine](t, s.refused(exitRefused, "journal", "doctor", "--power-test", "check", "--journal", dir).err),
		empty.refusedOn(onDisk, doctorFlags{journal: dir}, exitRefused, "journal"),
	} {
		if !strings.Contains(l.Error, dir+" is a directory: ") || l.Run != "ls -ld "+dir {
			t.Errorf("%+v", l)
		}
	}
}

// A journal is read up to where it is torn.
func TestTornJournals(t *testing.T) {
	s := prepared(t, 3, 4)
	origin := powerOrigin{3, anotherBoot}.String() + "\n"
	dir := fmt.Sprintf("dir %q\n", s.powerDir())
	path := filepath.Join(t.TempDir(), "journal")
	const whole = "acknowledged 0\nacknowledged 1\nacknowledged 2\n"
	for _, c := range []struct{ text, verdict, want string }{
		{dir + whole, powerPass, "2"},
		{dir + whole + "acknowledged 3", powerPass, "2"},
		{dir + whole + "acknow\nacknowledged 9\n", powerPass, "2"},
		{dir + whole + "\x00\x00\x00\n", powerPass, "2"},
		{dir + whole + "acknowledged 9\n", powerPass, "2"}, // no number follows but the next
		{dir + "acknowledged 1\n", powerConsistent, "nobody"},
		{dir, powerConsistent, "nobody"},
		{"", powerConsistent, "nobody"},
		{whole, powerConsistent, "nobody"}, // every line is where it belongs, or it is no evidence
		{dir + whole + "acknowledged 3\nacknowledged 4\nacknowledged 5\n", powerFail, "5"},
	} {
		spoilFile(t, path, origin+c.text)
		r := s.checked(c.verdict, "--journal", path)
		got := "nobody"
		if r.Acknowledged != nil {
			got = fmt.Sprint(*r.Acknowledged)
		}
		if got != c.want {
			t.Errorf("%q: acknowledged %s, want %s", c.text, got, c.want)
		}
	}
}

func TestPowerOrigins(t *testing.T) {
	for _, o := range []powerOrigin{{1, ""}, {1<<64 - 1, "5f1c"}} {
		if got, ok := parseOrigin(o.String()); !ok || got != o {
			t.Errorf("%v: %v, %v", o, got, ok)
		}
	}
	for _, text := range []string{"", "holdfast-power-test-2 seed 1 boot x", "holdfast-power-test-1 seed -1 boot x", "holdfast-power-test-1 seed 1 boot", "holdfast-power-test-1 seed 1 boot x y"} {
		if got, ok := parseOrigin(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}
