//go:build unix

package fsguard

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest/reexec"
	"example.com/holdfast/internal/crashtest/testrun"
)

// roles are the parts that this binary plays in a process of its own.
var roles = map[string]func(args []string) error{}

func TestMain(m *testing.M) { reexec.Main(m, roles) }

// child prepares this binary in a role.
func child(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := reexec.Command(t, role, args...)
	cmd.Stderr = nil // for who reads it
	// The race detector would sleep for a second at each exit.
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// runChild runs a role to its end and fails the test if it did not exit with 0.
func runChild(t *testing.T, role string, args ...string) string {
	t.Helper()
	out, err := child(t, role, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("role %s %q: %v\n%s", role, args, err, out)
	}
	return string(out)
}

var skip = testrun.Skip

// systems are both implementations. What is said of one holds for the other.
var systems = []struct {
	name string
	fsys FS
}{{"os", OS()}, {"paths", Paths()}}

// each runs a test on both.
func each(t *testing.T, test func(t *testing.T, fsys FS)) {
	t.Helper()
	for _, s := range systems {
		t.Run(s.name, func(t *testing.T) { test(t, s.fsys) })
	}
}

// system is the implementation of that name, for a process that was started with it.
func system(name string) FS {
	for _, s := range systems {
		if s.name == name {
			return s.fsys
		}
	}
	panic("no system " + name)
}

// nameOf is what system knows it by.
func nameOf(fsys FS) string {
	for _, s := range systems {
		if s.fsys == fsys {
			return s.name
		}
	}
	panic("an unknown system")
}

// pinnedOf is what a Dir of either has inside.
func pinnedOf(d Dir) *pinned { return d.(interface{ base() *pinned }).base() }

// tempDir pins a fresh directory.
func tempDir(t *testing.T, fsys FS) (Dir, string) {
	t.Helper()
	path := t.TempDir()
	d, err := fsys.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	})
	return d, path
}

// must returns v or ends the test.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// ok ends the test on an error.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr checks that err is an *Error of op that wraps want.
func wantErr(t *testing.T, err error, op Op, want error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T %v, want an *Error", err, err)
	}
	if e.Op != op || !errors.Is(err, want) {
		t.Fatalf("got %q (op %s), want op %s and %q", err, e.Op, op, want)
	}
}

// creation makes a file with content and closes it.
func creation(t *testing.T, d Dir, name, content string) {
	t.Helper()
	f := must(d.Create(name))(t)
	defer f.Close()
	if n, err := f.WriteAt([]byte(content), 0); err != nil || n != len(content) {
		t.Fatalf("write %s: got %d, %v", name, n, err)
	}
}

// content reads a file through the package.
func content(t *testing.T, d Dir, name string) string {
	t.Helper()
	f := must(d.Open(name))(t)
	defer f.Close()
	return string(must(ReadAll(f, 1<<20))(t))
}

// strange puts everything that is not a plain file of one link into dir and
// returns what opening each as a file, and as a directory, must say.
func strange(t *testing.T, dir string) []strangeName {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	ok(t, os.WriteFile(at("target"), []byte("secret"), 0o600))
	ok(t, os.Mkdir(at("directory"), 0o700))
	ok(t, os.Symlink("target", at("symlink")))
	ok(t, os.Symlink("directory", at("symlink-dir")))
	ok(t, os.Symlink("nothing", at("dangling")))
	ok(t, os.Symlink("loop", at("loop")))
	ok(t, syscall.Mkfifo(at("fifo"), 0o600))
	ok(t, os.WriteFile(at("linked"), []byte("twice"), 0o600))
	ok(t, os.Link(at("linked"), at("linked-2")))
	return []strangeName{
		{"directory", ErrNotPlain, nil, fs.ModeDir, 2},
		{"symlink", ErrSymlink, ErrSymlink, fs.ModeSymlink, 1},
		{"symlink-dir", ErrSymlink, ErrSymlink, fs.ModeSymlink, 1},
		{"dangling", ErrSymlink, ErrSymlink, fs.ModeSymlink, 1},
		{"loop", ErrSymlink, ErrSymlink, fs.ModeSymlink, 1},
		{"fifo", ErrNotPlain, ErrNotPlain, fs.ModeNamedPipe, 1},
		{"linked", ErrLinked, ErrNotPlain, 0, 2},
		{"linked-2", ErrLinked, ErrNotPlain, 0, 2},
		{"target", nil, ErrNotPlain, 0, 1},
		{"missing", fs.ErrNotExist, fs.ErrNotExist, 0, 0},
	}
}

type strangeName struct {
	name          string
	asFile, asDir error
	mode          fs.FileMode
	links         uint64 // 0: nothing is there
}

// badNames are no single component.
var badNames = []string{"", ".", "..", "/", "a/b", "/a", "a/", "../a", "./a", "a\x00b"}
