//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/fsguard"
	holdfast "example.com/holdfast/v2"
)

// sickbed is a machine on a simulated disk with the one directory /home, and an app that
// asks about it.
func sickbed(t *testing.T, set func(*crashtest.Disk)) (m doctor.Machine, a *app, out, errs *bytes.Buffer) {
	t.Helper()
	disk := crashtest.NewDisk()
	p := disk.Process()
	root, err := p.OpenRoot("/")
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Mkdir("home"); err != nil {
		t.Fatal(err)
	}
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	disk.SetSpace(fsguard.Space{Type: "ext4", Free: 3 << 30})
	set(disk)
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	a = newApp(strings.NewReader(""), out, errs)
	a.dir, a.command, a.started = "/home", "holdfast doctor", true
	a.engine.look = func(context.Context, string, *holdfast.Options) (store, error) { return nil, holdfast.ErrNoStore }
	m = doctor.Machine{
		FS: p, UID: uint32(os.Geteuid()), Floor: storeFloor,
		Resolve: func(path string) (string, error) { return path, nil },
		Mounts:  func() ([]byte, error) { return []byte("1 1 8:1 / / rw - ext4 /dev/sda1 rw\n"), nil },
		Boot:    func() doctor.Boot { return doctor.Boot{ID: "b", Clock: true} },
		Trial:   func(context.Context, string) error { return nil },
		After:   func(time.Duration) <-chan time.Time { return nil },
	}
	return m, a, out, errs
}

// ask examines, reports as a run would, and gives the exit code.
func ask(t *testing.T, m doctor.Machine, a *app) int {
	t.Helper()
	if err := a.examineBy(t.Context(), m); err != nil {
		a.report(err)
	}
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	return a.worst
}

// The exit code and the next command follow the verdict.
func TestDoctorsExit(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*crashtest.Disk)
		alter func(*doctor.Machine)
		exit  int
		last  string // line of the report
		run   string
	}{
		"fit":           {nil, nil, exitDone, "fit for v2: yes", ""},
		"with warnings": {func(d *crashtest.Disk) { d.SetSizeLies(true) }, nil, exitDone, "fit for v2: with warnings", ""},
		"read-only":     {func(d *crashtest.Disk) { d.SetReadOnly(true) }, nil, exitOperator, "fit for v2: no", "grep -F ' / ' /proc/self/mounts"},
		"full":          {func(d *crashtest.Disk) { d.SetFree(1) }, nil, exitOperator, "fit for v2: no", "df /home"},
		"full and read-only": {func(d *crashtest.Disk) { d.SetFree(1) }, func(m *doctor.Machine) {
			m.Mounts = func() ([]byte, error) { return []byte("1 1 8:1 / /home ro - ext4 /dev/sda1 rw\n"), nil }
		}, exitOperator, "fit for v2: no", "grep -F ' /home ' /proc/self/mounts"},
		"network": {func(d *crashtest.Disk) { d.SetSpace(fsguard.Space{Type: "nfs", Network: true}) }, nil, exitOperator, "fit for v2: no", "df /home"},
		"not permitted": {nil, func(m *doctor.Machine) {
			m.FS = crashtest.Wrap(m.FS, crashtest.FailMatching(func(op fsguard.Op, _ string) bool { return op == fsguard.OpMkdir }, syscall.EACCES, 0))
		}, exitOperator, "fit for v2: no", "ls -ld /home"},
		"somebody else's": {nil, func(m *doctor.Machine) { m.UID++ }, exitOperator, "fit for v2: no", "ls -ld /home"},
	} {
		t.Run(name, func(t *testing.T) {
			set := c.set
			if set == nil {
				set = func(*crashtest.Disk) {}
			}
			m, a, out, errs := sickbed(t, set)
			if c.alter != nil {
				c.alter(&m)
			}
			got := ask(t, m, a)
			all := lines(out.String())
			if got != c.exit || all[len(all)-1] != c.last || !strings.HasSuffix(strings.TrimSuffix(errs.String(), "\n"), c.run) || (errs.Len() == 0) != (c.run == "") {
				t.Errorf("exit %d, %q, %q; want %d, %q, %q", got, all[len(all)-1], errs, c.exit, c.last, c.run)
			}
		})
	}
}

// An interrupt is told as one, and nothing is left.
func TestDoctorInterrupted(t *testing.T) {
	m, a, out, errs := sickbed(t, func(*crashtest.Disk) {})
	ctx, cancel := context.WithCancel(t.Context())
	m.Boot = func() doctor.Boot { cancel(); return doctor.Boot{} }
	a.report(a.examineBy(ctx, m))
	if a.worst != exitIO || out.Len() != 0 || errs.String() != "holdfast: /home: stopped; the scratch directory is removed\n" {
		t.Errorf("exit %d, %q, %q", a.worst, out, errs)
	}
}

// Under Termux the call that older Androids kill at is made only when asked for.
func TestDoctorUnderTermux(t *testing.T) {
	s := &session{t: t, dir: t.TempDir(), env: map[string]string{"TERMUX_VERSION": "0.118"}}
	outcome := func(args ...string) doctor.Check {
		c, _ := decode[examined](t, s.must(append([]string{"doctor", "--json"}, args...)...)).Check("rename_no_replace")
		return c
	}
	if c := outcome(); c.Outcome != doctor.NotTried || c.Weight != doctor.Fit || !strings.Contains(c.Seen, "--try rename_no_replace") {
		t.Errorf("%+v", c)
	}
	if c := outcome("--try", "rename_no_replace"); c.Outcome == doctor.NotTried {
		t.Errorf("asked for: %+v", c)
	}
	s.env = nil
	if c := outcome(); c.Outcome == doctor.NotTried {
		t.Errorf("elsewhere: %+v", c)
	}
	if c := outcome("--skip", "rename_no_replace"); c.Outcome != doctor.NotTried || c.Seen != "left out, as was asked" {
		t.Errorf("left out: %+v", c)
	}
}

func TestDoctorsFlags(t *testing.T) {
	s := &session{t: t, dir: t.TempDir()}
	for _, try := range []struct{ args, want string }{
		{"--skip nosuch", `--skip "nosuch": there is no such check; there are filesystem, mount_options, `},
		{"--skip scratch_directory", "there is no such check"},
		{"--try nosuch", `--try "nosuch"`},
		{"--kill-test 0", "from 1 to 10000 rounds"},
		{"--kill-test 10001", "from 1 to 10000 rounds"},
		{"--kill-test x", "invalid argument"},
		{"--kill-test 1 --power-test check", "not both"},
		{"--kill-test 1 --skip watch", "for the checks only"},
		{"--power-test clean", "want prepare or check"},
		{"--power-test check --seed 1", "--seed is for"},
		{"--seed 1", "--seed is for"},
		{"--journal j", "--journal is for --power-test"},
		{"--acknowledged 1", "--acknowledged is for --power-test check"},
		{"--power-test prepare --acknowledged 1", "--acknowledged is for --power-test check"},
		{"--power-test check --acknowledged 1 --journal j", "not both"},
		{"--power-test check --acknowledged 1000001", "at most 1000000 steps"},
		{"--power-test prepare --steps 1000001", "at most 1000000 steps"},
		{"--power-test check --steps 1", "--steps is for"},
		{"here", "give the directory with --dir here"},
		{"--try hard_link --skip hard_link", "--try hard_link and --skip hard_link: give one of them"},
		{"--kill-test 1 --verbose", "--verbose is for the checks only"},
	} {
		args := append([]string{"doctor"}, strings.Fields(try.args)...)
		got := s.refused(exitUsage, "usage", args...)
		if l := decode[errorLine](t, got.err); !strings.Contains(l.Error, try.want) || l.Run != "holdfast doctor --help" {
			t.Errorf("%s: %+v, want %q", try.args, l, try.want)
		}
	}
	if names, err := os.ReadDir(s.dir); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
}

// The codes of the doctor's errors are an interface too.
func TestDoctorsCodesArePinned(t *testing.T) {
	for _, want := range []struct {
		err  error
		code string
		exit int
	}{
		{errUnfit, "unfit", 3},
		{errKillTest, "kill_test", 3},
		{errPowerTest, "power_test", 3},
		{errNoPowerTest, "no_power_test", 1},
		{errPowerThere, "power_test_exists", 5},
		{errNoPowerCut, "no_power_cut", 1},
		{errPowerRuns, "power_test_runs", 5},
		{errPowerMemory, "power_test_in_memory", 5},
		{noDirectoryError("x"), "no_directory", 5},
		{errJournal, "journal", 5},
	} {
		if k := kindOf(fmt.Errorf("around: %w", want.err)); k.code != want.code || k.exit != want.exit {
			t.Errorf("%v: got %s, %d; want %s, %d", want.err, k.code, k.exit, want.code, want.exit)
		}
	}
}

// The help tells every exit code, and what the verdict is about.
func TestDoctorsHelp(t *testing.T) {
	help := strings.Join(strings.Fields((&session{t: t}).must("doctor", "--help")), " ")
	for _, want := range []string{
		"The verdict is about the place", " 0 fit, or with warnings; ", "prepare ended, by Ctrl-C too", " 1 nothing was tested: NO POWER CUT", " 2 usage",
		" 3 not fit; ", " 4 the looking failed (I/O), or was ended by Ctrl-C: of the checks, of the kill test", " 5 refused: ",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in %s", want, help)
		}
	}
}
