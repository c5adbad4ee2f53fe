//go:build unix

package crashtest

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// store is a disk with /store, and a process that has it open.
func store(t *testing.T) (*Disk, *Process, fsguard.Dir) {
	t.Helper()
	d := NewDisk()
	d.MkdirAll("/store")
	p := d.Process()
	return d, p, openRoot(t, p)
}

func openRoot(t *testing.T, p fsguard.FS) fsguard.Dir {
	t.Helper()
	dir, err := p.OpenRoot("/store")
	ok(t, err)
	return dir
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must is for results with an error: must(dir.Create("a"))(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func wantErr(t *testing.T, got error, op fsguard.Op, want error) {
	t.Helper()
	var e *fsguard.Error
	if !errors.As(got, &e) || e.Op != op || !errors.Is(got, want) {
		t.Errorf("got %v, want %s: %v", got, op, want)
	}
}

func TestKillLosesDescriptorsAndNothingElse(t *testing.T) {
	d, p, dir := store(t)
	f := must(dir.Create("a"))(t)
	must(f.WriteAt([]byte("hello"), 0))(t)
	p.Kill()
	_, err := f.WriteAt([]byte("x"), 0)
	wantErr(t, err, fsguard.OpWrite, ErrKilled)
	wantErr(t, dir.Mkdir("b"), fsguard.OpMkdir, ErrKilled)
	wantErr(t, dir.Close(), fsguard.OpClose, ErrKilled)
	_, err = p.OpenRoot("/store")
	wantErr(t, err, fsguard.OpOpenRoot, ErrKilled)
	if p.Open() != 0 {
		t.Errorf("a dead process holds %d descriptors", p.Open())
	}
	if got := d.Tree(); got != "/store/\n/store/a \"hello\"\n" {
		t.Errorf("after Kill:\n%s", got)
	}
}

func TestSettle(t *testing.T) {
	d, p, dir := store(t)
	ok(t, dir.Lock(fsguard.Exclusive))
	must(must(dir.Create("a"))(t).WriteAt([]byte("1"), 0))(t)
	d.Settle()
	wantErr(t, dir.Mkdir("b"), fsguard.OpMkdir, ErrKilled)
	if n, all := d.CountImages(10, 0); n != 1 || !all || p.Open() != 0 {
		t.Errorf("after Settle there are %d images and %d descriptors", n, p.Open())
	}
	try(t, openRoot(t, d.Process()), fsguard.Exclusive, true)
	if got := string(d.ReadRaw("/store/a")); got != "1" {
		t.Errorf("a holds %q", got)
	}
}

// A number is taken again only when neither a name nor a descriptor holds it.
func TestInodeNumbersAreReused(t *testing.T) {
	_, _, dir := store(t)
	f := must(dir.Create("a"))(t)
	a := must(f.Info())(t)
	ok(t, dir.Remove("a"))
	g := must(dir.Create("b"))(t)
	if b := must(g.Info())(t); b.Identity == a.Identity {
		t.Error("the number of an open file was reused")
	}
	if links := must(f.Info())(t).Links; links != 0 {
		t.Errorf("the removed file has %d links", links)
	}
	ok(t, f.Close())
	h := must(dir.Create("c"))(t)
	if c := must(h.Info())(t); c.Identity != a.Identity {
		t.Errorf("the number of a closed file was not reused: %v, was %v", c.Identity, a.Identity)
	}
}

func TestCtimeChangesWithTheInode(t *testing.T) {
	d, _, dir := store(t)
	f := must(dir.Create("a"))(t)
	last := must(f.Info())(t).CtimeNanos
	for name, change := range map[string]func() error{
		"write":    func() error { _, err := f.WriteAt([]byte("x"), 0); return err },
		"allocate": func() error { return f.Allocate(9) },
		"rename":   func() error { return dir.Rename("a", "b") },
		"chmod":    func() error { name := must(dir.ReadDir())(t)[0]; d.Chmod("/store/"+name, 0o644); return nil },
	} {
		ok(t, change())
		now := must(f.Info())(t).CtimeNanos
		if now == last {
			t.Errorf("%s left ctime as it was", name)
		}
		last = now
	}
	must(f.ReadAt(make([]byte, 1), 0))(t)
	ok(t, f.Sync())
	if must(f.Info())(t).CtimeNanos != last {
		t.Error("reading or syncing changed ctime")
	}
}

func TestFullDisk(t *testing.T) {
	d, _, dir := store(t)
	keep := must(dir.Create("keep"))(t)
	must(keep.WriteAt([]byte("0123456789"), 0))(t)
	d.SetFree(5)
	f := must(dir.Create("a"))(t)
	n, err := f.WriteAt([]byte("12345678"), 0)
	if n != 5 {
		t.Errorf("wrote %d bytes, want the 5 that fit", n)
	}
	wantErr(t, err, fsguard.OpWrite, syscall.ENOSPC)
	must(f.WriteAt([]byte("abc"), 0))(t) // in place needs no room
	wantErr(t, f.Allocate(6), fsguard.OpAllocate, syscall.ENOSPC)
	_, err = dir.Create("b")
	wantErr(t, err, fsguard.OpCreate, syscall.ENOSPC)
	wantErr(t, dir.Mkdir("b"), fsguard.OpMkdir, syscall.ENOSPC)

	ok(t, dir.Remove("keep"))
	if free := must(dir.Space())(t).Free; free != 0 {
		t.Errorf("%d bytes free while a descriptor holds the file", free)
	}
	ok(t, keep.Close())
	if free := must(dir.Space())(t).Free; free != 10 {
		t.Errorf("%d bytes free, want 10", free)
	}
	ok(t, f.Allocate(15))
	must(f.WriteAt([]byte("123456789012345"), 0))(t)
	if img := d.Clone(); img.freeBytes() != 0 {
		t.Errorf("a clone has %d bytes free", img.freeBytes())
	}
}

func TestOddFilesAndPermissions(t *testing.T) {
	d, _, dir := store(t)
	d.WriteRaw("/store/plain", []byte("x"))
	d.Symlink("plain", "/store/link")
	d.Fifo("/store/fifo")
	d.MkdirAll("/store/dir/sub")
	d.WriteRaw("/store/one", nil)
	d.HardLink("/store/one", "/store/two")
	d.WriteRaw("/store/secret", nil)
	d.Chmod("/store/secret", 0)
	d.WriteRaw("/store/foreign", nil)
	d.Chown("/store/foreign", d.conf.uid+1)
	open := func(name string) error { _, err := dir.Open(name); return err }
	openDir := func(name string) error { _, err := dir.OpenDir(name); return err }
	for _, c := range []struct {
		err  error
		op   fsguard.Op
		want error
	}{
		{open("link"), fsguard.OpOpen, fsguard.ErrSymlink},
		{open("fifo"), fsguard.OpOpen, fsguard.ErrNotPlain},
		{open("dir"), fsguard.OpOpen, fsguard.ErrNotPlain},
		{open("one"), fsguard.OpOpen, fsguard.ErrLinked},
		{open("none"), fsguard.OpOpen, fs.ErrNotExist},
		{open("secret"), fsguard.OpOpen, fs.ErrPermission},
		{open("foreign"), fsguard.OpOpen, fs.ErrPermission},
		{open("../store/plain"), fsguard.OpOpen, fsguard.ErrName},
		{open(strings.Repeat("n", 256)), fsguard.OpOpen, syscall.ENAMETOOLONG},
		{openDir("link"), fsguard.OpOpenDir, fsguard.ErrSymlink},
		{openDir("plain"), fsguard.OpOpenDir, fsguard.ErrNotPlain},
		{dir.Mkdir("link"), fsguard.OpMkdir, fs.ErrExist},
		{dir.Remove("dir"), fsguard.OpRemove, syscall.EISDIR},
		{dir.RemoveDir("dir"), fsguard.OpRemoveDir, syscall.ENOTEMPTY},
		{dir.RemoveDir("plain"), fsguard.OpRemoveDir, syscall.ENOTDIR},
		{dir.Rename("none", "x"), fsguard.OpRename, fs.ErrNotExist},
		{dir.Rename("plain", "dir"), fsguard.OpRename, syscall.EISDIR},
	} {
		wantErr(t, c.err, c.op, c.want)
	}
	info := must(dir.Lstat("foreign"))(t)
	if info.UID != d.conf.uid+1 || info.Mode != 0o600 || !info.Plain() {
		t.Errorf("foreign is %+v", info)
	}
	other := d.ProcessOf(d.conf.uid + 1)
	_, err := other.OpenRoot("/store")
	wantErr(t, err, fsguard.OpOpenRoot, fs.ErrPermission)

	before := must(dir.Lstat("plain"))(t)
	d.Replace("/store/plain", []byte("y"))
	if after := must(dir.Lstat("plain"))(t); after.Identity == before.Identity || string(d.ReadRaw("/store/plain")) != "y" {
		t.Error("Replace kept the inode or the content")
	}
	d.Remove("/store/dir")
	if d.Exists("/store/dir") {
		t.Error("Remove left the directory")
	}
}

func TestRootsThroughSymlinks(t *testing.T) {
	d, p, dir := store(t)
	d.Symlink("/store", "/link")
	d.Symlink("../link", "/store/up")
	d.Symlink("loop", "/loop")
	want := must(dir.Info())(t)
	for _, path := range []string{"/link", "store", "/store/./up/", "/store/../link"} {
		root := must(p.OpenRoot(path))(t)
		if got := must(root.Info())(t); got.Identity != want.Identity {
			t.Errorf("%s is another directory", path)
		}
		if got := must(p.Stat(path))(t); got.Identity != want.Identity || root.Name() != path {
			t.Errorf("Stat and OpenRoot of %s differ", path)
		}
	}
	_, err := p.OpenRoot("/loop")
	wantErr(t, err, fsguard.OpOpenRoot, syscall.ELOOP)
	_, err = p.Stat("/none/x")
	wantErr(t, err, fsguard.OpStat, fs.ErrNotExist)
}

func TestSettings(t *testing.T) {
	d, _, dir := store(t)
	f := must(dir.Create("a"))(t)
	must(f.WriteAt([]byte("abc"), 0))(t)

	d.SetSizeLies(true)
	if must(f.Info())(t).Size != 0 || must(dir.Lstat("a"))(t).Size != 0 {
		t.Error("the size does not lie")
	}
	if data := must(fsguard.ReadAll(f, 10))(t); string(data) != "abc" {
		t.Errorf("read %q", data)
	}
	d.SetLockError(syscall.ENOSYS)
	wantErr(t, f.Lock(fsguard.Shared), fsguard.OpLock, syscall.ENOSYS)
	d.SetLockError(nil)
	ok(t, f.Lock(fsguard.Shared))

	d.SetSyncDirError(syscall.EINVAL)
	wantErr(t, dir.Sync(), fsguard.OpSyncDir, syscall.EINVAL)
	for img := range d.Images(1000, 0) {
		if img.Exists("/store/a") {
			goto lossy
		}
	}
	t.Error("the name can never survive")
lossy:
	d.SetSpace(fsguard.Space{Type: "nfs", Network: true, Free: 7})
	if got := must(dir.Space())(t); got != (fsguard.Space{Type: "nfs", Network: true, Free: 7}) {
		t.Errorf("space is %+v", got)
	}
	d.SetReadOnly(true)
	_, err := f.WriteAt([]byte("x"), 0)
	wantErr(t, err, fsguard.OpWrite, syscall.EROFS)
	_, err = dir.OpenWrite("a")
	wantErr(t, err, fsguard.OpOpen, syscall.EROFS)
	wantErr(t, dir.Remove("a"), fsguard.OpRemove, syscall.EROFS)
	r := must(dir.Open("a"))(t)
	ok(t, r.Lock(fsguard.Shared))
}

func TestWriteFileLeavesNoTempOnError(t *testing.T) {
	d, _, dir := store(t)
	ok(t, dir.WriteFile("a", []byte("one")))
	d.MkdirAll("/store/b/c")
	err := dir.WriteFile("b", []byte("two")) // the rename fails
	wantErr(t, err, fsguard.OpWriteFile, syscall.EISDIR)
	if got, want := d.Tree(), "/store/\n/store/a \"one\"\n/store/b/\n/store/b/c/\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReadAt(t *testing.T) {
	_, _, dir := store(t)
	f := must(dir.Create("a"))(t)
	must(f.WriteAt([]byte("abc"), 2))(t)
	buf := make([]byte, 4)
	if n, err := f.ReadAt(buf, 0); n != 4 || err != nil || string(buf) != "\x00\x00ab" {
		t.Errorf("got %d, %v, %q", n, err, buf)
	}
	if n, err := f.ReadAt(buf, 3); n != 2 || err != io.EOF {
		t.Errorf("got %d, %v, want 2, io.EOF itself", n, err)
	}
	if n, err := f.ReadAt(buf, 99); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v, want 0, io.EOF itself", n, err)
	}
}
