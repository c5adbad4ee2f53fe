//go:build linux

package holdfast

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest/mount"
	"example.com/holdfast/internal/crashtest/testrun"
)

// The tests on real filesystems mount them, as root. All of them run under
// HOLDFAST_REQUIRE_ALL=1; without it, or under the race detector, those that run do so on
// the first of their filesystems, and there briefly.

func init() {
	roles["live on a filesystem"] = func(args []string) error { return wholeLife(context.Background(), args[0]) }
}

// onEach runs a test on each of some filesystems, in a process with mounts of its own.
func onEach(t *testing.T, kinds []mount.Kind, run func(t *testing.T, k mount.Kind)) {
	if raceDetector() {
		t.Skip("what a filesystem does is the same with it: runs without the race detector")
	}
	mount.Need(t)
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			mount.NeedKind(t, k)
			if mount.Alone(t) {
				run(t, k)
			}
		})
	}
}

// brief reports whether this run is to take little time.
func brief() bool { return !testrun.Thorough() }

// thorough leaves out what takes seconds, unless nothing may be left out.
func thorough(t *testing.T) {
	t.Helper()
	if !testrun.Thorough() {
		skip(t, "takes seconds, and root to mount: runs under HOLDFAST_REQUIRE_ALL=1")
	}
}

// firstOf gives all of them, or the first in a brief run.
func firstOf[T any](all ...T) []T {
	if brief() {
		return all[:1]
	}
	return all
}

// fatalStepsNamed gives some of fatalSteps, in this order.
func fatalStepsNamed(names ...string) (steps []fatalStep) {
	for _, name := range names {
		at := slices.IndexFunc(fatalSteps, func(f fatalStep) bool { return f.name == name })
		steps = append(steps, fatalSteps[at])
	}
	return steps
}

// placeStore copies a store that nobody uses to where it was not.
func placeStore(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}

// On every filesystem that there is: the whole life of a store, and a process killed after
// each operation of a commit. The one that folds the case of names is there because tokens
// are lower case and IDs no file names.
func TestFilesystems(t *testing.T) {
	kinds := firstOf(mount.Ext4, mount.Writeback, mount.XFS, mount.Btrfs, mount.F2FS, mount.Overlay, mount.Tmpfs, mount.Folding)
	onEach(t, kinds, func(t *testing.T, k mount.Kind) {
		m := mount.NewPlace(t).Mount(k)
		t.Run("whole life", func(t *testing.T) {
			dir := filepath.Join(m.Dir, "life")
			if lines, err := start(t, "live on a filesystem", dir).Rest(); err != nil {
				t.Fatalf("%v %q", err, lines)
			}
			mustVerify(t, dir)
		})
		for _, f := range firstOf(fatalStepsNamed("ack", "enqueue", "claim")...) {
			t.Run(f.name, func(t *testing.T) { killedOn(t, m.Dir, f) })
		}
	})
}

// killedOn lets a process die after each operation of a step, with the store in dir.
func killedOn(t *testing.T, dir string, f fatalStep) {
	template, base, next := prepared(t, f)
	for k := 1; ; k++ {
		at := filepath.Join(dir, fmt.Sprintf("%s-%d", f.name, k))
		placeStore(t, template, at)
		p := start(t, "die at", at, "after", fmt.Sprint(k), jsonOf(next))
		lines, err := p.Rest()
		died := killedBy(err) == syscall.SIGKILL && len(lines) == 0
		if !died && (err != nil || k < 8 || !slices.Equal(lines, []string{"answered"})) {
			t.Fatalf("operation %d: %v, %q", k, err, lines)
		}
		if happened := goesOn(t, base.Clone(), at, p.Cmd.Process.Pid, next); !died && !happened {
			t.Error("answered, and it had not happened")
		}
		if !died {
			t.Logf("%d deaths", k-1)
			return
		}
	}
}
