//go:build unix

package fsguard

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What may come in the place of a directory that was at "at" and is moved away.
var displacements = []struct {
	name string
	put  func(base string) error
}{
	{"nothing in its place", func(string) error { return nil }},
	{"another put in its place", func(base string) error { return os.Rename(base+"/impostor", base+"/at") }},
	{"a symlink to another in its place", func(base string) error { return os.Symlink("impostor", base+"/at") }},
	{"a file in its place", func(base string) error { return os.WriteFile(base+"/at", nil, 0o600) }},
	{"a loop in its place", func(base string) error { return os.Symlink("at", base+"/at") }},
}

// After the path has stopped meaning the directory, every operation on a name is refused,
// and neither directory changes. Those on the descriptor go on.
func TestPathsRefuseAnother(t *testing.T) {
	for _, root := range []bool{true, false} {
		for _, c := range displacements {
			t.Run(fmt.Sprintf("%s/root=%v", c.name, root), func(t *testing.T) {
				base := t.TempDir()
				top := must(Paths().OpenRoot(base))(t)
				defer top.Close()
				ok(t, top.Mkdir("at"))
				ok(t, top.Mkdir("impostor"))
				d := openAt(t, top, base, "at", root)
				other := must(top.OpenDir("impostor"))(t)
				defer other.Close()
				for _, dir := range []Dir{d, other} {
					creation(t, dir, "a", "content")
					ok(t, dir.Mkdir("sub"))
				}
				impostor, own := filesBelow(t, base+"/impostor"), filesBelow(t, base+"/at")

				ok(t, os.Rename(base+"/at", base+"/away"))
				ok(t, c.put(base))
				place := base + "/impostor"
				if _, err := os.Lstat(place); err != nil {
					place = base + "/at"
				}
				refuses(t, d, ErrMoved)
				if got := filesBelow(t, place); !maps.Equal(got, impostor) {
					t.Errorf("the impostor: got %v, want %v", got, impostor)
				}
				if got := filesBelow(t, base+"/away"); !maps.Equal(got, own) {
					t.Errorf("the directory: got %v, want %v", got, own)
				}
				must(d.Info())(t)
				must(d.Space())(t)
				ok(t, d.Lock(Exclusive))
				ok(t, d.Unlock())
				ok(t, d.Sync())
			})
		}
	}
}

// openAt opens the directory name as a root or in top.
func openAt(t *testing.T, top Dir, base, name string, root bool) Dir {
	t.Helper()
	open := func() (Dir, error) { return top.OpenDir(name) }
	if root {
		open = func() (Dir, error) { return Paths().OpenRoot(base + "/" + name) }
	}
	d := must(open())(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// refuses checks that every operation of d on a name answers want, whichever of the
// two directories of an operation on two d is.
func refuses(t *testing.T, d Dir, want error) {
	t.Helper()
	fine, _ := tempDir(t, Paths())
	creation(t, fine, "a", "fine")
	_, err := d.Lstat("a")
	wantErr(t, err, OpLstat, want)
	_, err = d.Lstat("missing") // not fs.ErrNotExist
	wantErr(t, err, OpLstat, want)
	_, err = d.ReadDir()
	wantErr(t, err, OpReadDir, want)
	_, err = d.OpenDir("sub")
	wantErr(t, err, OpOpenDir, want)
	_, err = d.OpenDir(".")
	wantErr(t, err, OpOpenDir, want)
	_, err = d.Open("a")
	wantErr(t, err, OpOpen, want)
	_, err = d.OpenWrite("a")
	wantErr(t, err, OpOpen, want)
	_, err = d.Create("new")
	wantErr(t, err, OpCreate, want)
	wantErr(t, d.Mkdir("new"), OpMkdir, want)
	wantErr(t, d.WriteFile("a", []byte("new")), OpWriteFile, want)
	wantErr(t, d.Rename("a", "new"), OpRename, want)
	wantErr(t, d.Remove("a"), OpRemove, want)
	wantErr(t, d.RemoveDir("sub"), OpRemoveDir, want)
	for _, o := range twoNames {
		wantErr(t, o.do(d, "a", d, "new"), o.op, want)
		wantErr(t, o.do(d, "a", fine, "new"), o.op, want)
		wantErr(t, o.do(fine, "a", d, "new"), o.op, want)
	}
	if got := content(t, fine, "a"); got != "fine" {
		t.Errorf("got %q, want fine", got)
	}
}

// filesBelow tells the content of every file in a directory and every directory.
func filesBelow(t *testing.T, path string) map[string]string {
	t.Helper()
	all := map[string]string{}
	ok(t, filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			all[p[len(path):]] = "a directory"
			return err
		}
		data, err := os.ReadFile(p)
		all[p[len(path):]] = string(data)
		return err
	}))
	return all
}

// A directory that comes back to its path, or that the path reaches another way, is the
// pinned one.
func TestPathsGoOnInTheSame(t *testing.T) {
	base := t.TempDir()
	ok(t, os.Mkdir(base+"/at", 0o700))
	ok(t, os.Symlink("at", base+"/link"))
	linked, direct := must(Paths().OpenRoot(base+"/link"))(t), must(Paths().OpenRoot(base+"/at"))(t)
	defer linked.Close()
	defer direct.Close()
	creation(t, linked, "a", "x")
	ok(t, linked.Mkdir("sub"))
	sub := must(linked.OpenDir("sub"))(t)
	defer sub.Close()
	dot := must(sub.OpenDir("."))(t)
	defer dot.Close()

	ok(t, os.Rename(base+"/at", base+"/away"))
	refuses(t, linked, ErrMoved)
	ok(t, os.Remove(base+"/link"))
	ok(t, os.Symlink("away", base+"/link"))
	refuses(t, direct, ErrMoved)
	if got := content(t, linked, "a"); got != "x" {
		t.Errorf("got %q, want x", got)
	}
	ok(t, sub.WriteFile("b", nil)) // by a path that leads through the symlink
	ok(t, os.Rename(base+"/away", base+"/at"))
	if got := content(t, direct, "a"); got != "x" {
		t.Errorf("got %q, want x", got)
	}

	// A directory opened by its name must not become a symlink, even one to itself.
	ok(t, os.Rename(base+"/at/sub", base+"/at/elsewhere"))
	ok(t, os.Symlink("elsewhere", base+"/at/sub"))
	ok(t, os.Remove(base+"/link"))
	ok(t, os.Symlink("at", base+"/link"))
	refuses(t, sub, ErrMoved)
	refuses(t, dot, ErrMoved)
}

// A directory below another has moved with it.
func TestPathsBelowAnother(t *testing.T) {
	for _, c := range displacements {
		t.Run(c.name, func(t *testing.T) {
			base := t.TempDir()
			ok(t, os.MkdirAll(base+"/at/below", 0o700))
			ok(t, os.MkdirAll(base+"/impostor/below/sub", 0o700))
			d := must(Paths().OpenRoot(base + "/at/below"))(t)
			defer d.Close()
			ok(t, os.Rename(base+"/at", base+"/away"))
			ok(t, c.put(base))
			refuses(t, d, ErrMoved)
		})
	}
}

// What comes between a look and the call is noticed after it: neither a success nor
// "not there" is told of the impostor.
func TestPathsLookAgain(t *testing.T) {
	for _, result := range []error{nil, fs.ErrNotExist} {
		base := t.TempDir()
		ok(t, os.Mkdir(base+"/at", 0o700))
		d := must(Paths().OpenRoot(base + "/at"))(t)
		defer d.Close()
		before := nextDescriptor(t)
		_, err := pinnedOf(d).atFD("a", func(int, string) (int, error) {
			ok(t, os.Rename(base+"/at", base+"/away"))
			if result != nil {
				return -1, result
			}
			return unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		})
		if err != ErrMoved {
			t.Errorf("got %v, want %v", err, ErrMoved)
		}
		if after := nextDescriptor(t); after != before {
			t.Errorf("the next descriptor is %d, was %d", after, before)
		}
	}
}

// The path is taken as it is: "link/.." leads where the kernel says, and a root of "/"
// or with a slash at its end has names too.
func TestPathsCleanNothing(t *testing.T) { each(t, testPathsCleanNothing) }

func testPathsCleanNothing(t *testing.T, fsys FS) {
	base := t.TempDir()
	ok(t, os.MkdirAll(base+"/real/sub", 0o700))
	ok(t, os.Symlink("real/sub", base+"/link"))
	for i, path := range []string{base + "/link/..", base + "/link/../", base + "//real/", base + "/real/."} {
		d := must(fsys.OpenRoot(path))(t)
		name := fmt.Sprint("a", i)
		ok(t, d.WriteFile(name, []byte("x")))
		ok(t, d.Rename(name, name+"-renamed"))
		creation(t, d, name, "y")
		ok(t, d.Close())
		for name, want := range map[string]string{name: "y", name + "-renamed": "x"} {
			if got := string(must(os.ReadFile(base + "/real/" + name))(t)); got != want {
				t.Errorf("%s: got %q, want %q", path, got, want)
			}
		}
	}
	d := must(fsys.OpenRoot("/"))(t)
	defer d.Close()
	if info := must(d.Lstat("dev"))(t); !info.Mode.IsDir() {
		t.Errorf("/dev: got %v", info.Mode)
	}
}
