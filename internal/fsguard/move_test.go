//go:build unix

package fsguard

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// twoNames are the operations on two names.
var twoNames = []struct {
	op Op
	do func(d Dir, oldName string, to Dir, newName string) error
}{
	{OpMove, Dir.Move},
	{OpMoveNew, Dir.MoveNew},
	{OpLink, Dir.Link},
}

// needMoveNew leaves a test out where the system or this filesystem has no such call.
func needMoveNew(t *testing.T, d Dir) {
	t.Helper()
	creation(t, d, "probe", "")
	err := d.MoveNew("probe", d, "probed")
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EINVAL) {
		skip(t, "nothing is moved without replacing here: "+err.Error())
	}
	ok(t, err)
	ok(t, d.Remove("probed"))
}

// What each of the three does to every kind of source and target, inside a directory
// and across two.
func TestTwoNames(t *testing.T) { each(t, testTwoNames) }

func testTwoNames(t *testing.T, fsys FS) {
	for _, tt := range []struct {
		name, from, to      string
		move, moveNew, link error
	}{
		{"to a free name", "a", "free", nil, nil, nil},
		{"over a file", "a", "target", nil, fs.ErrExist, fs.ErrExist},
		{"over a symlink", "a", "symlink", nil, fs.ErrExist, fs.ErrExist},
		{"over a symlink to a directory", "a", "symlink-dir", nil, fs.ErrExist, fs.ErrExist},
		{"over a dangling symlink", "a", "dangling", nil, fs.ErrExist, fs.ErrExist},
		{"over a FIFO", "a", "fifo", nil, fs.ErrExist, fs.ErrExist},
		{"over a linked file", "a", "linked", nil, fs.ErrExist, fs.ErrExist},
		{"over a directory", "a", "directory", unix.EISDIR, fs.ErrExist, fs.ErrExist},
		{"of nothing", "missing", "free", fs.ErrNotExist, fs.ErrNotExist, fs.ErrNotExist},
		{"of a symlink", "symlink", "free", nil, nil, nil},
		{"of a symlink to a directory", "symlink-dir", "free", nil, nil, nil},
		{"of a dangling symlink", "dangling", "free", nil, nil, nil},
		{"of a FIFO", "fifo", "free", nil, nil, nil},
		{"of a linked file", "linked", "free", nil, nil, nil},
		{"of a directory", "directory", "free", nil, nil, unix.EPERM},
		{"of a directory over a file", "directory", "target", unix.ENOTDIR, fs.ErrExist, fs.ErrExist},
	} {
		for i, o := range twoNames {
			want := []error{tt.move, tt.moveNew, tt.link}[i]
			for _, across := range []bool{false, true} {
				name := string(o.op) + "/" + tt.name + map[bool]string{true: "/across"}[across]
				t.Run(name, func(t *testing.T) {
					from, to := twoDirs(t, fsys, across)
					if o.op == OpMoveNew {
						needMoveNew(t, from)
					}
					wantTwoNames(t, o.op, from, tt.from, to, tt.to, want, func() error {
						return o.do(from, tt.from, to, tt.to)
					})
				})
			}
		}
	}
}

// twoDirs gives two directories with everything in each, or one twice.
func twoDirs(t *testing.T, fsys FS, across bool) (from, to Dir) {
	t.Helper()
	from, path := tempDir(t, fsys)
	strange(t, path)
	creation(t, from, "a", "moved")
	if !across {
		return from, from
	}
	to, path = tempDir(t, fsys)
	strange(t, path)
	return from, to
}

// wantTwoNames runs do and checks its error and that it did the whole of it and nothing
// else, or nothing at all.
func wantTwoNames(t *testing.T, op Op, from Dir, oldName string, to Dir, newName string, want error, do func() error) {
	t.Helper()
	fromBefore, toBefore := everything(t, from), everything(t, to)
	source := fromBefore[oldName]
	err := do()
	fromAfter, toAfter := everything(t, from), everything(t, to)
	if want != nil {
		wantErr(t, err, op, want)
		if !maps.Equal(fromBefore, fromAfter) || !maps.Equal(toBefore, toAfter) {
			t.Errorf("an error, but:\n%v\n%v\nbefore:\n%v\n%v", fromAfter, toAfter, fromBefore, toBefore)
		}
		return
	}
	ok(t, err)
	if op == OpLink {
		source.Links++
		if got := fromAfter[oldName]; got != source {
			t.Errorf("%s: got %+v, want %+v", oldName, got, source)
		}
	} else if _, stands := fromAfter[oldName]; stands {
		t.Errorf("%s still stands", oldName)
	}
	if got := toAfter[newName]; got != source {
		t.Errorf("%s: got %+v, want %+v", newName, got, source)
	}
	for _, changed := range []map[string]Info{fromBefore, toBefore, fromAfter, toAfter} {
		delete(changed, oldName)
		delete(changed, newName)
		for name := range changed { // names whose link count may change with another's
			if name == "linked" || name == "linked-2" {
				info := changed[name]
				info.Links = 0
				changed[name] = info
			}
		}
	}
	if !maps.Equal(fromBefore, fromAfter) || !maps.Equal(toBefore, toAfter) {
		t.Errorf("other names changed:\n%v\n%v\nbefore:\n%v\n%v", fromAfter, toAfter, fromBefore, toBefore)
	}
}

// everything tells what stands in d, without the time of the last change, which a move
// may be, and the number of links of a directory, which counts those in it.
func everything(t *testing.T, d Dir) map[string]Info {
	t.Helper()
	all := map[string]Info{}
	for _, name := range must(d.ReadDir())(t) {
		info := must(d.Lstat(name))(t)
		info.CtimeNanos = 0
		if info.Mode.IsDir() {
			info.Links = 0
		}
		all[name] = info
	}
	return all
}

// Two names of one file, or one name twice: rename(2) does nothing and says so to nobody.
func TestTwoNamesOfOneFile(t *testing.T) { each(t, testTwoNamesOfOneFile) }

func testTwoNamesOfOneFile(t *testing.T, fsys FS) {
	for _, o := range twoNames {
		for _, names := range [][2]string{{"linked", "linked-2"}, {"a", "a"}} {
			t.Run(string(o.op)+"/"+names[0]+"-"+names[1], func(t *testing.T) {
				d, _ := twoDirs(t, fsys, false)
				if o.op == OpMoveNew {
					needMoveNew(t, d)
				}
				before := everything(t, d)
				err := o.do(d, names[0], d, names[1])
				if o.op == OpMove {
					ok(t, err)
				} else {
					wantErr(t, err, o.op, fs.ErrExist)
				}
				if after := everything(t, d); !maps.Equal(after, before) {
					t.Errorf("got %v, want %v", after, before)
				}
			})
		}
	}
}

// What was opened before is the same file after, with the content and the times that
// it had.
func TestMoveKeepsTheFile(t *testing.T) { each(t, testMoveKeepsTheFile) }

func testMoveKeepsTheFile(t *testing.T, fsys FS) {
	from, to := twoDirs(t, fsys, true)
	f := must(from.Open("a"))(t)
	defer f.Close()
	before := must(f.Info())(t)
	ok(t, from.Move("a", to, "b"))
	ok(t, to.Link("b", from, "c"))
	after := must(f.Info())(t)
	if after.Identity != before.Identity || after.MtimeNanos != before.MtimeNanos || after.Links != 2 {
		t.Errorf("got %+v, want %+v with 2 links", after, before)
	}
	_, err := to.Open("b")
	wantErr(t, err, OpOpen, ErrLinked)
	ok(t, from.Remove("c"))
	if got := content(t, to, "b"); got != "moved" {
		t.Errorf("got %q, want moved", got)
	}
}

// A pinned directory is moved into and out of whatever its path means: OS only.
func TestMoveBetweenPinned(t *testing.T) {
	base := t.TempDir()
	ok(t, os.Mkdir(base+"/a", 0o700))
	ok(t, os.Mkdir(base+"/b", 0o700))
	a, b := must(OS().OpenRoot(base+"/a"))(t), must(OS().OpenRoot(base+"/b"))(t)
	defer a.Close()
	defer b.Close()
	creation(t, a, "file", "x")
	ok(t, os.Rename(base+"/a", base+"/c"))
	ok(t, os.Rename(base+"/b", base+"/a")) // an impostor of a, which b's path does not mean
	ok(t, a.Link("file", b, "one"))
	ok(t, a.Move("file", b, "two"))
	for _, name := range []string{"one", "two"} {
		if got := string(must(os.ReadFile(base + "/a/" + name))(t)); got != "x" {
			t.Errorf("%s: got %q, want x", name, got)
		}
	}
}

func TestAcrossFilesystems(t *testing.T) { each(t, testAcrossFilesystems) }

func testAcrossFilesystems(t *testing.T, fsys FS) {
	path, err := os.MkdirTemp("/dev/shm", "fsguard")
	if err != nil {
		skip(t, "no other filesystem here: "+err.Error())
	}
	defer os.RemoveAll(path)
	other := must(fsys.OpenRoot(path))(t)
	defer other.Close()
	d, _ := twoDirs(t, fsys, false)
	if must(d.Info())(t).Dev == must(other.Info())(t).Dev {
		skip(t, "the temporary files are on the filesystem of /dev/shm")
	}
	for _, o := range twoNames {
		if o.op == OpMoveNew {
			needMoveNew(t, d)
		}
		wantTwoNames(t, o.op, d, "a", other, "b", unix.EXDEV, func() error { return o.do(d, "a", other, "b") })
	}
}

// A directory of another kind is a mistake of the caller's and not a panic.
func TestForeignDirectory(t *testing.T) { each(t, testForeignDirectory) }

func testForeignDirectory(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	creation(t, d, "a", "x")
	for _, s := range systems {
		if s.fsys == fsys {
			continue
		}
		other := must(s.fsys.OpenRoot(path))(t)
		defer other.Close()
		for _, to := range []Dir{other, struct{ Dir }{d}, nil} {
			for _, o := range twoNames {
				wantErr(t, o.do(d, "a", to, "b"), o.op, ErrForeign)
			}
		}
	}
	if got := len(must(d.ReadDir())(t)); got != 1 {
		t.Errorf("%d names, want 1", got)
	}
}
