//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A process that is killed at random leaves what it said is done.
func TestPowerTestKilled(t *testing.T) {
	notInMemory(t)
	rounds := 2
	if testrun.Thorough() && !testrun.RaceDetector() {
		rounds = 5
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range rounds {
		s := &session{t: t, dir: t.TempDir()}
		cmd := cliCommand(s.dir, "doctor", "--power-test", "prepare", "--seed", fmt.Sprint(r.Uint32()))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last, enough := uint64(0), r.Uint64N(25)
		said := bufio.NewScanner(out)
		for said.Scan() {
			n, ok := stepIn(said.Text(), "acknowledged")
			if !ok {
				continue
			}
			if last = n; n == enough {
				if err := cmd.Process.Kill(); err != nil { // and read what is still in the pipe
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("it ended by itself")
		}
		got := s.checked(uncut(), "--acknowledged", fmt.Sprint(last))
		if last < enough || *got.Steps > last+1 {
			t.Errorf("acknowledged %d, the store holds %d", last, *got.Steps)
		}
	}
}

// While prepare works there is no verdict: what was read last may not be the last.
func TestPowerTestStillRuns(t *testing.T) {
	e := v2Engine()
	create := e.create
	s := &session{t: t, dir: t.TempDir(), engine: &e}
	looker := &session{t: t, dir: s.dir}
	during := func() {
		l := decode[errorLine](t, looker.refused(exitRefused, "power_test_runs", "doctor", "--power-test", "check", "--acknowledged", "1").err)
		if !strings.Contains(l.Error, "prepare still works on it") || l.Run != "" {
			t.Errorf("%+v", l)
		}
		if got := looker.run("doctor", "--power-test", "check"); got.out != "" || got.code != exitRefused {
			t.Errorf("%+v", got)
		}
	}
	e.create = func(c context.Context, dir string, o *holdfast.Options) (store, error) {
		during() // before there is a store
		s, err := create(c, dir, o)
		return &interruptedStore{store: s, cancel: during}, err
	}
	if got := s.prepareOn(t.Context(), onDisk, doctorFlags{steps: 20}, false); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	looker.checked(uncut(), "--acknowledged", "20")
}

// What is acknowledged stands in directories that are durable, and what could not be made
// so is not acknowledged, and goes.
func TestPowerTestIsDurableFirst(t *testing.T) {
	place := t.TempDir()
	w := crashtest.Wrap(onDisk, crashtest.Plan{})
	synced := 0
	e := v2Engine()
	create := e.create
	e.create = func(c context.Context, dir string, o *holdfast.Options) (store, error) {
		s, err := create(c, dir, o)
		return &interruptedStore{store: s, claims: 2, cancel: func() { synced = w.Count(fsguard.OpSyncDir) }}, err
	}
	s := &session{t: t, dir: place, engine: &e}
	if got := s.prepareOn(t.Context(), w, doctorFlags{steps: 20}, false); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	if synced != 3 {
		t.Errorf("%d directories were synced before the first claim, want the test's, the place and the one above", synced)
	}
	for n := range 3 {
		left := n
		failing := crashtest.Wrap(onDisk, crashtest.FailMatching(func(op fsguard.Op, _ string) bool {
			if op != fsguard.OpSyncDir {
				return false
			}
			left--
			return left == -1
		}, syscall.EIO, 0))
		s := &session{t: t, dir: t.TempDir()}
		if l := s.refusedOn(failing, doctorFlags{steps: 1}, exitIO, "io"); l.Run != "holdfast doctor --dir "+s.dir {
			t.Errorf("sync %d: %+v", n, l)
		}
	}
}

// Where no store can be made nothing is said, and nothing stays; an interrupt there is no
// error.
func TestPowerTestWithoutAStore(t *testing.T) {
	e := v2Engine()
	s := &session{t: t, dir: t.TempDir(), engine: &e}
	journal := filepath.Join(t.TempDir(), "journal")
	f := doctorFlags{journal: journal, steps: 1}
	apart := posing{FS: fsguard.OS(), kinds: map[string]string{filepath.Dir(journal): "vfat"}}
	for _, c := range []struct {
		err  error
		exit int
		code string
		run  string
	}{
		{holdfast.ErrFilesystem, exitRefused, "unsupported_filesystem", "df " + s.dir},
		{syscall.ENOSPC, exitIO, "io", "df " + s.dir},
		{syscall.EIO, exitIO, "io", "holdfast doctor --dir " + s.dir},
	} {
		e.create = func(_ context.Context, dir string, _ *holdfast.Options) (store, error) {
			return nil, errors.Join(os.MkdirAll(filepath.Join(dir, "half"), 0o700), c.err)
		}
		if l := s.refusedOn(apart, f, c.exit, c.code); l.Run != c.run {
			t.Errorf("%v: %+v", c.err, l)
		}
	}
	e.create = func(context.Context, string, *holdfast.Options) (store, error) { return nil, context.Canceled }
	if got := s.prepareOn(t.Context(), apart, f, false); got.code != exitDone || got.out != "" || got.err != "holdfast: stopped before the first step\n" {
		t.Errorf("%+v", got)
	}
	e.create = v2Engine().create
	syncs := 0
	unsynced := crashtest.Wrap(apart, crashtest.FailMatching(func(op fsguard.Op, _ string) bool {
		if op == fsguard.OpSyncDir {
			syncs++
		}
		return syncs == 4 // that of the journal's directory
	}, syscall.EIO, 0))
	s.refusedOn(unsynced, f, exitIO, "io")
	for _, dir := range []string{s.dir, filepath.Dir(journal)} {
		if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
			t.Errorf("left behind: %v %v", names, err)
		}
	}
}

// What does not outlast a reboot tests nothing.
func TestPowerTestInMemory(t *testing.T) {
	s := &session{t: t, dir: t.TempDir()}
	for _, kind := range []string{"tmpfs", "ramfs"} {
		l := s.refusedOn(posing{FS: fsguard.OS(), kinds: map[string]string{s.dir: kind}}, doctorFlags{}, exitRefused, "power_test_in_memory")
		if l.Run != "df "+s.dir || !strings.Contains(l.Error, "is on "+kind) {
			t.Errorf("%+v", l)
		}
	}
}

// An interrupt is the proper end of a preparation, in the middle of anything.
func TestPowerTestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := v2Engine()
	create := e.create
	e.create = func(c context.Context, dir string, o *holdfast.Options) (store, error) {
		s, err := create(c, dir, o)
		return &interruptedStore{store: s, cancel: cancel}, err
	}
	s := &session{t: t, dir: t.TempDir(), engine: &e}
	got := s.prepareOn(ctx, onDisk, doctorFlags{seed: 9}, true)
	all := lines(got.out)
	begun := decode[powerBegun](t, all[0])
	last := decode[powerStep](t, all[len(all)-1])
	if got.code != exitDone || begun.Seed != 9 || begun.Dir != s.powerDir() || begun.Boot != doctor.SystemBoot().ID ||
		!strings.Contains(got.err, fmt.Sprintf("stopped after step %d, with the power on", last.Acknowledged)) {
		t.Errorf("%+v", got)
	}
	s.engine = nil
	s.checked(uncut(), "--acknowledged", fmt.Sprint(last.Acknowledged))
}

// An interruptedStore is interrupted, or looked at, at its third claim.
type interruptedStore struct {
	store
	cancel func()
	claims int
}

func (i *interruptedStore) Claim(ctx context.Context, q string, o queue.ClaimOptions) (queue.Claimed, error) {
	if i.claims++; i.claims == 3 {
		i.cancel()
	}
	return i.store.Claim(ctx, q, o)
}
