//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/doctor/steps"
)

func TestPowerTest(t *testing.T) {
	const n = 25
	s := prepared(t, 5, n)
	for _, acknowledged := range []int{n, n - 1, 0} {
		r := s.checked(powerPass, "--acknowledged", fmt.Sprint(acknowledged))
		if *r.Steps != n || *r.Acknowledged != uint64(acknowledged) || *r.Seed != 5 || r.Recovered || len(r.Proven) != 2 || r.Next != "rm -r "+s.powerDir() {
			t.Errorf("%+v", r)
		}
	}
	if r := s.checked(powerConsistent); *r.Steps != n || r.Acknowledged != nil || len(r.Proven) != 1 || !strings.HasPrefix(r.NotProven[0], "that nothing is lost: ") {
		t.Errorf("%+v", r)
	}
	if r := s.checked(powerFail, "--acknowledged", fmt.Sprint(n+1)); r.Reasons[0] != "step 26 was acknowledged, and the store holds 25: what came after is lost" {
		t.Errorf("%+v", r)
	}
}

// What a loss of power may leave of a store, and must not: each is a FAIL when a step was
// acknowledged.
func TestPowerTestFails(t *testing.T) {
	inStore := func(name string) func(*session) string {
		return func(s *session) string { return filepath.Join(s.powerStore().dir, ".fs-safe-queue-v2", name) }
	}
	state, format := inStore("state.json"), inStore("format.json")
	for name, c := range map[string]struct {
		spoil  func(s *session) error
		reason string
	}{
		"an older copy is back": {func(s *session) error {
			older := prepared(t, 5, 4) // the same script, four steps far
			return errors.Join(os.RemoveAll(s.powerDir()), os.CopyFS(s.powerDir(), os.DirFS(older.powerDir())), private(s.powerDir()))
		}, "step 12 was acknowledged, and the store holds 4: what came after is lost"},
		"all is gone":           {func(s *session) error { return os.RemoveAll(s.powerDir()) }, "is not there: if it is where the test was prepared, all of it is lost; else --dir is wrong"},
		"the store is gone":     {func(s *session) error { return os.RemoveAll(s.powerStore().dir) }, "the store cannot be read: "},
		"the state is gone":     {func(s *session) error { return os.Remove(state(s)) }, "the store cannot be read: "},
		"the state is zeros":    {func(s *session) error { return os.WriteFile(state(s), make([]byte, 4096), 0o600) }, "the store cannot be read: "},
		"the format is gone":    {func(s *session) error { return os.Remove(format(s)) }, "the store cannot be read: "},
		"the first step's gone": {func(s *session) error { return s.powerStore().clearCursor() }, "the store is there, and does not know of the test"},
		"a payload is gone":     {func(s *session) error { return removeAPayload(s.powerStore().dir) }, "verify found a fault: objects/"},
		"a message too many": {func(s *session) error {
			s.powerStore().must("enqueue", steps.Queue, "1")
			return nil
		}, "the store is in no state that the steps lead to: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepared(t, 5, 12)
			if err := c.spoil(s); err != nil {
				t.Fatal(err)
			}
			r := s.checked(powerFail, "--acknowledged", "12")
			if !strings.Contains(strings.Join(r.Reasons, "\n"), c.reason) {
				t.Errorf("%q, want %q", r.Reasons, c.reason)
			}
		})
	}
}

// private makes a copied store its owner's alone again.
func private(dir string) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
}

func removeAPayload(dir string) error {
	// The newest message waits: what it refers to is still needed.
	objects, err := filepath.Glob(filepath.Join(dir, ".fs-safe-queue-v2", "objects", "*", "payload.json"))
	for _, o := range objects {
		err = errors.Join(err, os.Remove(o))
	}
	return err
}

func (s *session) clearCursor() error {
	s.must("cursor", steps.Queue, "--set", "")
	return nil
}

// A record of an owner that the power took is recovered, and told.
func TestPowerTestRecovers(t *testing.T) {
	s := prepared(t, 2, 5)
	leaveRecord(t, s.powerStore().dir)
	if r := s.checked(powerPass, "--acknowledged", "5"); !r.Recovered {
		t.Errorf("%+v", r)
	}
	leaveRecord(t, s.powerStore().dir)
	if text := s.must("doctor", "--power-test", "check", "--acknowledged", "5"); !strings.Contains(text, "\nrecovered  it stood inside a commit; nothing was undone\n") {
		t.Errorf("%s", text)
	}
}

// Without what was acknowledged, what cannot be read proves nothing and is no FAIL.
func TestPowerTestRefusals(t *testing.T) {
	s := &session{t: t, dir: t.TempDir()}
	none := s.refused(exitNothing, "no_power_test", "doctor", "--power-test", "check")
	if l := decode[errorLine](t, none.err); l.Run != "holdfast doctor --power-test prepare --dir "+s.dir {
		t.Errorf("%+v", l)
	}
	s = prepared(t, 1, 1)
	twice := s.refused(exitRefused, "power_test_exists", "doctor", "--power-test", "prepare")
	if l := decode[errorLine](t, twice.err); l.Run != "holdfast doctor --power-test check --dir "+s.dir || !strings.Contains(l.Error, "rm -r "+s.powerDir()) {
		t.Errorf("%+v", l)
	}
	state := filepath.Join(s.powerStore().dir, ".fs-safe-queue-v2", "state.json")
	spoilt := func(spoil error, exit int, code, says, run string) {
		t.Helper()
		if spoil != nil {
			t.Fatal(spoil)
		}
		if l := decode[errorLine](t, s.refused(exit, code, "doctor", "--power-test", "check").err); !strings.Contains(l.Error, says) || l.Run != run {
			t.Errorf("%+v, want %q, %q", l, says, run)
		}
	}
	const ended = "the preparation ended before its first step"
	remove := "rm -r " + s.powerDir()
	spoilt(s.powerStore().clearCursor(), exitNothing, "no_power_test", ended, remove)
	spoilt(os.WriteFile(state, []byte("{}"), 0o600), exitOperator, "corrupt", "give --acknowledged N, the last number that was read; if none was: "+remove, "")
	spoilt(os.RemoveAll(s.powerStore().dir), exitNothing, "no_power_test", ended, remove)
}

// Where there is nothing, there is nothing to judge, but where somebody knows that there
// was.
func TestPowerTestIsMissing(t *testing.T) {
	s := &session{t: t, dir: t.TempDir()}
	gone := &session{t: t, dir: filepath.Join(s.dir, "gone")}
	other := filepath.Join(t.TempDir(), doctor.PowerName)
	journal := func(dir, rest string) string {
		path := filepath.Join(t.TempDir(), "journal")
		spoilFile(t, path, fmt.Sprintf("%v\ndir %q\n%s", powerOrigin{1, anotherBoot}, dir, rest))
		return path
	}
	const did, not = "acknowledged 0\n", ""
	for name, c := range map[string]struct {
		s    *session
		args []string
		exit int
		code string
		says string
	}{
		"nobody knows":                      {s, nil, exitNothing, "no_power_test", "no power test was prepared here"},
		"no step":                           {s, []string{"--acknowledged", "0"}, exitNothing, "no_power_test", "no power test was prepared here"},
		"a step":                            {s, []string{"--acknowledged", "1"}, exitOperator, "power_test", "all of it is lost; else --dir is wrong"},
		"no directory":                      {gone, nil, exitNothing, "no_power_test", "give the --dir that prepare was given"},
		"no directory, a step":              {gone, []string{"--acknowledged", "1"}, exitNothing, "no_power_test", "give the --dir that prepare was given"},
		"a journal of it":                   {s, []string{"--journal", journal(s.powerDir(), did)}, exitOperator, "power_test", "the journal says that it was: all of it is lost"},
		"a journal of it, no step":          {s, []string{"--journal", journal(s.powerDir(), not)}, exitNothing, "no_power_test", "no power test was prepared here"},
		"a journal of another":              {s, []string{"--journal", journal(other, did)}, exitRefused, "journal", "give --dir " + filepath.Dir(other)},
		"no directory, a journal of it":     {gone, []string{"--journal", journal(gone.powerDir(), did)}, exitOperator, "power_test", "is not mounted"},
		"no directory, a journal of others": {gone, []string{"--journal", journal(other, did)}, exitRefused, "journal", "give --dir " + filepath.Dir(other)},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.s.refused(c.exit, c.code, append([]string{"doctor", "--power-test", "check"}, c.args...)...)
			if !strings.Contains(got.err, c.says) {
				t.Errorf("%q, want %q", got.err, c.says)
			}
			if c.code == "no_power_test" && got.out != "" {
				t.Errorf("a verdict: %s", got.out)
			}
		})
	}
}

// What keeps the doctor from looking is told as itself, and is no FAIL of the store.
func TestPowerTestThatCannotLook(t *testing.T) {
	s := prepared(t, 1, 1)
	for _, c := range []struct {
		err  error
		code string
		exit int
	}{
		{syscall.EROFS, "io", exitIO},
		{syscall.ENOSPC, "io", exitIO},
		{os.ErrPermission, "io", exitIO},
		{holdfast.ErrUnsafe, "unsafe", exitOperator},
		{holdfast.ErrFilesystem, "unsupported_filesystem", exitRefused},
		{context.Canceled, "cancelled", exitIO},
		{syscall.EIO, "power_test", exitOperator}, // what cannot be read any more is lost
		{holdfast.ErrInterruptedInit, "power_test", exitOperator},
	} {
		e := v2Engine()
		e.open = func(context.Context, string, *holdfast.Options) (store, error) {
			return nil, fmt.Errorf("open: %w", c.err)
		}
		s.engine = &e
		s.refused(c.exit, c.code, "doctor", "--power-test", "check", "--acknowledged", "1")
	}
}
