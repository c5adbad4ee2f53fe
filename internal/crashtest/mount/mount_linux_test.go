package mount

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/testrun"
)

// alone is what every test begins with. Without HOLDFAST_REQUIRE_ALL=1 they all are left
// out: they need root, and commands that few machines have.
func alone(t *testing.T) bool {
	t.Helper()
	if !testrun.Thorough() {
		t.Skip("mounts filesystems: runs under HOLDFAST_REQUIRE_ALL=1, as root")
	}
	Need(t)
	return Alone(t)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

const content = "what a file holds"

// write writes a file and, if it is to, syncs it and its directory.
func write(t *testing.T, path string, sync bool) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	_, err = f.WriteString(content)
	must(t, err)
	if sync {
		must(t, f.Sync(), syncDir(path))
	}
}

func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// holds reports whether a file is there and has its content.
func holds(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && string(text) == content
}

// inUse lists the loop devices over images in places, and the mounts of places.
func inUse(t *testing.T) (found []string) {
	t.Helper()
	backing, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	must(t, err)
	for _, name := range backing {
		// One that is detached meanwhile is gone.
		if path, err := os.ReadFile(name); err == nil && strings.Contains(string(path), "/"+t.Name()) {
			found = append(found, string(path))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "/"+t.Name()) {
			found = append(found, line)
		}
	}
	return found
}

// Each kind is what it says, holds files, and leaves nothing behind.
func TestKinds(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, k := range []Kind{Ext4, Writeback, XFS, Btrfs, F2FS, Overlay, Tmpfs, Folding} {
		t.Run(k.Name, func(t *testing.T) {
			NeedKind(t, k)
			m := NewPlace(t).Mount(k)
			write(t, m.Dir+"/a", true)
			if k.Folding != holds(m.Dir+"/A") && k.Folding {
				t.Error("it does not fold the case of names")
			}
			mounts, err := os.ReadFile("/proc/self/mounts")
			must(t, err)
			if !strings.Contains(string(mounts), " "+m.Dir+" "+k.Type+" ") {
				t.Errorf("no %s at %s in\n%s", k.Type, m.Dir, mounts)
			}
		})
	}
	if left := inUse(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A copy has what was synced and not what was not; the original goes on. Only then does the
// copy show a missing sync.
func TestCopyIsAPowerCut(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, k := range []Kind{Ext4, Writeback, XFS, Btrfs} {
		t.Run(k.Name, func(t *testing.T) {
			NeedKind(t, k)
			d := NewPlace(t).Format(k)
			m := d.Mount()
			write(t, m.Dir+"/synced", true)
			must(t, os.Mkdir(m.Dir+"/dir", 0o700))
			write(t, m.Dir+"/dir/lost", false)
			must(t, os.Rename(m.Dir+"/synced", m.Dir+"/renamed"))
			before := d.Copy()
			must(t, syncDir(m.Dir+"/renamed"))
			after := d.Copy()
			write(t, m.Dir+"/later", true)
			m.Unmount()
			for _, cut := range []struct {
				of      *Device
				is, not []string
			}{
				{before, []string{"synced"}, []string{"renamed", "dir/lost", "later"}},
				{after, []string{"renamed"}, []string{"synced", "dir/lost", "later"}},
				{d, []string{"renamed", "dir/lost", "later"}, []string{"synced"}},
			} {
				m := cut.of.Mount()
				for _, name := range cut.is {
					if !holds(filepath.Join(m.Dir, name)) {
						t.Errorf("%s is lost", name)
					}
				}
				for _, name := range cut.not {
					if holds(filepath.Join(m.Dir, name)) {
						t.Errorf("%s is there", name)
					}
				}
				m.Unmount()
			}
		})
	}
}

// A device that ends too early is an error of the sync, and mended it is whole.
func TestBreak(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, k := range []Kind{Ext4, Writeback, XFS, Btrfs} {
		t.Run(k.Name, func(t *testing.T) {
			NeedKind(t, k)
			d := NewPlace(t).Format(k)
			m := d.Mount()
			write(t, m.Dir+"/synced", true)
			f, err := os.Create(m.Dir + "/lost")
			must(t, err)
			_, err = f.WriteString(content)
			must(t, err, d.Break(4096))
			if err := f.Sync(); !errors.Is(err, unix.EIO) {
				t.Errorf("sync: %v, want EIO", err)
			}
			must(t, d.Mend(), f.Close())
			cut := d.Copy()
			m.Unmount()
			m = cut.Mount()
			if !holds(m.Dir + "/synced") {
				t.Error("what was synced is lost")
			}
		})
	}
}

// A device that has nothing more to give is an error of the sync, and the filesystem lives
// on.
func TestStarve(t *testing.T) {
	if !alone(t) {
		return
	}
	d := NewPlace(t).Format(Ext4)
	m := d.Mount()
	write(t, m.Dir+"/synced", true)
	must(t, d.Starve())
	f, err := os.Create(m.Dir + "/refused")
	must(t, err)
	_, err = f.Write(make([]byte, mib))
	must(t, err)
	if err := f.Sync(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("sync: %v, want ENOSPC", err)
	}
	must(t, f.Close(), d.Feed())
	write(t, m.Dir+"/later", true)
	m.Unmount()
	m = d.Mount()
	if !holds(m.Dir+"/synced") || !holds(m.Dir+"/later") {
		t.Error("what was synced is lost")
	}
}

// A filesystem that was shut down or aborted refuses writes, and what it had not written
// by then is lost.
func TestShutdownAndAbort(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, tt := range []struct {
		name string
		kind Kind
		stop func(*Mount) error
		want error
	}{
		{"shutdown", Ext4, (*Mount).Shutdown, unix.EIO},
		{"shutdown", XFS, (*Mount).Shutdown, unix.EIO},
		{"abort", Ext4, (*Mount).Abort, unix.EROFS},
	} {
		t.Run(tt.kind.Name+"/"+tt.name, func(t *testing.T) {
			NeedKind(t, tt.kind)
			d := NewPlace(t).Format(tt.kind)
			m := d.Mount()
			write(t, m.Dir+"/synced", true)
			write(t, m.Dir+"/lost", false)
			must(t, tt.stop(m))
			if err := os.WriteFile(m.Dir+"/new", nil, 0o600); !errors.Is(err, tt.want) {
				t.Errorf("a new file: %v, want %v", err, tt.want)
			}
			m.Unmount()
			m = d.Mount()
			if !holds(m.Dir+"/synced") || holds(m.Dir+"/new") {
				t.Error("not what was there before")
			}
		})
	}
}

// While a file is open for writing, a filesystem does not become read-only.
func TestReadOnly(t *testing.T) {
	if !alone(t) {
		return
	}
	m := NewPlace(t).Mount(Ext4)
	f, err := os.Create(m.Dir + "/open")
	must(t, err)
	if err := m.ReadOnly(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("with an open file: %v, want EBUSY", err)
	}
	must(t, f.Close(), m.ReadOnly())
	if err := os.WriteFile(m.Dir+"/new", nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("a new file: %v, want EROFS", err)
	}
}

// dieEnv tells TestNothingIsLeft how to end.
const dieEnv = "HOLDFAST_TEST_DIE"

// However a test ends, nothing stays mounted and no device attached; and Alone fails where
// it did.
func TestNothingIsLeft(t *testing.T) {
	if how := os.Getenv(dieEnv); how != "" {
		if !Alone(t) {
			return
		}
		m := NewPlace(t).Mount(Ext4)
		write(t, m.Dir+"/a", false)
		if len(inUse(t)) < 3 { // the place, the mount, the device
			t.Fatal("nothing in use")
		}
		switch how {
		case "fail":
			t.Fatal("failed as it was told")
		case "busy":
			// Open until the process ends.
			if _, err := os.Open(m.Dir + "/a"); err != nil {
				t.Fatal(err)
			}
		case "die":
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		case "leave":
			os.Exit(0)
		}
		return
	}
	if !testrun.Thorough() {
		t.Skip("mounts filesystems: runs under HOLDFAST_REQUIRE_ALL=1, as root")
	}
	Need(t)
	for how, says := range map[string]string{
		"fail":  "failed as it was told",
		"busy":  "left open: ",
		"die":   "signal: killed",
		"leave": "TestNothingIsLeft did not come to its end there",
	} {
		out := failing(t, dieEnv+"="+how)
		if !strings.Contains(out, says) || !strings.Contains(out, "--- FAIL: TestNothingIsLeft (") {
			t.Errorf("%s: got\n%s\nwant %q", how, out, says)
		}
		if left := inUse(t); len(left) > 0 {
			t.Errorf("%s leaves %q", how, left)
		}
	}
}

// The process runs the test, and of its subtests those that were asked for.
func TestPartOf(t *testing.T) {
	asked := flag.Lookup("test.run")
	was := asked.Value.String()
	t.Cleanup(func() { must(t, asked.Value.Set(was)) })
	for _, tt := range []struct{ name, run, want string }{
		{"TestA", "", "^TestA$"},
		{"TestA", "Test", "^TestA$"},
		{"TestA", "Test/x$/y", "^TestA$/x$/y"},
		{"TestA/x.y", "Test/x/y", `^TestA$/^x\.y$/y`},
		{"TestA/x", "Test/x", "^TestA$/^x$"},
		{"TestA/x", "Test/x/(y|z)", "^TestA$/^x$/(y|z)"},
		{"TestA/x", "TestA/x/y|TestB/x/z", "^TestA$/^x$/y"},
		{"TestA/x", "TestA/x/y|TestA/w|^TestA$/^x$/z", "^TestA$/^x$/y|^TestA$/^x$/z"},
		{"TestA/x", "TestA/x/y|TestA", "^TestA$/^x$"},
		{"TestA/x", "TestA/x/y|TestA/.", "^TestA$/^x$"},
		{"TestA/x", "Test(A|B/)/x/[/|y]|TestB", "^TestA$/^x$/[/|y]"},
		{"TestA/x", `TestA/x/a\|b`, `^TestA$/^x$/a\|b`},
	} {
		must(t, asked.Value.Set(tt.run))
		if got := partOf(tt.name); got != tt.want {
			t.Errorf("%s, asked for %q: got %q, want %q", tt.name, tt.run, got, tt.want)
		}
	}
}

// failing runs this test again in another process, where it must fail, and gives what it
// says.
func failing(t *testing.T, env string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env, "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s goes by", env)
	}
	return string(out)
}
