//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/doctor/steps"
	"example.com/holdfast/internal/fsguard"
)

// A posing filesystem is the real one, and says of each directory what a test wants.
type posing struct {
	fsguard.FS
	kinds map[string]string // of a filesystem, by the path of the directory; else ext4
}

func (p posing) OpenRoot(path string) (fsguard.Dir, error) {
	d, err := p.FS.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return posingDir{d, p, path}, nil
}

func (p posing) Stat(path string) (fsguard.Info, error) {
	info, err := p.FS.Stat(path)
	return p.pose(path, info), err
}

// pose gives each kind of filesystem a device of its own.
func (p posing) pose(path string, info fsguard.Info) fsguard.Info {
	info.Dev = uint64(len(p.kinds[path]))
	return info
}

type posingDir struct {
	fsguard.Dir
	p    posing
	path string
}

func (d posingDir) Info() (fsguard.Info, error) {
	info, err := d.Dir.Info()
	return d.p.pose(d.path, info), err
}

func (d posingDir) Space() (fsguard.Space, error) {
	space, err := d.Dir.Space()
	space.Type = pick(d.p.kinds[d.path], "ext4")
	return space, err
}

// onDisk is where tests prepare: theirs may be in memory.
var onDisk = posing{FS: fsguard.OS()}

// prepareOn prepares on a filesystem of the test's.
func (s *session) prepareOn(ctx context.Context, fsys fsguard.FS, f doctorFlags, asJSON bool) answer {
	s.t.Helper()
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	a.dir, a.command, a.started, a.json = s.dir, "holdfast doctor", true, asJSON
	if s.engine != nil {
		a.engine = *s.engine
	}
	if err := a.powerPrepare(ctx, fsys, f); err != nil {
		a.report(err)
	}
	if err := a.flush(); err != nil {
		s.t.Fatal(err)
	}
	return answer{a.worst, out.String(), errs.String()}
}

// refusedOn prepares and wants to be refused, with nothing said and nothing left.
func (s *session) refusedOn(fsys fsguard.FS, f doctorFlags, exit int, code string) errorLine {
	s.t.Helper()
	got := s.prepareOn(s.t.Context(), fsys, f, true)
	l := decode[errorLine](s.t, got.err)
	if got.code != exit || l.Code != code || got.out != "" {
		s.t.Errorf("%+v, want exit %d, %s", got, exit, code)
	}
	if _, err := os.Lstat(s.powerDir()); !errors.Is(err, os.ErrNotExist) {
		s.t.Errorf("%s: left behind: %v", code, err)
	}
	return l
}

// anotherBoot is the id of a boot before this one.
const anotherBoot = "00000000-0000-0000-0000-000000000000"

// prepared is a directory with a power test of n steps in it, prepared in an earlier boot.
func prepared(t *testing.T, seed uint64, n int) *session {
	t.Helper()
	s := &session{t: t, dir: t.TempDir()}
	got := s.prepareOn(t.Context(), onDisk, doctorFlags{seed: seed, steps: uint64(n)}, false)
	all := lines(got.out)
	if got.code != exitDone || len(all) != n+3 || all[2] != "acknowledged 0" || all[n+2] != fmt.Sprint("acknowledged ", n) {
		t.Fatalf("%+v", got)
	}
	if want := fmt.Sprintf("a power test in %s, seed %d: ", s.powerDir(), seed); !strings.HasPrefix(all[0], want) {
		t.Errorf("it begins with %q", all[0])
	}
	check := "holdfast doctor --power-test check --dir " + s.dir + " --acknowledged N, the last number that you read"
	if all[1] != "after the reboot: "+check || got.err != fmt.Sprintf("holdfast: stopped after step %d, with the power on; the store stays as it is; after a reboot: %s\n", n, check) {
		t.Errorf("what is to be done next: %q, %q", all[1], got.err)
	}
	s.setOrigin(powerOrigin{seed, anotherBoot})
	return s
}

func (s *session) powerDir() string { return filepath.Join(s.dir, doctor.PowerName) }

// store is a session on the store of the power test.
func (s *session) powerStore() *session {
	return &session{t: s.t, dir: filepath.Join(s.powerDir(), powerStore)}
}

// uncut is the verdict where nothing is wrong and the power stayed.
func uncut() string {
	if doctor.SystemBoot().ID == "" {
		return powerPass
	}
	return powerNoCut
}

// checked checks and wants a verdict and its exit code.
func (s *session) checked(verdict string, args ...string) powerResult {
	s.t.Helper()
	got := s.run(append([]string{"doctor", "--power-test", "check", "--json"}, args...)...)
	want := map[string]struct {
		exit      int
		code, run string
	}{
		powerPass: {}, powerConsistent: {},
		powerNoCut: {exitNothing, "no_power_cut", "rm -r " + s.powerDir()},
		powerFail:  {exitOperator, "power_test", "holdfast doctor --dir " + s.dir},
	}[verdict]
	if got.out == "" {
		s.t.Fatalf("%q: %+v", args, got)
	}
	r := decode[powerResult](s.t, got.out)
	if got.code != want.exit || r.Verdict != verdict || r.OK != (want.exit == exitDone) || (len(r.Reasons) > 0) != (verdict == powerFail) {
		s.t.Fatalf("%q: exit %d, %+v", args, got.code, r)
	}
	if want.exit != exitDone {
		if l := decode[errorLine](s.t, got.err); l.Code != want.code || l.Run != want.run || r.Next != want.run || len(r.Reasons) > 0 && !strings.Contains(l.Error, r.Reasons[0]) {
			s.t.Errorf("%q: %+v", args, l)
		}
	}
	return r
}

// narrow wants lines of at most 60 columns, but where a path needs more.
func narrow(t *testing.T, text string) {
	t.Helper()
	for _, l := range lines(text) {
		if n := utf8.RuneCountInString(l); n > screenWidth && !strings.HasPrefix(l, "rm -r /") || n > reportWidth && !strings.Contains(l, "/") {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

// setOrigin says that the test was prepared otherwise than it was.
func (s *session) setOrigin(o powerOrigin) {
	s.t.Helper()
	s.powerStore().must("cursor", steps.Queue, "--set", o.String())
}

func notInMemory(t *testing.T) {
	t.Helper()
	d, err := fsguard.OS().OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if space, err := d.Space(); err != nil || inMemory(space) {
		testrun.Skip(t, fmt.Sprintf("the tests' files are on %s, where no power test is prepared: %v", space.Type, err))
	}
}
