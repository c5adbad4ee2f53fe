//go:build unix

package fsguard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func init() { roles["umask"] = umaskRole }

func TestCreate(t *testing.T) { each(t, testCreate) }

func testCreate(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	for _, s := range strange(t, path) {
		_, err := d.Create(s.name)
		if s.links > 0 {
			wantErr(t, err, OpCreate, fs.ErrExist)
		} else {
			ok(t, err)
		}
		err = d.Mkdir(s.name)
		wantErr(t, err, OpMkdir, fs.ErrExist)
	}
	if _, err := d.Lstat("nothing"); err == nil {
		t.Error("a dangling symlink was followed")
	}
	f := must(d.Create("new"))(t)
	defer f.Close()
	must(f.WriteAt([]byte("abc"), 0))(t)
	if got := string(must(ReadAll(f, 10))(t)); got != "abc" {
		t.Errorf("read back: got %q, want abc", got)
	}
}

func TestMkdirInheritedSetgid(t *testing.T) { each(t, testMkdirInheritedSetgid) }

func testMkdirInheritedSetgid(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	ok(t, os.Chmod(path, fs.ModeSetgid|0o755))
	ok(t, d.Mkdir("sub"))
	if got := must(d.Lstat("sub"))(t).Mode.Perm(); got != dirMode {
		t.Errorf("got %v, want %#o", got, dirMode)
	}
}

// Modes are exact whatever the umask. The umask belongs to the process, so a
// child sets it; root can do anything anyhow, so the child becomes nobody.
func TestModesUnderUmask(t *testing.T) { each(t, testModesUnderUmask) }

func testModesUnderUmask(t *testing.T, fsys FS) {
	for _, umask := range []string{"000", "022", "077", "0777"} {
		t.Run(umask, func(t *testing.T) {
			dir := t.TempDir()
			ok(t, os.WriteFile(filepath.Join(dir, "replaced"), nil, 0o600))
			ok(t, os.Chmod(filepath.Join(dir, "replaced"), 0o666))
			uid := os.Getuid()
			if uid == 0 {
				uid = 65534
				for _, p := range []string{filepath.Dir(dir), dir, filepath.Join(dir, "replaced")} {
					ok(t, os.Chown(p, uid, uid))
				}
			}
			runChild(t, "umask", umask, strconv.Itoa(uid), nameOf(fsys), dir)
			checkModes(t, dir)
		})
	}
}

// checkModes checks what makeAll left.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	for name, want := range map[string]fs.FileMode{
		"created": 0o600, "written": 0o600, "replaced": 0o600,
		"made": fs.ModeDir | 0o700, "made/inside": fs.ModeDir | 0o700,
	} {
		if got := must(os.Lstat(filepath.Join(dir, name)))(t).Mode(); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// umaskRole takes a umask, a user, a system and a directory.
func umaskRole(args []string) error {
	umask, err := strconv.ParseUint(args[0], 8, 32)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if uid != os.Getuid() {
		if err := syscall.Setgid(uid); err != nil {
			return err
		}
		if err := syscall.Setuid(uid); err != nil {
			return err
		}
	}
	syscall.Umask(int(umask))
	return makeAll(system(args[2]), args[3])
}

// makeAll makes something in every way that there is.
func makeAll(fsys FS, dir string) error {
	d, err := fsys.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	f, err := d.Create("created")
	if err != nil {
		return err
	}
	defer f.Close()
	for _, name := range []string{"written", "replaced"} {
		if err := d.WriteFile(name, []byte("x")); err != nil {
			return err
		}
	}
	if err := d.Mkdir("made"); err != nil {
		return err
	}
	made, err := d.OpenDir("made")
	if err != nil {
		return err
	}
	defer made.Close()
	if err := made.Mkdir("inside"); err != nil {
		return fmt.Errorf("inside: %w", err)
	}
	return nil
}
