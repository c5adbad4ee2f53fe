//go:build unix

package fsguard

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWriteFile(t *testing.T) { each(t, testWriteFile) }

func testWriteFile(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	ok(t, d.WriteFile("a", []byte("one")))
	first := must(d.Lstat("a"))(t)
	old := must(d.Open("a"))(t)
	defer old.Close()
	ok(t, os.Chmod(path+"/a", 0o644))
	ok(t, d.WriteFile("a", []byte("two")))
	second := must(d.Lstat("a"))(t)
	if first.Identity == second.Identity {
		t.Error("overwritten in place")
	}
	if second.Mode != fileMode {
		t.Errorf("mode: got %v, want 0600: the old file's must not be taken over", second.Mode)
	}
	if got := content(t, d, "a"); got != "two" {
		t.Errorf("got %q, want two", got)
	}
	if got := string(must(ReadAll(old, 100))(t)); got != "one" {
		t.Errorf("a reader of the old file: got %q, want one", got)
	}
	ok(t, d.WriteFile("a", nil))
	if got := content(t, d, "a"); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	if got := must(d.ReadDir())(t); !slices.Equal(got, []string{"a"}) {
		t.Errorf("left over: %q", got)
	}
}

// WriteFile replaces a symlink or a link itself, and never what it leads to.
func TestWriteFileOverStrangeNames(t *testing.T) { each(t, testWriteFileOverStrangeNames) }

func testWriteFileOverStrangeNames(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	for _, s := range strange(t, path) {
		err := d.WriteFile(s.name, []byte("mine"))
		if s.mode == fs.ModeDir {
			wantErr(t, err, OpWriteFile, fs.ErrExist)
			continue
		}
		ok(t, err)
		if got := content(t, d, s.name); got != "mine" {
			t.Errorf("%s: got %q", s.name, got)
		}
		ok(t, d.Remove(s.name))
	}
	for _, name := range must(d.ReadDir())(t) {
		if strings.HasPrefix(name, ".") {
			t.Errorf("a failed write left %s", name)
		}
		if name == "nothing" {
			t.Error("a dangling symlink was followed")
		}
	}
}

func TestWriteFileLongName(t *testing.T) { each(t, testWriteFileLongName) }

func testWriteFileLongName(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	ok(t, d.WriteFile(strings.Repeat("n", 235), nil))
	wantErr(t, d.WriteFile(strings.Repeat("n", 255), nil), OpWriteFile, unix.ENAMETOOLONG)
}

func TestRename(t *testing.T) { each(t, testRename) }

func testRename(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	strange(t, path)
	creation(t, d, "a", "new")
	before := must(d.Lstat("a"))(t).Identity
	for _, over := range []string{"fresh", "target", "symlink", "dangling", "fifo", "linked"} {
		from := "a"
		ok(t, d.Rename(from, over))
		if got := must(d.Lstat(over))(t).Identity; got != before {
			t.Errorf("%s: got %v, want %v", over, got, before)
		}
		_, err := d.Lstat(from)
		wantErr(t, err, OpLstat, fs.ErrNotExist)
		ok(t, d.Rename(over, from))
	}
	wantErr(t, d.Rename("a", "directory"), OpRename, unix.EISDIR)
	wantErr(t, d.Rename("directory", "a"), OpRename, unix.ENOTDIR)
	wantErr(t, d.Rename("missing", "b"), OpRename, fs.ErrNotExist)
}

// A reader always finds the name, as one whole file or the other, also one that
// opens in the instant in which the file loses its name to the next.
func TestRenameIsAtomic(t *testing.T) { each(t, testRenameIsAtomic) }

func testRenameIsAtomic(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	versions := []string{strings.Repeat("a", 5000), strings.Repeat("b", 7000)}
	creation(t, d, "state", versions[0])
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		for i := 0; !stop.Load(); i++ {
			f, err := d.Create("temp")
			if err == nil {
				_, err = f.WriteAt([]byte(versions[i%2]), 0)
				f.Close()
			}
			if err == nil {
				err = d.Rename("temp", "state")
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	seen := map[string]int{}
	for range 2000 {
		f, err := d.Open("state")
		if err != nil {
			t.Errorf("open: %v", err)
			break
		}
		data, err := ReadAll(f, 1<<20)
		f.Close()
		if err != nil || !slices.Contains(versions, string(data)) {
			t.Errorf("got %d bytes, %v", len(data), err)
			break
		}
		seen[string(data[:1])]++
	}
	stop.Store(true)
	ok(t, <-done)
	if len(seen) != 2 {
		t.Errorf("saw only %v: nothing was replaced meanwhile", seen)
	}
}

// Remove and RemoveDir never do each other's work.
func TestRemove(t *testing.T) { each(t, testRemove) }

func testRemove(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	for _, s := range strange(t, path) {
		if s.links == 0 {
			wantErr(t, d.Remove(s.name), OpRemove, fs.ErrNotExist)
			wantErr(t, d.RemoveDir(s.name), OpRemoveDir, fs.ErrNotExist)
			continue
		}
		wrong, right := d.RemoveDir, d.Remove
		if s.mode == fs.ModeDir {
			wrong, right = right, wrong
		}
		if err := wrong(s.name); err == nil {
			t.Errorf("%s: the wrong method removed it", s.name)
		}
		if _, err := d.Lstat(s.name); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if s.name == "symlink" || s.name == "symlink-dir" {
			continue // look at what they lead to first
		}
		ok(t, right(s.name))
		_, err := d.Lstat(s.name)
		wantErr(t, err, OpLstat, fs.ErrNotExist)
	}
	ok(t, d.Remove("symlink"))

	ok(t, d.Mkdir("full"))
	full := must(d.OpenDir("full"))(t)
	defer full.Close()
	creation(t, full, "a", "")
	if err := d.RemoveDir("full"); err == nil {
		t.Error("removed a directory that was not empty")
	}
	ok(t, full.Remove("a"))
	ok(t, d.RemoveDir("full"))
}

func TestRemoveTakesTheLinkNotTheTarget(t *testing.T) { each(t, testRemoveTakesTheLinkNotTheTarget) }

func testRemoveTakesTheLinkNotTheTarget(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	strange(t, path)
	for _, name := range []string{"symlink", "symlink-dir", "dangling", "linked-2"} {
		ok(t, d.Remove(name))
	}
	for _, name := range []string{"target", "directory", "linked"} {
		if _, err := d.Lstat(name); err != nil {
			t.Error(err)
		}
	}
}
