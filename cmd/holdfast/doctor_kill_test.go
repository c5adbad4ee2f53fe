//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/doctor/steps"
	"example.com/holdfast/queue"
)

func killRounds() string {
	switch {
	case testrun.RaceDetector() || testing.Short():
		return "2"
	case testrun.Thorough():
		return "8"
	}
	return "3"
}

func TestKillTest(t *testing.T) {
	t.Setenv(asCommand, "1") // its workers are this test binary
	s := &session{t: t, dir: t.TempDir()}
	line := s.must("doctor", "--kill-test", killRounds(), "--json")
	r := decode[killResult](t, line)
	if !r.OK || len(r.Failures) != 0 || r.Dir != "" || r.Acknowledged == 0 || r.CutOff < r.CutOffDone || !strings.Contains(line, `"failures":[],"dir":""}`) {
		t.Errorf("%s", line)
	}
	if names, err := os.ReadDir(s.dir); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
	text := s.must("doctor", "--kill-test", "1", "--seed", "7")
	all := lines(text)
	if len(all) != 5 || all[0] != "killing a worker in 1 round, seed 7" || all[4] != "PASS" || !strings.HasSuffix(all[2], " had not (allowed)") || strings.Count(text, "seed") != 1 || !strings.HasPrefix(all[1], "1 round, ") {
		t.Errorf("%q", all)
	}
}

// A lossyStore does not show the first message of a queue.
type lossyStore struct{ store }

func (l lossyStore) List(ctx context.Context, q string, o queue.ListOptions) (queue.Page, error) {
	page, err := l.store.List(ctx, q, o)
	if len(page.Entries) > 0 && o.After == "" {
		page.Entries = page.Entries[1:]
	}
	return page, err
}

// A store that loses a message is found out: the test fails, says what to send, and keeps
// the store.
func TestKillTestNoticesALoss(t *testing.T) {
	t.Setenv(asCommand, "1")
	e := v2Engine()
	open := e.open
	e.open = func(ctx context.Context, dir string, o *holdfast.Options) (store, error) {
		s, err := open(ctx, dir, o)
		return lossyStore{s}, err
	}
	s := &session{t: t, dir: t.TempDir(), engine: &e}
	got := s.refused(exitOperator, "kill_test", "doctor", "--kill-test", "20", "--seed", "3")
	r := decode[killResult](t, got.out)
	if r.OK || len(r.Failures) != 1 || !strings.Contains(r.Failures[0], "the store holds neither") || r.Seed != 3 {
		t.Errorf("%+v", r)
	}
	l := decode[errorLine](t, got.err)
	if l.Run != "holdfast version --json" || !strings.Contains(l.Error, "report it with this output") || !strings.Contains(l.Error, r.Dir) {
		t.Errorf("%+v", l)
	}
	if text := s.run("doctor", "--kill-test", "20", "--seed", "3").out; !strings.HasSuffix(text, "\nFAIL\n") {
		t.Errorf("%s", text)
	}
	kept := &session{t: t, dir: r.Dir}
	kept.must("verify") // it is there, and sound: only the looking was spoilt
}

func TestKillTestsDeaths(t *testing.T) {
	for n, want := range []string{"no death inside a commit: that is chance; more rounds meet one", "1 death inside a commit, recovered", "2 deaths inside a commit, each recovered"} {
		if got := deathsText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// workedStore makes a store with some steps of a script in it.
func workedStore(t *testing.T, seed uint64, n int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	e := v2Engine()
	err := use(t.Context(), e.create, dir, &holdfast.Options{}, func(s store) error {
		state := steps.New(seed)
		for range n {
			if err := state.Do(t.Context(), s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The judgement of one round: the journal is what the parent heard, the store what the
// worker left.
func TestKillTestJudges(t *testing.T) {
	const did = 6
	for name, c := range map[string]struct {
		tried, acknowledged uint64
		failure             string
		cutOff, done        int
		spoil               func(t *testing.T, dir string)
	}{
		"all was answered":                {6, 6, "", 0, 0, nil},
		"the call that was cut happened":  {6, 5, "", 1, 1, nil},
		"the call that was cut did not":   {7, 6, "", 1, 0, nil},
		"the journal is ahead":            {7, 7, "step 7 was acknowledged, step 7 was begun, and the store holds neither", 0, 0, nil},
		"far ahead":                       {9, 8, "step 8 was acknowledged", 1, 0, nil},
		"the store is ahead":              {5, 4, "step 4 was acknowledged", 1, 0, nil},
		"the store did what nobody began": {5, 5, "compared with step 5: the counters are", 0, 0, nil},
		"the store cannot be read": {6, 6, "after step 6 the store cannot be read: ", 0, 0, func(t *testing.T, dir string) {
			spoilFile(t, filepath.Join(dir, ".fs-safe-queue-v2", "state.json"), "{}")
		}},
		"there is a fault": {6, 6, "after step 6 verify found a fault: stray.json: ", 0, 0, func(t *testing.T, dir string) {
			spoilFile(t, filepath.Join(dir, ".fs-safe-queue-v2", "stray.json"), "{}")
		}},
		"the store is gone": {6, 6, "cannot be read: ", 0, 0, func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workedStore(t, 11, did)
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			k := newKillTest(newApp(strings.NewReader(""), &strings.Builder{}, &strings.Builder{}), dir, 11)
			if err := k.judge(t.Context(), c.tried, c.acknowledged); err != nil {
				t.Fatal(err)
			}
			r := k.result
			if (len(r.Failures) > 0) != (c.failure != "") || len(r.Failures) > 0 && !strings.Contains(r.Failures[0], c.failure) {
				t.Errorf("the failures are %q, want %q", r.Failures, c.failure)
			}
			if r.CutOff != c.cutOff || r.CutOffDone != c.done || r.Acknowledged != c.acknowledged {
				t.Errorf("%+v", r)
			}
		})
	}
}

func spoilFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What keeps the doctor from looking is no failure of the store.
func TestKillTestThatCannotLook(t *testing.T) {
	a := newApp(strings.NewReader(""), &strings.Builder{}, &strings.Builder{})
	a.engine.open = func(context.Context, string, *holdfast.Options) (store, error) { return nil, syscall.ENOSPC }
	k := newKillTest(a, t.TempDir(), 1)
	if err := k.judge(t.Context(), 0, 0); !errors.Is(err, syscall.ENOSPC) || len(k.result.Failures) != 0 {
		t.Errorf("%v, %q", err, k.result.Failures)
	}
}

// A record that a dead worker left in the lock is counted and recovered.
func TestKillTestCountsDeathsInACommit(t *testing.T) {
	dir := workedStore(t, 1, 3)
	leaveRecord(t, dir)
	k := newKillTest(newApp(strings.NewReader(""), &strings.Builder{}, &strings.Builder{}), dir, 1)
	for range 2 { // the second time there is none
		if err := k.judge(t.Context(), 3, 3); err != nil {
			t.Fatal(err)
		}
	}
	if k.result.DeathsInCommit != 1 || len(k.result.Failures) != 0 {
		t.Errorf("%+v", k.result)
	}
}

// leaveRecord does what an owner does that dies inside a commit.
func leaveRecord(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, ".fs-safe-queue-v2", ".state-transfer.lock"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("{half a record")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// What a worker says that is no step is a failure, in its own words.
func TestKillTestHearsTheWorker(t *testing.T) {
	t.Setenv(asCommand, "1")
	k := newKillTest(newApp(strings.NewReader(""), &strings.Builder{}, &strings.Builder{}), t.TempDir(), 1)
	if err := k.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := k.result.Failures; len(f) != 1 || !strings.HasPrefix(f[0], "the worker said: holdfast: ") || !strings.Contains(f[0], "run: holdfast init") {
		t.Errorf("%q", f)
	}
}

// A worker that never works is no success.
func TestKillTestWithoutWork(t *testing.T) {
	t.Setenv(asCommand, mute)
	s := &session{t: t, dir: t.TempDir()}
	got := s.run("doctor", "--kill-test", "3")
	if got.code != exitOperator || !strings.Contains(got.out, "failure: the worker ended by itself, with exit code 1, after 0 calls\n") || !strings.HasSuffix(got.out, "FAIL\n") {
		t.Errorf("%+v", got)
	}
}

// An interrupt ends the worker, and the store goes.
func TestKillTestInterrupted(t *testing.T) {
	t.Setenv(asCommand, "1")
	ctx, cancel := context.WithCancel(t.Context())
	e := v2Engine()
	verify := e.verify
	e.verify = func(c context.Context, dir string, o *holdfast.Options, v holdfast.VerifyOptions) (holdfast.Report, error) {
		defer cancel() // in the middle of the first round's judgement
		return verify(c, dir, o, v)
	}
	s := &session{t: t, dir: t.TempDir(), engine: &e}
	got := s.feedFrom(ctx, strings.NewReader(""), "doctor", "--kill-test", "50")
	if got.code != exitIO || !strings.HasSuffix(got.err, "stopped after 0 rounds; nothing was wrong, and the store is removed\n") {
		t.Errorf("%+v", got)
	}
	if names, err := os.ReadDir(s.dir); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
}

// Where no store can be made there is no test either, and nothing is left.
func TestKillTestWithoutAStore(t *testing.T) {
	e := v2Engine()
	e.create = func(context.Context, string, *holdfast.Options) (store, error) {
		return nil, holdfast.ErrFilesystem
	}
	s := &session{t: t, dir: t.TempDir(), engine: &e}
	s.refused(exitRefused, "unsupported_filesystem", "doctor", "--kill-test", "1")
	if names, err := os.ReadDir(s.dir); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
}
