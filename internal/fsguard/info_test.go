//go:build unix

package fsguard

import (
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Info must tell what package os tells of the same file.
func TestInfoAgreesWithOS(t *testing.T) { each(t, testInfoAgreesWithOS) }

func testInfoAgreesWithOS(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	for _, s := range strange(t, path) {
		info, err := d.Lstat(s.name)
		if s.links == 0 {
			wantErr(t, err, OpLstat, fs.ErrNotExist)
			continue
		}
		ok(t, err)
		want := must(os.Lstat(path + "/" + s.name))(t)
		if info.Mode != want.Mode() || info.Size != want.Size() {
			t.Errorf("%s: got %v, %d, want %v, %d", s.name, info.Mode, info.Size, want.Mode(), want.Size())
		}
		if info.Mode.Type() != s.mode {
			t.Errorf("%s: got type %v, want %v", s.name, info.Mode.Type(), s.mode)
		}
		if info.UID != uint32(os.Getuid()) {
			t.Errorf("%s: got uid %d, want %d", s.name, info.UID, os.Getuid())
		}
		if s.mode != fs.ModeDir && info.Links != s.links { // btrfs says 1 of every directory
			t.Errorf("%s: got %d links, want %d", s.name, info.Links, s.links)
		}
		if got, want := info.Plain(), s.asFile == nil; got != want {
			t.Errorf("%s: Plain: got %v, want %v", s.name, got, want)
		}
		if info.CtimeNanos <= 0 {
			t.Errorf("%s: got ctime %d", s.name, info.CtimeNanos)
		}
	}
}

func TestIdentity(t *testing.T) { each(t, testIdentity) }

func testIdentity(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	creation(t, d, "a", "1")
	creation(t, d, "b", "1")
	a, b := must(d.Lstat("a"))(t), must(d.Lstat("b"))(t)
	if a.Identity == b.Identity {
		t.Error("two files have one identity")
	}
	f := must(d.Open("a"))(t)
	defer f.Close()
	if got := must(f.Info())(t); got != a {
		t.Errorf("descriptor: got %+v, want %+v", got, a)
	}
	if got := must(fsys.Stat(path + "/a"))(t); got != a {
		t.Errorf("path: got %+v, want %+v", got, a)
	}
	ok(t, d.Rename("a", "c"))
	if got := must(d.Lstat("c"))(t); got.Identity != a.Identity {
		t.Errorf("after a rename: got %v, want %v", got.Identity, a.Identity)
	}
	ok(t, os.Chmod(path+"/c", 0o640))
	if got := must(f.Info())(t); got.Mode.Perm() != 0o640 {
		t.Errorf("after chmod: got %v, want 0640", got.Mode)
	}
}

func TestModeOf(t *testing.T) {
	tests := []struct {
		in   uint32
		want fs.FileMode
	}{
		{unix.S_IFREG | 0o600, 0o600},
		{unix.S_IFDIR | 0o2700, fs.ModeDir | fs.ModeSetgid | 0o700},
		{unix.S_IFLNK | 0o777, fs.ModeSymlink | 0o777},
		{unix.S_IFIFO, fs.ModeNamedPipe},
		{unix.S_IFSOCK, fs.ModeSocket},
		{unix.S_IFCHR, fs.ModeDevice | fs.ModeCharDevice},
		{unix.S_IFBLK, fs.ModeDevice},
		{unix.S_IFREG | unix.S_ISUID | unix.S_ISVTX | 0o7, fs.ModeSetuid | fs.ModeSticky | 0o7},
		{0, fs.ModeIrregular},
	}
	for _, tt := range tests {
		if got := modeOf(tt.in); got != tt.want {
			t.Errorf("modeOf(%#o): got %v, want %v", tt.in, got, tt.want)
		}
	}
}
