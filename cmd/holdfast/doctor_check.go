//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/doctor/steps"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A powerCheckup looks what a power test left.
type powerCheckup struct {
	a       *app
	result  powerResult
	journal *powerRecord  // nil: there is none
	boot    string        // now; empty: it cannot be read
	mount   *doctor.Mount // of the test; nil: it cannot be told
	behind  bool          // the store is whole, and holds less than somebody read
}

// powerCheck compares the store of a power test with what was acknowledged before the
// power went.
func (a *app) powerCheck(ctx context.Context, f doctorFlags) error {
	if err := isFile(a.dir); err != nil {
		return err
	}
	dir := filepath.Join(a.dir, doctor.PowerName)
	c := &powerCheckup{a: a, boot: doctor.SystemBoot().ID, result: powerResult{
		Dir: dir, Reasons: []string{}, Proven: []string{}, NotProven: []string{}, Next: "rm -r " + shellWord(dir),
	}}
	c.mount, _ = doctor.System().Mount(reachable(dir)) // conclude says when it is not known
	if f.told {
		c.result.Acknowledged = &f.acknowledged
	}
	if f.journal != "" {
		record, err := readPowerJournal(f.journal)
		if err != nil {
			return err
		}
		c.journal, c.result.Acknowledged = &record, record.acknowledged
	}
	if err := c.find(ctx); err != nil {
		return a.aboutPlace(err)
	}
	c.conclude()
	c.print()
	return c.failure()
}

func (c *powerCheckup) reason(format string, args ...any) {
	c.result.Reasons = append(c.result.Reasons, fmt.Sprintf(format, args...))
}

// find looks for the test, and at it, unless prepare still works on it.
func (c *powerCheckup) find(ctx context.Context) error {
	dir, err := fsguard.OS().OpenRoot(c.result.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c.missing()
	}
	if err != nil {
		return err
	}
	defer dir.Close() // and with it the lock; it was only looked at
	free, err := dir.TryLock(fsguard.Shared)
	if err != nil {
		return err
	}
	if !free {
		return fmt.Errorf("%s: %w: take away the power, or stop it with Ctrl-C, and check then", c.result.Dir, errPowerRuns)
	}
	return c.look(ctx)
}

// missing judges a directory without a test in it. Before the first number was printed
// the directory of the test was durable, if syncs are. So who read one has lost all of it,
// or looks in another place; a journal tells which.
func (c *powerCheckup) missing() error {
	last := c.result.Acknowledged
	_, err := os.Lstat(c.a.dir)
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !gone:
		return err
	case c.journal != nil && c.journal.dir != "" && c.journal.dir != c.result.Dir:
		right := filepath.Dir(c.journal.dir)
		return about(fmt.Errorf("the journal is of a test in %s, and not of one here: give --dir %s: %w", c.journal.dir, shellWord(right), errJournal),
			facts{run: "ls -ld " + shellWord(reachable(c.journal.dir))})
	case c.journal != nil && last != nil:
		c.reason("%s is not there, and the journal says that it was: all of it is lost, or the filesystem that it is on is not mounted", c.result.Dir)
	case gone:
		return about(fmt.Errorf("%s is not there: %w; give the --dir that prepare was given", c.a.dir, errNoPowerTest), facts{run: "ls -la " + shellWord(reachable(c.a.dir))})
	case c.journal == nil && last != nil && *last > 0:
		c.reason("%s is not there: if it is where the test was prepared, all of it is lost; else --dir is wrong", c.result.Dir)
	default:
		return fmt.Errorf("%s is not there: %w", c.result.Dir, errNoPowerTest)
	}
	return nil
}

// look reads the store. What it finds wrong is a reason; an error says that it cannot be
// judged.
func (c *powerCheckup) look(ctx context.Context) error {
	var cursor string
	var seen steps.Sight
	dir := filepath.Join(c.result.Dir, powerStore)
	err := use(ctx, c.a.engine.open, dir, c.a.options(), func(s store) error {
		r, err := s.Recover(ctx)
		if err != nil {
			return err
		}
		c.result.Recovered = r.Owner != nil
		if cursor, err = s.Cursor(ctx, steps.Queue); err != nil {
			return err
		}
		seen, err = steps.Look(ctx, s)
		return err
	})
	var report holdfast.Report
	if err == nil {
		report, err = c.a.engine.verify(ctx, dir, c.a.options(), holdfast.VerifyOptions{})
	}
	switch {
	case interrupted(err):
		return &stoppedError{"stopped while checking; the store stays as it is"}
	case saysNothing(err):
		return err
	case err != nil && c.result.Acknowledged == nil:
		return c.unread(err)
	case err != nil:
		c.reason("the store cannot be read: %v", err)
		return nil
	}
	for _, f := range report.Faults {
		c.reason("verify found a fault: %s: %s", f.File, f.Reason)
	}
	return c.compare(cursor, seen)
}

// unread says of a store that cannot be read what that means where nobody read a number.
func (c *powerCheckup) unread(err error) error {
	if errors.Is(err, holdfast.ErrNoStore) || errors.Is(err, holdfast.ErrInterruptedInit) || errors.Is(err, fs.ErrNotExist) {
		return c.halfMade()
	}
	return about(fmt.Errorf("what was prepared cannot be read, which proves something only if a step was acknowledged: %w", err),
		facts{advice: "give --acknowledged N, the last number that was read; if none was: " + c.result.Next})
}

func (c *powerCheckup) halfMade() error {
	return about(fmt.Errorf("%s: the preparation ended before its first step: %w", c.result.Dir, errNoPowerTest), facts{run: c.result.Next})
}

// saysNothing reports whether an error is of whoever looks and of the room that is left,
// and tells nothing of what a store holds.
func saysNothing(err error) bool {
	for _, e := range []error{
		fs.ErrPermission, holdfast.ErrUnsafe, holdfast.ErrFilesystem, queue.ErrFull, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// compare looks which step the store holds.
func (c *powerCheckup) compare(cursor string, seen steps.Sight) error {
	origin, ok := parseOrigin(cursor)
	if !ok {
		if c.result.Acknowledged == nil {
			return c.halfMade()
		}
		c.reason("the store is there, and does not know of the test: its first commit is lost")
		return nil
	}
	c.result.Seed = &origin.seed
	if origin.boot != "" && c.boot != "" {
		rebooted := origin.boot != c.boot
		c.result.Rebooted = &rebooted
	}
	if c.journal != nil && c.journal.origin != origin {
		return about(fmt.Errorf("the journal is that of another power test (%v) than the store's (%v): %w", c.journal.origin, origin, errJournal),
			facts{run: "holdfast doctor --power-test check --dir " + shellWord(c.a.dir)}) // says whether the store is whole
	}
	state, why := steps.Find(origin.seed, seen)
	if state == nil {
		c.reason("the store is in no state that the steps lead to: %s", why)
		return nil
	}
	c.result.Steps = &state.Steps
	if last := c.result.Acknowledged; last != nil && state.Steps < *last {
		c.behind = len(c.result.Reasons) == 0 && c.journal == nil
		c.reason("step %d was acknowledged, and the store holds %d: what came after is lost", *last, state.Steps)
	}
	return nil
}
