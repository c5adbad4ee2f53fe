//go:build unix

package fsguard

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenDir(t *testing.T) { each(t, testOpenDir) }

func testOpenDir(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	for _, s := range strange(t, path) {
		t.Run(s.name, func(t *testing.T) {
			sub, err := d.OpenDir(s.name)
			if s.asDir != nil {
				wantErr(t, err, OpOpenDir, s.asDir)
				return
			}
			ok(t, err)
			defer sub.Close()
			if sub.Name() != s.name {
				t.Errorf("name: got %q, want %q", sub.Name(), s.name)
			}
			creation(t, sub, "inside", "x")
			if got := must(os.ReadFile(path + "/" + s.name + "/inside"))(t); string(got) != "x" {
				t.Errorf("got %q, want x", got)
			}
			if got, want := must(sub.Info())(t).Identity, must(d.Lstat(s.name))(t).Identity; got != want {
				t.Errorf("identity: got %v, want %v", got, want)
			}
		})
	}
}

// "." is another description of the same directory.
func TestOpenDirDot(t *testing.T) { each(t, testOpenDirDot) }

func testOpenDirDot(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	dot := must(d.OpenDir("."))(t)
	defer dot.Close()
	if got, want := must(dot.Info())(t).Identity, must(d.Info())(t).Identity; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	ok(t, d.Lock(Exclusive))
	if got := must(dot.TryLock(Exclusive))(t); got {
		t.Error("both descriptions hold the lock")
	}
	creation(t, dot, "a", "x")
	if got := content(t, d, "a"); got != "x" {
		t.Errorf("got %q, want x", got)
	}
}

// A directory whose two descriptors disagree is not used.
func TestOpenDirReplaced(t *testing.T) {
	d, _ := tempDir(t, OS())
	ok(t, d.Mkdir("a"))
	ok(t, d.Mkdir("b"))
	a := must(d.OpenDir("a"))(t).(*osDir)
	b := must(d.OpenDir("b"))(t).(*osDir)
	defer a.Close()
	defer b.Close()
	ok(t, a.sameAsRoot())
	a.root, b.root = b.root, a.root
	if err := a.sameAsRoot(); err != errReplaced {
		t.Errorf("got %v, want %v", err, errReplaced)
	}
}

// While others swap what stands at the name, OpenDir returns one directory, or an
// error that says what it met, but never a Dir whose descriptors are on two.
func TestOpenDirWhileSwapped(t *testing.T) { each(t, testOpenDirWhileSwapped) }

func testOpenDirWhileSwapped(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	ok(t, d.Mkdir("x"))
	ok(t, d.Mkdir("y"))
	ok(t, os.Symlink("y", path+"/link"))
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		swaps := [][2]string{{"x", "t"}, {"y", "x"}, {"t", "y"}, {"x", "t"}, {"link", "x"}, {"x", "link"}, {"t", "x"}}
		for !stop.Load() {
			for _, s := range swaps {
				if err := d.Rename(s[0], s[1]); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for range 3000 {
		sub, err := d.OpenDir("x")
		if err != nil {
			if !errors.Is(err, ErrSymlink) && !errors.Is(err, errReplaced) && !errors.Is(err, fs.ErrNotExist) &&
				!errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
				t.Errorf("got %v", err)
			}
			continue
		}
		if sub, isOS := sub.(*osDir); isOS {
			if err := sub.sameAsRoot(); err != nil {
				t.Error(err)
			}
		}
		ok(t, sub.Close())
	}
	stop.Store(true)
	ok(t, <-done)
}

func TestPinnedDirectoryOutlivesItsPath(t *testing.T) {
	base := t.TempDir()
	ok(t, os.Mkdir(base+"/a", 0o700))
	d := must(OS().OpenRoot(base + "/a"))(t)
	defer d.Close()
	before := must(d.Info())(t).Identity
	ok(t, os.Rename(base+"/a", base+"/b"))
	ok(t, os.Mkdir(base+"/a", 0o700)) // an impostor

	ok(t, d.WriteFile("written", []byte("x")))
	creation(t, d, "created", "x")
	ok(t, d.Mkdir("dir"))
	sub := must(d.OpenDir("dir"))(t)
	defer sub.Close()
	ok(t, d.Sync())
	want := []string{"created", "dir", "written"}
	if got := must(d.ReadDir())(t); !slices.Equal(got, want) {
		t.Errorf("pinned: got %q, want %q", got, want)
	}
	if got := len(must(os.ReadDir(base + "/a"))(t)); got != 0 {
		t.Errorf("the impostor has %d entries", got)
	}
	if got := len(must(os.ReadDir(base + "/b"))(t)); got != len(want) {
		t.Errorf("the renamed directory has %d entries, want %d", got, len(want))
	}
	if got := must(d.Info())(t).Identity; got != before {
		t.Errorf("identity: got %v, want %v", got, before)
	}
	if now := must(OS().Stat(base + "/a"))(t).Identity; now == before {
		t.Error("Stat of the path still finds the pinned directory")
	}
	if now := must(OS().Stat(base + "/b"))(t).Identity; now != before {
		t.Errorf("Stat of the new path: got %v, want %v", now, before)
	}
}

func TestReadDirSortedAndConcurrent(t *testing.T) { each(t, testReadDirSortedAndConcurrent) }

func testReadDirSortedAndConcurrent(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	want := []string{".hidden", "A", "a", "b", "c"}
	for _, name := range []string{"c", "a", ".hidden", "b", "A"} {
		creation(t, d, name, "")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got, err := d.ReadDir(); err != nil || !slices.Equal(got, want) {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestClosedDir(t *testing.T) { each(t, testClosedDir) }

func testClosedDir(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	creation(t, d, "a", "x")
	ok(t, d.Mkdir("sub"))
	raw := pinnedOf(d)
	var number int
	ok(t, raw.control(func(fd int) error { number = fd; return nil }))
	ok(t, d.Close())
	wantErr(t, d.Close(), OpClose, fs.ErrClosed)

	if _, err := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("the descriptor is still open: %v", err)
	}
	if d, isOS := d.(*osDir); isOS {
		if _, err := d.root.Open("."); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("the root is still open: %v", err)
		}
	}
	_, err := d.Info()
	wantErr(t, err, OpInfo, fs.ErrClosed)
	_, err = d.Lstat("a")
	wantErr(t, err, OpLstat, fs.ErrClosed)
	_, err = d.ReadDir()
	wantErr(t, err, OpReadDir, fs.ErrClosed)
	_, err = d.OpenDir("sub")
	wantErr(t, err, OpOpenDir, fs.ErrClosed)
	_, err = d.OpenDir(".")
	wantErr(t, err, OpOpenDir, fs.ErrClosed)
	_, err = d.Open("a")
	wantErr(t, err, OpOpen, fs.ErrClosed)
	_, err = d.Create("b")
	wantErr(t, err, OpCreate, fs.ErrClosed)
	_, err = d.Space()
	wantErr(t, err, OpSpace, fs.ErrClosed)
	_, err = d.TryLock(Shared)
	wantErr(t, err, OpLock, fs.ErrClosed)
	wantErr(t, d.Mkdir("b"), OpMkdir, fs.ErrClosed)
	wantErr(t, d.WriteFile("b", nil), OpWriteFile, fs.ErrClosed)
	wantErr(t, d.Rename("a", "b"), OpRename, fs.ErrClosed)
	wantErr(t, d.Exchange("a", "b"), OpExchange, fs.ErrClosed)
	open, _ := tempDir(t, fsys)
	creation(t, open, "a", "x")
	for _, dirs := range [][2]Dir{{d, d}, {d, open}, {open, d}} {
		wantErr(t, dirs[0].Move("a", dirs[1], "b"), OpMove, fs.ErrClosed)
		wantErr(t, dirs[0].MoveNew("a", dirs[1], "b"), OpMoveNew, fs.ErrClosed)
		wantErr(t, dirs[0].Link("a", dirs[1], "b"), OpLink, fs.ErrClosed)
	}
	wantErr(t, d.Remove("a"), OpRemove, fs.ErrClosed)
	wantErr(t, d.RemoveDir("sub"), OpRemoveDir, fs.ErrClosed)
	wantErr(t, d.Sync(), OpSyncDir, fs.ErrClosed)
	wantErr(t, d.Lock(Shared), OpLock, fs.ErrClosed)
	wantErr(t, d.Unlock(), OpUnlock, fs.ErrClosed)
}
