//go:build linux

package holdfast

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/mount"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

func init() { roles["commit and die at"] = commitAndDieAt }

// chainCommits are as many as let each spare have its turn three times.
const chainCommits = 5 * spares

// chainCommit is one of a row of commits. One in seven makes an object, and one in seven may
// outgrow its spare: by that the filesystem syncs its names too.
func chainCommit(ctx context.Context, s *Store, n int) error {
	if n%7 == 3 {
		_, err := s.Enqueue(ctx, "mail", small(fmt.Sprint(n)))
		return err
	}
	size := 1
	if n%7 == 6 {
		size = queue.MaxCursorBytes
	}
	_, err := s.Update(ctx, queue.CursorChange{Queue: fmt.Sprint("q", n), Cursor: strings.Repeat("x", size)})
	return err
}

// chainDone tells how many of the commits are there, from what the last of them changed.
func chainDone(t *testing.T, s *Store) (done int) {
	t.Helper()
	page, err := s.List(t.Context(), "mail", queue.ListOptions{Limit: 100})
	mustDo(t, err)
	there := map[string]bool{}
	for _, e := range page.Entries {
		there[e.ID] = true
	}
	gap := false
	for n := range 3 * chainCommits {
		is := there[fmt.Sprint(n)]
		if n%7 != 3 {
			cursor, err := s.Cursor(t.Context(), fmt.Sprint("q", n))
			mustDo(t, err)
			is = cursor != ""
		}
		switch {
		case is && gap:
			t.Errorf("commit %d is there, and one before it is not", n)
		case is:
			done++
		default:
			gap = true
		}
	}
	return done
}

// commitAndDieAt takes the directory of a store, and the number of the operation at which to
// die. It says after each commit that it was acknowledged.
func commitAndDieAt(args []string) error {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, err := Open(context.Background(), args[0], &Options{fs: w})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	plan := crashtest.StopAfter(n)
	plan.OnStop = crashtest.KillSelf
	w.Arm(plan)
	for n := range chainCommits {
		if err := chainCommit(context.Background(), s, n); err != nil {
			return err
		}
		fmt.Println("acked")
	}
	fmt.Println("answered")
	return s.Close()
}

var revisionIn = regexp.MustCompile(`"revision":"(\d+)"`)

// behindBy tells how many commits state.json is behind the newest state.
func behindBy(t *testing.T, dir string, s *Store) uint64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, namespaceDir, stateFile))
	mustDo(t, err)
	is, err := strconv.ParseUint(string(revisionIn.FindSubmatch(text)[1]), 10, 64)
	mustDo(t, err)
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	mustDo(t, err)
	return st.Revision - is
}

// A row of commits whose exchanges nobody syncs, and the power goes after each operation of
// them: on real filesystems every acknowledged one is found, also where state.json is some
// commits behind; and so are those that are made then, when the power goes again.
func TestPowerCutChain(t *testing.T) {
	onEach(t, firstOf(mount.Ext4, mount.Writeback, mount.XFS, mount.Btrfs), func(t *testing.T, k mount.Kind) {
		dir := filepath.Join(t.TempDir(), "store")
		s, err := Create(t.Context(), dir, nil)
		mustDo(t, err)
		mustDo(t, s.Close())
		c := newCutter(t, k, dir)
		counts := map[string]int{}
		step := 9 // 1 takes minutes, and found nothing either
		if brief() {
			step = 45
		}
		for k, answered := 1, false; !answered; k += step {
			d := c.before.Copy()
			m := d.Mount()
			p := start(t, "commit and die at", filepath.Join(m.Dir, "store"), "after", fmt.Sprint(k))
			lines, err := p.Rest()
			cut := d.Copy()
			answered = err == nil && slices.Contains(lines, "answered")
			if !answered && killedBy(err) != syscall.SIGKILL {
				t.Fatalf("operation %d: %v, %q", k, err, lines)
			}
			m.Unmount()
			d.Remove()
			acked := 0
			for _, line := range lines {
				if line == "acked" {
					acked++
				}
			}
			for again := range 2 {
				m = cut.Mount()
				at := filepath.Join(m.Dir, "store")
				s, err := Open(t.Context(), at, nil)
				mustDo(t, err)
				behind := behindBy(t, at, s)
				if again > 0 {
					counts[fmt.Sprintf("again, %d behind", behind)]++
				} else {
					counts[fmt.Sprintf("%d behind", behind)]++
				}
				recoverAfterCut(t, s)
				done := chainDone(t, s)
				if done < acked || done > acked+1 {
					t.Errorf("operation %d, again %d: %d commits are there, %d were acknowledged", k, again, done, acked)
				}
				for n := range k % 5 {
					mustDo(t, chainCommit(t.Context(), s, done+n))
				}
				acked = done + k%5
				next := cut.Copy()
				mustDo(t, s.Close())
				m.Unmount()
				cut.Remove()
				cut = next
				if t.Failed() {
					t.FailNow()
				}
			}
			cut.Remove()
		}
		t.Logf("%d cuts: %v", sum(counts), counts)
	})
}
