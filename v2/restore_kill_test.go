//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
)

func init() { roles["restore and die"] = restoreAndDie }

// restoreAndDie takes a copy, a directory, and the number of the operation after which to
// die.
func restoreAndDie(args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	plan := crashtest.StopAfter(n)
	plan.OnStop = crashtest.KillSelf
	_, err = Restore(context.Background(), args[0], args[1], &Options{fs: crashtest.Wrap(fsguard.OS(), plan)}, RestoreOptions{})
	if err == nil {
		fmt.Println("restored")
	}
	return err
}

// A process that restores is killed after each of its operations, on the real filesystem:
// there is no store until the last ones, and what is there is told; then there is a whole
// one.
func TestKilledRestore(t *testing.T) {
	t.Parallel()
	s, _ := newTestStore(t, &Options{block: 2, prepare: -1})
	mustEnqueue(t, s, "mail", smalls(9)...)
	mustEnqueue(t, s, "mail", small("one"))
	copied := filepath.Join(t.TempDir(), "copy")
	mustDo(t, second(s.Backup(t.Context(), copied, BackupOptions{})))
	step := 1
	if !testrun.Thorough() || raceDetector() {
		step = 9
	}
	found := map[string]int{}
	for n := 1; ; n += step {
		dir := filepath.Join(t.TempDir(), "store")
		lines, err := start(t, "restore and die", copied, dir, fmt.Sprint(n)).Rest()
		if err == nil { // it has not so many
			if len(lines) != 1 || n < 20 {
				t.Fatalf("%d operations, %q", n, lines)
			}
			break
		}
		if killedBy(err) != syscall.SIGKILL || len(lines) > 0 {
			t.Fatalf("operation %d: %v, %q", n, err, lines)
		}
		switch _, err := Open(t.Context(), dir, nil); {
		case errors.Is(err, ErrInterruptedRestore):
			found["interrupted"]++
			root, err := fsguard.OS().OpenRoot(dir)
			mustDo(t, err)
			if !dropTree(root, restoringDir) {
				t.Errorf("operation %d: what is left cannot be removed", n)
			}
			mustDo(t, root.Close(), second(Restore(t.Context(), copied, dir, nil, RestoreOptions{})))
		case errors.Is(err, ErrNoStore):
			found["nothing"]++
			if found["interrupted"] > 0 {
				t.Errorf("operation %d: nothing, although a death earlier on left something", n)
			}
			mustDo(t, second(Restore(t.Context(), copied, dir, nil, RestoreOptions{})))
		case err != nil:
			t.Fatalf("operation %d: %v", n, err)
		default:
			found["whole"]++
		}
		mustVerify(t, dir)
	}
	if found["interrupted"] == 0 || step == 1 && found["whole"] == 0 {
		t.Errorf("found: %v", found)
	}
}
