//go:build unix

package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
)

// On a disk where everything is as it should be nothing weighs, but what this disk does
// not have.
func TestASoundDisk(t *testing.T) {
	_, p := simulated(t)
	r := examine(t, on(p), "/home")
	if r.Verdict() != Yes {
		t.Errorf("%s: %s; %s", r.Verdict(), weights(r, Unfit), weights(r, Warning))
	}
	if watch, _ := r.Check("watch"); watch.Outcome != Refused || watch.Seen != "this system has no such call" {
		t.Errorf("watch: %+v", watch)
	}
	want := Mechanisms{
		Lock: "flock", Publish: "rename over state.json, then a sync of its directory", Wake: "a look every second",
		Leases: "the boot clock, suspend included", V1: "link",
	}
	if r.Mechanisms != want {
		t.Errorf("mechanisms: %+v", r.Mechanisms)
	}
	if names := left(t, p, "/home"); len(names) != 0 || p.Open() != 0 {
		t.Errorf("left behind: %v, %d descriptors", names, p.Open())
	}
}

// Each fault turns the verdict as it should, is told by its errno, and leaves no scratch
// directory behind.
func TestFaultsTurnTheVerdict(t *testing.T) {
	disk := func(set func(*crashtest.Disk)) func(*testing.T) Machine {
		return func(t *testing.T) Machine {
			d, p := simulated(t)
			set(d)
			return on(p)
		}
	}
	failing := func(op fsguard.Op, err error) func(*testing.T) Machine {
		return func(t *testing.T) Machine {
			_, p := simulated(t)
			return on(crashtest.Wrap(p, crashtest.FailMatching(func(o fsguard.Op, path string) bool {
				return o == op && strings.Contains(path, scratchPrefix)
			}, err, 0)))
		}
	}
	changed := func(change func(*Machine)) func(*testing.T) Machine {
		return func(t *testing.T) Machine {
			_, p := simulated(t)
			m := on(p)
			change(&m)
			return m
		}
	}
	mounted := func(options string) func(*testing.T) Machine {
		return changed(func(m *Machine) {
			m.Mounts = func() ([]byte, error) {
				return []byte(plainMounts + "22 21 8:2 / /home rw - f2fs /dev/sda2 rw," + options + "\n"), nil
			}
		})
	}
	elsewhere := func(rest string) func(*testing.T) Machine {
		return changed(func(m *Machine) {
			m.Mounts = func() ([]byte, error) { return []byte(plainMounts + "22 21 0:2 / /home rw - " + rest + "\n"), nil }
		})
	}
	on := func(kind string, network bool) func(*testing.T) Machine {
		return disk(func(d *crashtest.Disk) { d.SetSpace(fsguard.Space{Type: kind, Network: network}) })
	}
	for name, c := range map[string]struct {
		machine   func(*testing.T) Machine
		verdict   Verdict
		weighs    string // the checks that decide
		check     string // one of which this is to be told
		outcome   Outcome
		errno     string
		seen      string // part of what is told
		mechanism string // part of what would be chosen
	}{
		"no locks":               {disk(func(d *crashtest.Disk) { d.SetLockError(syscall.ENOSYS) }), No, "file_lock directory_lock", "file_lock", Refused, "ENOSYS", "", "Lock: "},
		"no directory syncs":     {disk(func(d *crashtest.Disk) { d.SetSyncDirError(syscall.EINVAL) }), No, "directory_sync", "directory_sync", Refused, "EINVAL", "", "Publish: "},
		"read-only":              {disk(func(d *crashtest.Disk) { d.SetReadOnly(true) }), No, scratchDirectory, "rename_over", NotTried, "", WithoutScratch, ""},
		"read-only, the cause":   {disk(func(d *crashtest.Disk) { d.SetReadOnly(true) }), No, scratchDirectory, scratchDirectory, Refused, "EROFS", "", ""},
		"links refused":          {disk(func(d *crashtest.Disk) { d.SetLinkError(syscall.EACCES) }), Yes, "", "hard_link", Refused, "EACCES", "", "V1:rename that replaces nothing"},
		"links are symlinks":     {disk(func(d *crashtest.Disk) { d.SetLinksAreSymlinks(true) }), Yes, "", "hard_link", Broken, "", "link2symlink", "V1:rename that replaces nothing"},
		"nothing for v1":         {disk(func(d *crashtest.Disk) { d.SetLinkError(syscall.EPERM); d.SetMoveNewError(syscall.EINVAL) }), Yes, "", "rename_no_replace", Refused, "EINVAL", "", "V1: "},
		"sizes lie":              {disk(func(d *crashtest.Disk) { d.SetSizeLies(true) }), Warnings, "size_after_write", "size_after_write", Broken, "", "told as 0", ""},
		"no space":               {disk(func(d *crashtest.Disk) { d.SetFree(1 << 20) }), No, "free_space", "free_space", Told, "", "1 MiB are free, and the floor is 8 MiB", ""},
		"network":                {on("nfs", true), No, "filesystem", "filesystem", Told, "", "network filesystem", ""},
		"tmpfs":                  {on("tmpfs", false), Warnings, "filesystem", "filesystem", Told, "", "survives a reboot", ""},
		"fuse":                   {on("fuse", false), Warnings, "filesystem", "filesystem", Told, "", "stands behind it", ""},
		"vfat":                   {on("vfat", false), Warnings, "filesystem", "filesystem", Told, "", "no journal", ""},
		"file syncs fail":        {failing(fsguard.OpSync, syscall.EIO), No, "file_sync", "file_sync", Refused, "EIO", "", ""},
		"renames fail":           {failing(fsguard.OpRename, syscall.EXDEV), No, "rename_over", "rename_over", Refused, "EXDEV", "", "Publish: "},
		"creates fail":           {failing(fsguard.OpCreate, syscall.EDQUOT), No, "private_modes exclusive_create rename_over file_sync size_after_write directory_sync allocate file_lock", "exclusive_create", Refused, "EDQUOT", "", ""},
		"no room can be kept":    {failing(fsguard.OpAllocate, syscall.EOPNOTSUPP), No, "allocate", "allocate", Refused, "ENOTSUP", "", ""},
		"writes fail":            {failing(fsguard.OpWrite, syscall.ENOSPC), No, "private_modes exclusive_create rename_over file_sync size_after_write directory_sync", "file_sync", Refused, "ENOSPC", "", ""},
		"no watch":               {failing(fsguard.OpWatch, syscall.EMFILE), Yes, "", "watch", Refused, "EMFILE", "", "Wake:a look every second"},
		"no barriers on f2fs":    {mounted("fsync_mode=nobarrier"), Warnings, "mount_options", "mount_options", Told, "", "/home is mounted with fsync_mode=nobarrier", ""},
		"no barriers":            {mounted("nobarrier"), Warnings, "mount_options", "mount_options", Told, "", "nobarrier", ""},
		"barriers off":           {mounted("barrier=0"), Warnings, "mount_options", "mount_options", Told, "", "barrier=0", ""},
		"syncs left out":         {mounted("volatile"), Warnings, "mount_options", "mount_options", Told, "", "may lose everything", ""},
		"data by writeback":      {mounted("data=writeback"), Yes, "", "mount_options", Told, "", "no option of /home turns barriers off", ""},
		"no device":              {elsewhere("overlay overlay rw"), Yes, "", "mount_options", Told, "", "overlay is mounted there, on no device of its own", ""},
		"in memory":              {elsewhere("tmpfs none rw"), Yes, "", "mount_options", Told, "", "tmpfs is mounted there, on no device of its own", ""},
		"a program's":            {elsewhere("fuse /dev/fuse rw"), Yes, "", "mount_options", Told, "", "fuse is mounted there, on no device of its own", ""},
		"no list of mounts":      {changed(func(m *Machine) { m.Mounts = func() ([]byte, error) { return nil, fs.ErrPermission } }), Yes, "", "mount_options", NotTried, "", "permission denied", ""},
		"no boot id":             {changed(func(m *Machine) { m.Boot = func() Boot { return Boot{Clock: true} } }), Yes, "", "boot_clock", Broken, "", "boot id", "Leases:the wall clock"},
		"no boot clock":          {changed(func(m *Machine) { m.Boot = func() Boot { return Boot{ID: "b"} } }), Yes, "", "boot_clock", Broken, "", "the clock cannot", "Leases:the wall clock"},
		"neither of them":        {changed(func(m *Machine) { m.Boot = func() Boot { return Boot{} } }), Yes, "", "boot_clock", NotTried, "", "neither", "Leases:the wall clock"},
		"somebody else's":        {changed(func(m *Machine) { m.UID++ }), No, "owner private_modes", "owner", Told, "", "it belongs to user", ""},
		"accepted":               {changed(func(m *Machine) { m.UID++; m.AllowUnsafeRoot = true }), Warnings, "owner private_modes", "owner", Told, "", "accepted, as was asked", ""},
		"the store does not run": {changed(func(m *Machine) { m.Trial = func(context.Context, string) error { return syscall.EIO } }), No, "store", "store", Refused, "EIO", "", ""},
		"links left out":         {changed(func(m *Machine) { m.Skip = map[string]string{"hard_link": "why"} }), Yes, "", "hard_link", NotTried, "", "why", "V1:rename that"},
		"locks left out":         {changed(func(m *Machine) { m.Skip = map[string]string{"file_lock": "why"} }), Warnings, "file_lock", "file_lock", NotTried, "", "why", "Lock: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.machine(t)
			r := examine(t, m, "/home")
			if r.Verdict() != c.verdict {
				t.Errorf("the verdict is %q, want %q", r.Verdict(), c.verdict)
			}
			decide := weights(r, Unfit)
			if c.verdict == Warnings {
				decide = weights(r, Warning)
			}
			if decide != c.weighs {
				t.Errorf("%q decides, want %q", decide, c.weighs)
			}
			got, _ := r.Check(c.check)
			if got.Outcome != c.outcome || got.Errno != c.errno || !strings.Contains(got.Seen, c.seen) {
				t.Errorf("%+v; want %s, %q, %q", got, c.outcome, c.errno, c.seen)
			}
			if by, is, ok := strings.Cut(c.mechanism, ":"); ok {
				got := map[string]string{"Lock": r.Mechanisms.Lock, "Publish": r.Mechanisms.Publish, "Wake": r.Mechanisms.Wake, "Leases": r.Mechanisms.Leases, "V1": r.Mechanisms.V1}[by]
				if is = strings.TrimSpace(is); (got == "") != (is == "") || !strings.HasPrefix(got, is) {
					t.Errorf("%s by %q, want %q", by, got, is)
				}
			}
			if names := left(t, m.FS, "/home"); len(names) != 0 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

// Where anything fails, at every operation in turn, the examination ends, and nothing is
// left that could be removed.
func TestEveryOperationMayFail(t *testing.T) {
	_, p := simulated(t)
	count := crashtest.Wrap(p, crashtest.Plan{Reads: true})
	examine(t, on(count), "/home")
	total := len(count.Trace())
	if total < 100 {
		t.Fatalf("only %d operations", total)
	}
	step := 1
	if !testrun.Thorough() || testrun.RaceDetector() {
		step = 9
	}
	tried, kept := 0, 0
	for n := 1; n <= total; n += step {
		tried++
		_, p := simulated(t)
		plan := crashtest.FailAt(n, syscall.EIO)
		plan.Reads = true
		w := crashtest.Wrap(p, plan)
		_, err := on(w).Examine(t.Context(), "/home")
		if open := w.Open(); len(open) != 0 {
			t.Errorf("operation %d: left open: %v", n, open)
		}
		names := left(t, p, "/home")
		if len(names) > 0 && !errors.Is(err, syscall.EIO) {
			t.Errorf("operation %d: left behind %v, with the error %v", n, names, err)
		}
		kept += len(names)
	}
	if kept == 0 || kept > tried/2 {
		t.Errorf("of %d failures %d left the scratch directory; only those of its removal may", tried, kept)
	}
}

func TestTheSystemsOwn(t *testing.T) {
	m := System()
	m.Floor = 1
	m.Trial = func(_ context.Context, dir string) error { return os.Mkdir(dir, 0o700) }
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := examine(t, m, dir)
	for _, name := range []string{
		scratchDirectory, "private_modes", "exclusive_create", "rename_over", "file_sync", "size_after_write",
		"directory_sync", "allocate", "file_lock", "directory_lock", "watch", "store",
	} {
		if c, _ := r.Check(name); c.Outcome != Works || c.Weight != Fit {
			t.Errorf("%+v", c)
		}
	}
	if r.Verdict() == No || r.Filesystem == "" || r.FreeBytes == 0 || !r.Exists || r.Place != dir {
		t.Errorf("%+v", r)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
}

// What is not there is tried in its parent; what is there is not touched.
func TestThePlace(t *testing.T) {
	_, p := simulated(t)
	root, err := p.OpenRoot("/home")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.Mkdir("other"), root.Mkdir(scratchPrefix+"old"), root.Mkdir(KillPrefix+"1"), root.Mkdir(PowerName),
		root.WriteFile("file", []byte("x"))); err != nil {
		t.Fatal(err)
	}
	r := examine(t, on(p), "/home/store")
	if r.Dir != "/home/store" || r.Place != "/home" || r.Exists || r.Verdict() != Yes {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(r.Leftovers, []string{scratchPrefix + "old", KillPrefix + "1", PowerName}) {
		t.Errorf("left over: %v", r.Leftovers)
	}
	if r.Holds != "" {
		t.Errorf("of the parent it says that it holds %q", r.Holds)
	}
	if r := examine(t, on(p), "/home"); r.Holds != "file" {
		t.Errorf("it holds %q", r.Holds)
	}
	if names := left(t, p, "/home"); !slices.Equal(names, []string{scratchPrefix + "old", "file", "holdfast-kill-test-1", "holdfast-power-test", "other"}) {
		t.Errorf("it holds %v", names)
	}
	if _, err := on(p).Examine(t.Context(), "/home/a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a parent: %v", err)
	}
	if _, err := on(p).Examine(t.Context(), "/home/file"); !errors.Is(err, fsguard.ErrNotPlain) {
		t.Errorf("a file: %v", err)
	}
}

// An interrupt ends it between two checks, and the scratch directory goes.
func TestAnInterruptCleansUp(t *testing.T) {
	for _, during := range []string{"boot_clock", "store"} {
		t.Run(during, func(t *testing.T) {
			_, p := simulated(t)
			ctx, cancel := context.WithCancel(t.Context())
			m := on(p)
			if during == "store" {
				m.Trial = func(ctx context.Context, _ string) error {
					cancel()
					return ctx.Err()
				}
			} else {
				m.Boot = func() Boot {
					cancel()
					return Boot{}
				}
			}
			r, err := m.Examine(ctx, "/home")
			if !errors.Is(err, context.Canceled) || len(r.Checks) == 0 || r.Checks[len(r.Checks)-1].Name != during {
				t.Errorf("%v after %d checks, want it to end with %s", err, len(r.Checks), during)
			}
			if names := left(t, p, "/home"); len(names) != 0 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

// The scratch directory goes with everything in it, and a symlink in it is not followed.
func TestTheSweepStaysInside(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := System()
	m.Trial = func(_ context.Context, store string) error {
		return errors.Join(os.MkdirAll(filepath.Join(store, "a", "b"), 0o700), os.WriteFile(filepath.Join(store, "a", "f"), nil, 0o600),
			os.Symlink(dir, filepath.Join(store, "a", "up")))
	}
	examine(t, m, dir)
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 || names[0].Name() != "kept" {
		t.Errorf("it holds %v, %v", names, err)
	}
}
