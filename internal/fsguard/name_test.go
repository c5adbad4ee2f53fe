//go:build unix

package fsguard

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", ".a", "..a", "...", "a.b", "ä", " ", "-", `a\b`} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q): got %v, want nil", name, err)
		}
	}
	for _, name := range badNames {
		if err := CheckName(name); err != ErrName {
			t.Errorf("CheckName(%q): got %v, want ErrName", name, err)
		}
	}
}

// Every method that takes a name refuses a bad one, and before any system call:
// a closed directory would else be the first to complain.
func TestBadNamesAreRefusedEverywhere(t *testing.T) { each(t, testBadNamesAreRefusedEverywhere) }

func testBadNamesAreRefusedEverywhere(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	creation(t, d, "good", "x")
	ok(t, d.Close())
	calls := []struct {
		op   Op
		call func(name string) error
	}{
		{OpLstat, func(n string) error { _, err := d.Lstat(n); return err }},
		{OpOpenDir, func(n string) error {
			if n == "." { // allowed there, so the closed directory answers
				return &Error{OpOpenDir, n, ErrName}
			}
			_, err := d.OpenDir(n)
			return err
		}},
		{OpMkdir, d.Mkdir},
		{OpCreate, func(n string) error { _, err := d.Create(n); return err }},
		{OpOpen, func(n string) error { _, err := d.Open(n); return err }},
		{OpOpen, func(n string) error { _, err := d.OpenWrite(n); return err }},
		{OpWriteFile, func(n string) error { return d.WriteFile(n, nil) }},
		{OpRename, func(n string) error { return d.Rename(n, "good") }},
		{OpRename, func(n string) error { return d.Rename("good", n) }},
		{OpMove, func(n string) error { return d.Move(n, d, "good") }},
		{OpMove, func(n string) error { return d.Move("good", d, n) }},
		{OpMoveNew, func(n string) error { return d.MoveNew(n, d, "good") }},
		{OpMoveNew, func(n string) error { return d.MoveNew("good", d, n) }},
		{OpExchange, func(n string) error { return d.Exchange(n, "good") }},
		{OpExchange, func(n string) error { return d.Exchange("good", n) }},
		{OpLink, func(n string) error { return d.Link(n, d, "good") }},
		{OpLink, func(n string) error { return d.Link("good", d, n) }},
		{OpRemove, d.Remove},
		{OpRemoveDir, d.RemoveDir},
	}
	for _, c := range calls {
		for _, name := range badNames {
			wantErr(t, c.call(name), c.op, ErrName)
		}
	}
}

// O_NOFOLLOW does not stop at what a trailing slash resolves, so CheckName must.
func TestSlashWouldFollow(t *testing.T) { each(t, testSlashWouldFollow) }

func testSlashWouldFollow(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	strange(t, path)
	ok(t, pinnedOf(d).control(func(fd int) error {
		leak, err := unix.Openat(fd, "symlink-dir/", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Skip("this system stops there too: ", err)
		}
		return unix.Close(leak)
	}))
	_, err := d.OpenDir("symlink-dir/")
	wantErr(t, err, OpOpenDir, ErrName)
}
