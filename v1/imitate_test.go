//go:build unix

package holdfast

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
)

// imitate does what proot does for a link, on the real disk.
func imitate(t testing.TB) refuseHook {
	return func(old, new string, _ func() error) error {
		if _, err := os.Lstat(new); err == nil {
			return syscall.EEXIST
		}
		info, err := os.Lstat(old)
		if err != nil {
			return syscall.ENOENT
		}
		to := filepath.Join(filepath.Dir(old), ".l2s."+filepath.Base(old))
		if info.Mode().IsRegular() {
			unitOK(t, os.Rename(old, to), os.Symlink(to, old))
		}
		unitOK(t, os.Symlink(to, new))
		return nil
	}
}

func wantImitated(t testing.TB, what string, err error) {
	t.Helper()
	var link *LinkError
	unitIs(t, what, err, ErrHelperUnavailable, "imitated", "RenameNoReplace")
	if !errors.As(err, &link) || !link.Imitated || link.Errno != 0 || link.Route != HardLink {
		t.Errorf("%s: got %+v, want an imitated link", what, link)
	}
}

// A link that is a symlink is found out on a file of the package's own: the entries keep
// their bytes, their inodes and their links, and only the probe's leavings stand beside.
func TestImitatedLink(t *testing.T) {
	t.Parallel()
	for _, w := range unitWays[:3] {
		for _, scene := range refuseScenes {
			t.Run(w.String()+"/"+scene.name, func(t *testing.T) {
				d := newUnitDirs(t)
				scene.build(t, d)
				before := d.tree(t)
				imitating := d.open(t, w, Options{fs: w.refuseFS(t, imitate(t), nil)})
				for range 2 {
					wantImitated(t, scene.name, scene.do(t.Context(), imitating))
				}
				left, err := filepath.Glob(d.at(".l2s.*" + tempSuffix))
				if err != nil || len(left) == 0 {
					t.Fatalf("no probe was made: %q, %v", left, err)
				}
				for _, path := range left { // temporary files, which age removes
					unitOK(t, os.Remove(path))
				}
				unitUnchanged(t, before, d.tree(t))
				unitOK(t, scene.do(t.Context(), d.open(t, unitWay{w.mechanism, RenameNoReplace}, Options{})))
				d.wantNames(t, scene.queue, scene.failed)
			})
		}
	}
}

// Where links begin to be imitated after the probe, that is found out too; what was
// linked can still be read at both names, and no later call takes it for an entry.
func TestImitatedLater(t *testing.T) {
	t.Parallel()
	for _, w := range unitWays[:3] {
		for _, scene := range refuseScenes {
			t.Run(w.String()+"/"+scene.name, func(t *testing.T) {
				d := newUnitDirs(t)
				scene.build(t, d)
				var made []string
				hook := func(old, new string, call func() error) error {
					made = append(made, old, new)
					return imitate(t)(old, new, call)
				}
				s := d.open(t, w, Options{fs: w.refuseFS(t, onEntries(hook), nil)})
				wantImitated(t, scene.name, scene.do(t.Context(), s))
				if len(made) == 0 {
					t.Fatal("no link was imitated")
				}
				want := "1"
				if strings.HasPrefix(scene.name, "restoration") {
					want = "2"
				}
				for i, path := range made {
					if i == 2 {
						want = "2" // the batch's second
					}
					text, err := os.ReadFile(path)
					if err != nil || string(text) != want {
						t.Errorf("%s holds %q, %v; want %s", path, text, err, want)
					}
				}
				before := d.tree(t)
				_, err := s.Load(t.Context(), "a", nil)
				if !errors.Is(err, ErrNotFile) && !errors.Is(err, ErrPathMismatch) && !errors.Is(err, ErrHelperUnavailable) {
					t.Errorf("load afterwards: %v", err)
				}
				unitUnchanged(t, before, d.tree(t))
			})
		}
	}
}

// The same on the simulated disk, whose imitation is another hand's work.
func TestImitatedOnSimulatedDisk(t *testing.T) {
	for _, route := range []Route{HardLink, RenameNoReplace} {
		t.Run(route.String(), func(t *testing.T) {
			disk := crashtest.NewDisk()
			disk.MkdirAll("/queue")
			disk.MkdirAll("/failed")
			s, err := Open("/queue", &Options{FailedDir: "/failed", ClaimBy: route, fs: disk.Process()})
			unitOK(t, err)
			defer s.Close()
			ctx := t.Context()
			unitEnqueue(t, s, "a", `1`)
			disk.SetLinksAreSymlinks(true)
			_, err = s.Load(ctx, "a", nil)
			failed := s.FailID(ctx, "a")
			if route == HardLink {
				wantImitated(t, "load", err)
				wantImitated(t, "fail", failed)
				disk.SetLinksAreSymlinks(false)
				unitOK(t, refuseLoad(ctx, s, "a", "1"), s.FailID(ctx, "a"))
			} else {
				unitOK(t, err, failed)
			}
			if st, err := s.Status(ctx); err != nil || st.Pending+st.Processing != 0 || st.Failed != 1 {
				t.Errorf("status %+v, %v", st, err)
			}
		})
	}
}

// A probe that passed is not made again.
func TestProbeOnce(t *testing.T) {
	d := newUnitDirs(t)
	w := unitWay{Auto, HardLink}
	probes := 0
	s := d.open(t, w, Options{fs: w.refuseFS(t, func(old, new string, call func() error) error {
		if isTemp(old) {
			probes++
		}
		return call()
	}, nil)})
	for _, id := range []string{"a", "b", "c"} {
		unitEnqueue(t, s, id, `1`)
		unitOK(t, s.FailID(t.Context(), id))
	}
	if probes != 1 {
		t.Errorf("%d probes, want 1", probes)
	}
	d.wantNames(t, "", "a.json 1, b.json 1, c.json 1")
}
