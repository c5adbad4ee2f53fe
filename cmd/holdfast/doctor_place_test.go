//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/doctor"
	holdfast "example.com/holdfast/v2"
)

// Where the directory is not there it is tried in the parent, and where that is not
// there either it is said which is missing.
func TestDoctorWithoutTheDirectory(t *testing.T) {
	parent := t.TempDir()
	s := &session{t: t, dir: filepath.Join(parent, "store")}
	if x := decode[examined](t, s.must("doctor", "--json")); x.Exists || x.Place != parent || x.Dir != s.dir || x.Store != nil {
		t.Errorf("%+v", x)
	}
	if names, err := os.ReadDir(parent); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
	deep := &session{t: t, dir: filepath.Join(parent, "a", "b")}
	if got := deep.run("doctor"); got.code != exitIO || !strings.HasSuffix(got.err, "; run: mkdir -p "+filepath.Join(parent, "a")+"\n") {
		t.Errorf("%+v", got)
	}
	for _, s := range []*session{s, deep} { // a test makes none
		for _, args := range [][]string{{"doctor", "--kill-test", "1"}, {"doctor", "--power-test", "prepare"}} {
			if l := decode[errorLine](t, s.refused(exitRefused, "no_directory", args...).err); l.Run != "mkdir -m 700 -p "+s.dir {
				t.Errorf("%q: %+v", args, l)
			}
		}
	}
	if names, err := os.ReadDir(parent); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
}

// A file in the directory's place is named, by each of the doctor's tests.
func TestDoctorOnAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	spoilFile(t, file, "")
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		s := &session{t: t, dir: dir}
		for _, args := range [][]string{{"doctor"}, {"doctor", "--kill-test", "1"}, {"doctor", "--power-test", "prepare"}, {"doctor", "--power-test", "check"}} {
			if l := decode[errorLine](t, s.refused(exitRefused, "no_directory", args...).err); l.Error != file+" is a file: give a directory" || l.Run != "ls -ld "+file {
				t.Errorf("%s: %q: %+v", dir, args, l)
			}
		}
	}
}

// The next command looks at what is in the way.
func TestDoctorsNextOfErrors(t *testing.T) {
	a := newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	there := t.TempDir()
	a.dir = filepath.Join(there, "not", "there")
	for _, c := range []struct {
		err  error
		want string // the beginning
	}{
		{syscall.ENOSPC, "df " + there},
		{syscall.EDQUOT, "df " + there},
		{syscall.EACCES, "ls -ld " + there},
		{syscall.EPERM, "ls -ld " + there},
		{syscall.EIO, "holdfast doctor --dir " + a.dir},
		{holdfast.ErrFilesystem, "df " + a.dir},
		{about(syscall.ENOSPC, facts{run: "its own"}), "its own"},
	} {
		err := a.aboutPlace(fmt.Errorf("mkdir: %w", c.err))
		if got := a.next(kindOf(err), factsOf(err)); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	err := a.aboutPlace(syscall.EROFS)
	if got := a.next(kindOf(err), factsOf(err)); strings.HasPrefix(got, "df ") || got == "" {
		t.Errorf("read-only: %q", got)
	}
	if got := mountLine(nil); got != "mount" {
		t.Errorf("%q", got)
	}
	if got := mountLine(&doctor.Mount{Point: "/a b"}); got != `grep -F ' /a\040b ' /proc/self/mounts` {
		t.Errorf("%q", got)
	}
	if a.aboutPlace(nil) != nil {
		t.Error("nil became an error")
	}
}
