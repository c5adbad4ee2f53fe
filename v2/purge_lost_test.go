//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// Failed messages whose run is lost can be given up, and nothing else goes with them: by a
// handle that still remembers the run, too. Then the store is whole again.
func TestPurgeLost(t *testing.T) {
	s := failing(t, 40)
	ctx := t.Context()
	all := namesFailed(t, s, queue.FailedOptions{}, 1000)
	runs, _ := failedRunsOf(t, s, "")
	at := func(r *failedRun) string {
		return filepath.Join(s.dir, namespaceDir, filepath.FromSlash(runPath(r.name)))
	}
	var lost []string
	for _, r := range runs[:2] {
		members, err := newRunFiles(func() fsguard.Dir { return s.pins.objects }).buried(r)
		mustDo(t, err)
		for i, e := range members {
			if r.has(i) {
				lost = append(lost, e.name)
			}
		}
	}
	if n, err := s.PurgeLost(ctx, queue.PurgeOptions{}); n != 0 || err != nil {
		t.Errorf("nothing is lost: %d, %v", n, err)
	}
	before := mustRead(t, filepath.Join(s.dir, namespaceDir, stateFile))
	mustDo(t, os.Remove(at(runs[0])), os.WriteFile(at(runs[1]), []byte("{}"), 0o600))

	// Where a link stands, or the disk answers an error, nothing is given up.
	away := at(runs[2]) + "-away"
	mustDo(t, os.Rename(at(runs[2]), away), os.Symlink(away, at(runs[2])))
	if n, err := s.PurgeLost(ctx, queue.PurgeOptions{}); n != 0 || !errors.Is(err, ErrUnsafe) {
		t.Errorf("beside a symbolic link: %d, %v", n, err)
	}
	mustDo(t, os.Rename(away, at(runs[2])))
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	troubled := another(t, s.dir, w)
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		return op == fsguard.OpRead && strings.HasSuffix(path, runPath(runs[len(runs)-1].name))
	}, unix.EIO, 9))
	if n, err := troubled.PurgeLost(ctx, queue.PurgeOptions{}); n != 0 || !errors.Is(err, unix.EIO) {
		t.Errorf("where a run cannot be read now: %d, %v", n, err)
	}
	w.Arm(crashtest.Plan{})
	if now := mustRead(t, filepath.Join(s.dir, namespaceDir, stateFile)); string(now) != string(before) {
		t.Error("something moved")
	}
	_, err := troubled.ShowFailed(ctx, lost[0], queue.FailedOptions{})
	refusal(t, "show", err, ErrCorrupt, waysOfFailed)

	status, err := s.Status(ctx, queue.StatusOptions{})
	mustDo(t, err)
	n, err := s.PurgeLost(ctx, queue.PurgeOptions{})
	if err != nil || n != uint64(len(lost)) {
		t.Errorf("%d purged, want %d: %v", n, len(lost), err)
	}
	now, err := s.Status(ctx, queue.StatusOptions{})
	mustDo(t, err)
	if got := now.Queues["mail"].Counters.Purged - status.Queues["mail"].Counters.Purged; got != n {
		t.Errorf("%d counted as purged, want %d", got, n)
	}
	mustBeFailed(t, s, slices.DeleteFunc(all, func(name string) bool { return slices.Contains(lost, name) }))
	mustFail(t, s, "again", lost[0]) // its name is free
	mustDo(t, second(s.Collect(ctx, CollectOptions{})), s.Purge(ctx, lost[0], queue.PurgeOptions{}))
}

// An unknown namespace has nothing that is lost; a bad one is refused.
func TestPurgeLostRefuses(t *testing.T) {
	s := failing(t, 8)
	if n, err := s.PurgeLost(t.Context(), queue.PurgeOptions{Namespace: "none"}); n != 0 || err != nil {
		t.Errorf("of an unknown namespace: %d, %v", n, err)
	}
	if _, err := s.PurgeLost(t.Context(), queue.PurgeOptions{Namespace: "a b"}); !errors.Is(err, queue.ErrInvalidName) {
		t.Errorf("of a bad name: %v", err)
	}
}

// A purge of what is lost that is cut off anywhere has happened, or can be called again.
func TestCrashPurgeLost(t *testing.T) {
	t.Parallel()
	crashtest.Explore(t, crashtest.Scenario{
		Name: "purge-lost",
		Setup: func(t testing.TB, d *crashtest.Disk) {
			crashScenario{setup: withLostRun}.make(t, d)
		},
		Run: func(fs fsguard.FS, j *crashtest.Journal) {
			s, err := Open(context.Background(), crashDir, crashOptions(fs))
			if err != nil {
				return
			}
			defer s.Close()
			j.Begin("purge", nil)
			if n, err := s.PurgeLost(context.Background(), queue.PurgeOptions{}); err != nil || n != 5 {
				j.Fail("purge", fmt.Errorf("%d, %w", n, err))
				return
			}
			j.Ack("purge", nil)
		},
		Check: func(t testing.TB, fsys fsguard.FS, j *crashtest.Journal) error {
			ctx := context.Background()
			s, err := Open(ctx, crashDir, crashOptions(fsys))
			if err != nil {
				return err
			}
			defer s.Close()
			if _, err := s.Recover(ctx); err != nil {
				return fmt.Errorf("recover: %w", err)
			}
			status, err := s.Status(ctx, queue.StatusOptions{})
			_, acked := j.Last("purge", crashtest.Acked)
			failed := status.Queues["mail"].Failed
			if err != nil || failed != 2 && (failed != 7 || acked) {
				return fmt.Errorf("%d failed, acknowledged: %v, %v", failed, acked, err)
			}
			if n, err := s.PurgeLost(ctx, queue.PurgeOptions{}); err != nil || n != failed-2 {
				return fmt.Errorf("again: %d of %d, %w", n, failed, err)
			}
			j.Ack("purge", nil)
			report, err := s.Verify(ctx, VerifyOptions{})
			if err != nil || !report.OK || report.Failed != 2 {
				return fmt.Errorf("verify: %+v, %v", report, err)
			}
			return nil
		},
	}, backupBounds(crashtest.Options{MaxImages: 8, AfterCheck: 1}))
}
