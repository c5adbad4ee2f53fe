//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

const (
	crashCopy     = "/data/copy"
	crashRestored = "/data/restored"
)

// copiedOnDisk makes a store with a run, a claim that is out, a failed message and a
// payload of its own, and a copy of it.
func copiedOnDisk(t testing.TB, d *crashtest.Disk) {
	atWorkOnDisk(t, d)
	s, err := OpenReadOnly(t.Context(), crashDir, crashOptions(d.Process()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Backup(t.Context(), crashCopy, BackupOptions{}); err != nil {
		t.Fatal(err)
	}
}

// atWorkOnDisk is copiedOnDisk without the copy.
func atWorkOnDisk(t testing.TB, d *crashtest.Disk) {
	d.MkdirAll("/data")
	p := d.Process()
	defer p.Kill()
	s, err := Create(t.Context(), crashDir, crashOptions(p))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ms []queue.Message
	for i := range 8 {
		ms = append(ms, small(fmt.Sprint("m", i)))
	}
	if _, err := s.EnqueueBatch(t.Context(), "mail", ms); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), "mail", small("alone")); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 2, Lease: queue.NoDeadline})
	if err == nil {
		_, err = s.Fail(t.Context(), c.Deliveries[0].Receipt, queue.FailOptions{Cause: "broken"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// restoredLook says what a restored store holds, and not what is new with each set-up.
func restoredLook(s *Store) (string, error) {
	ctx := context.Background()
	page, err := s.List(ctx, "mail", queue.ListOptions{})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range page.Entries {
		shown, err := s.Show(ctx, "mail", e.ID)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %s %d %q\n", e.ID, e.State, e.Attempts, shown[0].Payload)
	}
	page, err = s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{})
	for _, e := range page.Entries {
		fmt.Fprintf(&b, "failed %s of %d attempts\n", e.FailedName, e.Attempts)
	}
	return b.String(), err
}

// restoredAs restores the copy on a disk of its own, and says what that holds.
func restoredAs(t testing.TB, setup func(testing.TB, *crashtest.Disk), restore func(o *Options) error) string {
	t.Helper()
	d := crashtest.NewDisk()
	setup(t, d)
	if err := restore(crashOptions(d.Process())); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), crashRestored, crashOptions(d.Process()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	look, err := restoredLook(s)
	if err != nil || !strings.Contains(look, "m1 ") || strings.Contains(look, "processing") || !strings.Contains(look, "failed m0 ") {
		t.Fatalf("restored: %s, %v", look, err)
	}
	return look
}

func restoreOnDisk(o *Options) error {
	return second(Restore(context.Background(), crashCopy, crashRestored, o, RestoreOptions{Workers: 1}))
}

// noStoreYet reports whether err is one of the answers of a directory that no restore has
// come to its end in.
func noStoreYet(err error) bool {
	return errors.Is(err, ErrNoStore) || errors.Is(err, ErrInterruptedRestore)
}

// checkRestored is the process that comes after a restore: it finds a whole store, or none
// and does what it is told.
func checkRestored(want string) func(t testing.TB, fs fsguard.FS, j *crashtest.Journal) error {
	return func(t testing.TB, fsys fsguard.FS, j *crashtest.Journal) error {
		_, acked := j.Last("restore", crashtest.Acked)
		s, err := Open(context.Background(), crashRestored, crashOptions(fsys))
		switch {
		case noStoreYet(err) && !acked:
			if s, err = restoreAgain(fsys, err); err != nil {
				return fmt.Errorf("restored again: %w", err)
			}
			j.Ack("restore", nil)
		case err != nil:
			return fmt.Errorf("open: %w", err)
		}
		defer s.Close()
		report, err := s.Verify(context.Background(), VerifyOptions{})
		_, used := j.Last("probe")
		if err != nil || !report.OK || !report.Settled && !used || report.Orphans != 0 && !used || report.Temps != 0 && !used {
			return fmt.Errorf("verify: %+v, %v", report, err)
		}
		if _, err := s.Recover(context.Background()); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
		if got, err := restoredLook(s); err != nil || got != want {
			return fmt.Errorf("found\n%swant\n%s%v", got, want, err)
		}
		return workOn(s, j)
	}
}

// restoreAgain removes what an interrupted restore left, as its error says, and restores.
func restoreAgain(fsys fsguard.FS, is error) (*Store, error) {
	o := crashOptions(fsys)
	if errors.Is(is, ErrInterruptedRestore) {
		if err := restoreOnDisk(o); !errors.Is(err, ErrInterruptedRestore) {
			return nil, fmt.Errorf("over an interrupted one: %v", err)
		}
		if _, err := Create(context.Background(), crashRestored, o); !errors.Is(err, ErrInterruptedRestore) {
			return nil, fmt.Errorf("create over an interrupted one: %v", err)
		}
		root, err := fsys.OpenRoot(crashRestored)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		if !dropTree(root, restoringDir) {
			return nil, errors.New("what an interrupted restore left cannot be removed")
		}
	}
	if err := restoreOnDisk(o); err != nil {
		return nil, err
	}
	return Open(context.Background(), crashRestored, crashOptions(fsys))
}

func restoreScenario(want string) crashtest.Scenario {
	return crashtest.Scenario{
		Name: "restore", Setup: copiedOnDisk,
		Run: func(fs fsguard.FS, j *crashtest.Journal) {
			j.Begin("restore", nil)
			if err := restoreOnDisk(crashOptions(fs)); err != nil {
				j.Fail("restore", err)
				return
			}
			j.Ack("restore", nil)
		},
		Check: checkRestored(want),
	}
}

// A restore that the power or a kill ends anywhere leaves a whole store or none, and what
// to do about it is said; one that succeeded stays.
func TestCrashRestore(t *testing.T) {
	t.Parallel()
	crashtest.Explore(t, restoreScenario(restoredAs(t, copiedOnDisk, restoreOnDisk)), backupBounds(crashtest.Options{MaxImages: 8, AfterCheck: 1}))
}

// The same with an error of the disk at each operation, reads of the copy included.
func TestFaultRestore(t *testing.T) {
	t.Parallel()
	s := restoreScenario(restoredAs(t, copiedOnDisk, restoreOnDisk))
	crashtest.ExploreErrors(t, s, backupBounds(crashtest.Options{MaxImages: 1, AfterCheck: -1, Uneven: true, Errnos: []syscall.Errno{syscall.EIO}}))
}

// backupBounds are for what has many operations that are alike: the files of a copy.
func backupBounds(o crashtest.Options) crashtest.Options {
	if !testrun.Thorough() {
		o.MaxImages, o.AfterCheck = min(o.MaxImages, 4), -1
	}
	o = smaller(o)
	if testing.Short() || raceDetector() {
		o.Every = 11
	}
	return o
}

func backupScenario(want string) crashtest.Scenario {
	return crashtest.Scenario{
		Name: "backup", Setup: atWorkOnDisk,
		Run: func(fs fsguard.FS, j *crashtest.Journal) {
			s, err := OpenReadOnly(context.Background(), crashDir, crashOptions(fs))
			if err != nil {
				return
			}
			defer s.Close()
			j.Begin("backup", nil)
			if _, err := s.Backup(context.Background(), crashCopy, BackupOptions{}); err != nil {
				j.Fail("backup", err)
				return
			}
			j.Ack("backup", nil)
		},
		Check: func(t testing.TB, fsys fsguard.FS, j *crashtest.Journal) error {
			s, err := Open(context.Background(), crashDir, crashOptions(fsys))
			if err != nil {
				return fmt.Errorf("the copied store: %w", err)
			}
			defer s.Close()
			if report, err := s.Verify(context.Background(), VerifyOptions{}); err != nil || !report.OK || !report.Settled {
				return fmt.Errorf("the copied store: %+v, %v", report, err)
			}
			if _, again := j.Last("restored", crashtest.Acked); again {
				return nil
			}
			_, acked := j.Last("backup", crashtest.Acked)
			err = restoreOnDisk(crashOptions(fsys))
			var bad *BackupError
			switch {
			case err == nil:
			case acked:
				return fmt.Errorf("restoring a whole copy: %w", err)
			case errors.Is(err, fs.ErrNotExist), errors.As(err, &bad) && bad.Entry == manifestFile:
				return nil // there is none, and that is said
			default:
				return fmt.Errorf("restoring a part of a copy: %w", err)
			}
			r, err := OpenReadOnly(context.Background(), crashRestored, crashOptions(fsys))
			if err != nil {
				return err
			}
			defer r.Close()
			if got, err := restoredLook(r); err != nil || got != want {
				return fmt.Errorf("restored\n%swant\n%s%v", got, want, err)
			}
			j.Ack("restored", nil)
			return nil
		},
	}
}

// A backup that is cut off anywhere leaves a copy without a manifest, which is refused by
// that name, or a whole one; and the store as it was. One that succeeded stays.
func TestCrashBackup(t *testing.T) {
	t.Parallel()
	crashtest.Explore(t, backupScenario(restoredAs(t, copiedOnDisk, restoreOnDisk)), backupBounds(crashtest.Options{MaxImages: 8, AfterCheck: -1}))
}

// The same with an error of the disk at each operation.
func TestFaultBackup(t *testing.T) {
	t.Parallel()
	s := backupScenario(restoredAs(t, copiedOnDisk, restoreOnDisk))
	crashtest.ExploreErrors(t, s, backupBounds(crashtest.Options{MaxImages: 1, AfterCheck: -1, Uneven: true, Errnos: []syscall.Errno{syscall.EIO}}))
}

// An error of the disk is told as what it is: it is no word against the copy.
func TestRestoreThatCannotRead(t *testing.T) {
	d := crashtest.NewDisk()
	copiedOnDisk(t, d)
	for _, op := range []fsguard.Op{fsguard.OpRead, fsguard.OpOpen, fsguard.OpOpenDir} {
		w := crashtest.Wrap(d.Process(), crashtest.FailMatching(func(o fsguard.Op, path string) bool {
			return o == op && strings.Contains(path, objectsDir)
		}, syscall.EIO, 1))
		err := restoreOnDisk(crashOptions(w))
		if !errors.Is(err, syscall.EIO) || errors.Is(err, ErrBackup) {
			t.Errorf("EIO at %s: %v", op, err)
		}
		if d.Exists(crashRestored) {
			t.Errorf("EIO at %s: something is left", op)
		}
		if open := w.Open(); len(open) > 0 {
			t.Errorf("left open: %q", open)
		}
	}
}

// Where names cannot be exchanged the restored store does without, and the other way round.
func TestRestoreProvesTheExchangeAnew(t *testing.T) {
	for _, could := range []bool{true, false} {
		d := crashtest.NewDisk()
		refuse := func(on bool) {
			var err error
			if on {
				err = syscall.ENOSYS
			}
			d.SetExchangeError(err)
		}
		refuse(!could)
		copiedOnDisk(t, d)
		refuse(could)
		mustDo(t, restoreOnDisk(crashOptions(d.Process())))
		s, err := Open(t.Context(), crashRestored, crashOptions(d.Process()))
		mustDo(t, err)
		defer s.Close()
		names, err := s.pins.space.ReadDir()
		mustDo(t, err)
		if s.cached.st.exchange == could || slices.ContainsFunc(names, isSpare) == could {
			t.Errorf("it could be exchanged: %v; restored where not: feature %v, %q", could, s.cached.st.exchange, names)
		}
		mustEnqueue(t, s, "mail", small("after"))
	}
}

// A restore that an error of the disk ends, wherever, leaves nothing: no empty directory
// either. Only the errors behind the commit point leave a store, which is whole.
func TestRestoreThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	copied := crashtest.NewDisk()
	copiedOnDisk(t, copied)
	for name, plan := range map[string]func(n int, err error) crashtest.Plan{"before": crashtest.FailAt, "after": crashtest.FailAfter} {
		failed, whole := 0, 0
		for n := 1; ; n++ {
			d := copied.Clone()
			w := crashtest.Wrap(d.Process(), plan(n, syscall.EIO))
			err := restoreOnDisk(crashOptions(w))
			if !w.Fired() {
				mustDo(t, err)
				break
			}
			if err == nil {
				continue // of what it could do without
			}
			if failed++; !d.Exists(crashRestored) || strings.HasPrefix(err.Error(), "mkdir restored:") && name == "after" { // whose that is nobody can say
				continue
			}
			s, no := Open(t.Context(), crashRestored, crashOptions(d.Process()))
			if no != nil {
				t.Errorf("EIO %s operation %d, %v, leaves %v\n%s", name, n, err, no, w.Trace())
				continue
			}
			whole++
			mustDo(t, s.Close())
		}
		if failed < 30 || whole > 2 {
			t.Errorf("EIO %s an operation: %d failures, %d left a store", name, failed, whole)
		}
	}
}
