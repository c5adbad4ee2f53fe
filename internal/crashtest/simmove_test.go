//go:build unix

package crashtest

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

func TestLinksAreCounted(t *testing.T) {
	y := newYard(t)
	f := must(y.s.Open("a"))(t)
	y.ok(y.s.Link("a", y.k, "b"), y.s.Link("a", y.s, "c"))
	info := must(y.k.Lstat("b"))(t)
	if info.Links != 3 || info.Identity != must(f.Info())(t).Identity || info.Plain() {
		t.Errorf("the second name is %+v", info)
	}
	_, err := y.k.Open("b")
	wantErr(t, err, fsguard.OpOpen, fsguard.ErrLinked)
	y.ok(y.s.Rename("a", "c")) // two names of one file: nothing happens
	y.ok(y.s.Move("a", y.k, "b"))
	if got, want := list(y.d), "s/a=A s/c=A t/b=A"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	y.ok(y.s.Remove("a"), y.k.Move("b", y.u, "b"), y.s.Move("c", y.u, "c"))
	if links := must(f.Info())(t).Links; links != 2 {
		t.Errorf("%d links, want 2", links)
	}
	y.ok(y.u.Remove("b"), y.u.Rename("c", "d"))
	f = must(y.u.Open("d"))(t)
	if links := must(f.Info())(t).Links; links != 1 {
		t.Errorf("%d links, want 1", links)
	}
}

// An image with both names of a move shows a file with two links.
func TestImagesCountLinks(t *testing.T) {
	y := newYard(t)
	y.ok(y.s.Move("a", y.k, "e"))
	for img := range y.d.Images(10, 0) {
		want := uint64(strings.Count(list(img), "=A"))
		for _, p := range []string{"/store/s/a", "/store/t/e"} {
			if img.Exists(p) {
				if got := uint64(img.at(p).links); got != want {
					t.Errorf("image %s: %s has %d links, want %d", img.Desc(), p, got, want)
				}
			}
		}
	}
}

// The replaced file is gone, and its bytes are free, when nobody has it open.
func TestMoveReleasesWhatItReplaces(t *testing.T) {
	y := newYard(t)
	y.d.WriteRaw("/store/t/e", []byte("0123456789"))
	e := must(y.k.Open("e"))(t)
	y.d.SetFree(5)
	y.ok(y.s.Move("a", y.k, "e"))
	if free, links := must(y.k.Space())(t).Free, must(e.Info())(t).Links; free != 5 || links != 0 {
		t.Errorf("%d bytes free, %d links while it is open", free, links)
	}
	y.ok(e.Close())
	if free := must(y.k.Space())(t).Free; free != 15 {
		t.Errorf("%d bytes free, want 15", free)
	}
}

func TestMovesAndLinksThatAreRefused(t *testing.T) {
	y := newYard(t)
	y.d.MkdirAll("/store/s/d")
	y.d.WriteRaw("/store/t/e", []byte("E"))
	gone := func() fsguard.Dir {
		y.ok(y.u.Mkdir("gone"))
		d := y.dir(y.u, "gone")
		y.ok(y.u.RemoveDir("gone"))
		return d
	}()
	closed := y.dir(y.k, ".")
	y.ok(closed.Close())
	other := newYard(t)
	locked := func() fsguard.Dir {
		y.d.MkdirAll("/store/u/locked")
		d := y.dir(y.u, "locked")
		y.d.Chmod("/store/u/locked", 0o500)
		return d
	}()
	before := list(y.d)
	for _, c := range []struct {
		err  error
		op   fsguard.Op
		want error
	}{
		{y.s.Move("none", y.k, "x"), fsguard.OpMove, fs.ErrNotExist},
		{y.s.Move("a", y.k, "../x"), fsguard.OpMove, fsguard.ErrName},
		{y.s.Move("a", gone, "x"), fsguard.OpMove, fs.ErrNotExist},
		{y.s.Move("a", closed, "x"), fsguard.OpMove, fs.ErrClosed},
		{y.s.Move("a", locked, "x"), fsguard.OpMove, fs.ErrPermission},
		{y.s.Move("a", other.k, "x"), fsguard.OpMove, syscall.EXDEV},
		{y.s.Move("a", openRoot(t, Wrap(y.d.Process(), Plan{})), "x"), fsguard.OpMove, fsguard.ErrForeign},
		{y.s.Move("d", y.k, "x"), fsguard.OpMove, syscall.EXDEV},
		{y.k.Move("e", y.s, "d"), fsguard.OpMove, syscall.EISDIR},
		{y.s.Move("a", y.root, "s"), fsguard.OpMove, syscall.ENOTEMPTY},
		{y.s.MoveNew("a", y.k, "e"), fsguard.OpMoveNew, fs.ErrExist},
		{y.s.MoveNew("a", y.s, "a"), fsguard.OpMoveNew, fs.ErrExist},
		{y.s.MoveNew("none", y.k, "e"), fsguard.OpMoveNew, fs.ErrNotExist},
		{y.s.Link("a", y.k, "e"), fsguard.OpLink, fs.ErrExist},
		{y.s.Link("a", y.s, "a"), fsguard.OpLink, fs.ErrExist},
		{y.s.Link("none", y.k, "x"), fsguard.OpLink, fs.ErrNotExist},
		{y.s.Link("d", y.k, "x"), fsguard.OpLink, syscall.EPERM},
		{y.s.Link("a", gone, "x"), fsguard.OpLink, fs.ErrNotExist},
		{y.s.Link("a", other.k, "x"), fsguard.OpLink, syscall.EXDEV},
		{y.s.Link("a", locked, "x"), fsguard.OpLink, fs.ErrPermission},
	} {
		wantErr(t, c.err, c.op, c.want)
	}
	y.d.SetReadOnly(true)
	wantErr(t, y.s.Move("a", y.k, "x"), fsguard.OpMove, syscall.EROFS)
	wantErr(t, y.s.Link("a", y.k, "x"), fsguard.OpLink, syscall.EROFS)
	if got := list(y.d); got != before {
		t.Errorf("got %s, was %s", got, before)
	}
}

// A setting holds on clones and images too.
func TestLinksAndMovesCanBeRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(d *Disk, err error)
		op   fsguard.Op
		do   func(s, t fsguard.Dir) error
	}{
		{"link", (*Disk).SetLinkError, fsguard.OpLink, func(s, t fsguard.Dir) error { return s.Link("a", t, "b") }},
		{"new move", (*Disk).SetMoveNewError, fsguard.OpMoveNew, func(s, t fsguard.Dir) error { return s.MoveNew("a", t, "b") }},
		{"new move in place", (*Disk).SetMoveNewError, fsguard.OpMoveNew, func(s, _ fsguard.Dir) error { return s.MoveNew("a", s, "b") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newYard(t)
			try := func(d *Disk) error {
				root := openRoot(t, d.Process())
				return c.do(must(root.OpenDir("s"))(t), must(root.OpenDir("t"))(t))
			}
			c.set(y.d, syscall.EACCES)
			image := must(y.d.Image("-"))(t)
			for where, d := range map[string]*Disk{"disk": y.d, "clone": y.d.Clone(), "image": image} {
				wantErr(t, try(d), c.op, syscall.EACCES)
				if got := list(d); got != "s/a=A" {
					t.Errorf("%s: refused, and yet there is %s", where, got)
				}
			}
			y.ok(y.s.Move("a", y.k, "a"), y.k.Move("a", y.s, "a"))
			c.set(y.d, nil)
			y.ok(try(y.d))
		})
	}
}

// As proot does it: nil, and two symlinks to the file under a name of its own.
func TestImitatedLinks(t *testing.T) {
	y := newYard(t)
	y.d.SetLinksAreSymlinks(true)
	y.d = y.d.Clone()
	root := openRoot(t, y.d.Process())
	y.s, y.k = y.dir(root, "s"), y.dir(root, "t")
	y.ok(y.s.Link("a", y.k, "b"), y.s.Link("a", y.s, "c")) // the second of a symlink
	want := `/store/s/.l2s.a "A"` + "\n" + `/store/s/a -> /store/s/.l2s.a` + "\n" +
		`/store/s/c -> /store/s/.l2s.a` + "\n/store/t/\n" + `/store/t/b -> /store/s/.l2s.a` + "\n/store/u/\n"
	if got := strings.TrimPrefix(y.d.Tree(), "/store/\n/store/s/\n"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, dir := range []struct {
		in   fsguard.Dir
		name string
	}{{y.s, "a"}, {y.k, "b"}} {
		if info := must(dir.in.Lstat(dir.name))(t); info.Mode&fs.ModeSymlink == 0 || info.Links != 1 {
			t.Errorf("%s is %+v", dir.name, info)
		}
		_, err := dir.in.Open(dir.name)
		wantErr(t, err, fsguard.OpOpen, fsguard.ErrSymlink)
	}
	wantErr(t, y.s.Link("a", y.k, "b"), fsguard.OpLink, fs.ErrExist)
	if info := must(y.d.Process().Stat("/store/t/b"))(t); info.Links != 1 || info.Size != 1 {
		t.Errorf("followed, it is %+v", info)
	}
	y.ok(y.s.Sync(), y.k.Sync())
	if n, all := y.d.CountImages(10, 0); n != 1 || !all {
		t.Errorf("synced, and yet there are %d images", n)
	}
}

func TestMtime(t *testing.T) {
	y := newYard(t)
	mtime := func(d *Disk, p string) int64 {
		t.Helper()
		return must(d.Process().Stat("/store/" + p))(t).MtimeNanos
	}
	check := func(d *Disk, want map[string]int64) {
		t.Helper()
		for p, want := range want {
			if got := mtime(d, p); got != want {
				t.Errorf("mtime of %s is %d, want %d", p, got, want)
			}
		}
	}
	check(y.d, map[string]int64{"s": 0, "s/a": 0})
	y.d.SetTime(100)
	f := must(y.s.Create("b"))(t)
	check(y.d, map[string]int64{"s": 100, "s/b": 100, "s/a": 0, "t": 0})
	y.d.SetTime(200)
	must(f.WriteAt([]byte("B"), 0))(t)
	y.ok(f.Sync())
	check(y.d, map[string]int64{"s": 100, "s/b": 200})
	y.d.SetTime(300) // a name is no content
	y.ok(y.s.Rename("b", "c"), y.s.Link("c", y.k, "d"), y.s.Move("a", y.u, "a"), y.s.Sync(), y.k.Sync(), y.u.Sync())
	want := map[string]int64{"s": 300, "t": 300, "u": 300, "s/c": 200, "t/d": 200, "u/a": 0}
	check(y.d, want)
	y.d.SetTime(400)
	must(f.ReadAt(make([]byte, 1), 0))(t)
	check(y.d.Clone(), want)
	check(must(y.d.Image("-"))(t), want)
	ctime := must(f.Info())(t).CtimeNanos
	y.d.SetMtime("/store/s/c", 7)
	if info := must(f.Info())(t); info.MtimeNanos != 7 || info.CtimeNanos == ctime {
		t.Errorf("after SetMtime: %+v", info)
	}
	img := must(y.d.Image("-"))(t)
	root := openRoot(t, img.Process())
	must(root.Create("new"))(t)
	check(img, map[string]int64{"new": 400, "s/c": 7}) // the clock goes on from there
}
