//go:build unix

package fsguard

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWrap(t *testing.T) {
	inner := &Error{OpRead, "b", unix.EIO}
	tests := []struct {
		name string
		err  error
		want string
		is   error
	}{
		{"errno", unix.ENOSPC, "open a: no space left on device", unix.ENOSPC},
		{"path error", &fs.PathError{Op: "openat", Path: "/x/a", Err: unix.ENOENT}, "open a: no such file or directory", fs.ErrNotExist},
		{"link error", &os.LinkError{Op: "renameat", Old: "a", New: "b", Err: unix.EACCES}, "open a: permission denied", fs.ErrPermission},
		{"nested", &fs.PathError{Op: "x", Path: "y", Err: os.NewSyscallError("z", unix.EEXIST)}, "open a: file exists", fs.ErrExist},
		{"already wrapped", inner, "read b: input/output error", unix.EIO},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := wrap(OpOpen, "a", tt.err)
			if err.Error() != tt.want {
				t.Errorf("got %q, want %q", err, tt.want)
			}
			if !errors.Is(err, tt.is) {
				t.Errorf("%q is not %q", err, tt.is)
			}
		})
	}
	if err := wrap(OpOpen, "a", nil); err != nil {
		t.Errorf("wrap of nil: got %v", err)
	}
}

func TestMessagesSayEachThingOnce(t *testing.T) { each(t, testMessagesSayEachThingOnce) }

func testMessagesSayEachThingOnce(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	_, openErr := d.Open("state.json")
	_, rootErr := fsys.OpenRoot(path + "/none")
	_, statErr := fsys.Stat(path + "/none")
	ok(t, os.Mkdir(path+"/there", 0o700))
	f := must(d.Create("file"))(t)
	ok(t, f.Close())
	tests := []struct {
		err  error
		want string
	}{
		{openErr, "open state.json: no such file or directory"},
		{rootErr, "openroot " + path + "/none: no such file or directory"},
		{statErr, "stat " + path + "/none: no such file or directory"},
		{d.Mkdir("there"), "mkdir there: file exists"},
		{d.Rename("none", "b"), "rename none to b: no such file or directory"},
		{d.RemoveDir("none"), "removedir none: no such file or directory"},
		{f.Close(), "close file: file already closed"},
		{f.Sync(), "sync file: file already closed"},
	}
	for _, tt := range tests {
		if tt.err == nil || tt.err.Error() != tt.want {
			t.Errorf("got %v, want %q", tt.err, tt.want)
		}
	}
}

func TestRetry(t *testing.T) {
	errs := []error{unix.EINTR, unix.EINTR, unix.EIO, nil}
	calls := 0
	err := retry(func() error { calls++; return errs[calls-1] })
	if err != unix.EIO || calls != 3 {
		t.Errorf("got %v after %d calls, want EIO after 3", err, calls)
	}
	calls = 0
	fd, err := retryFD(func() (int, error) {
		if calls++; calls == 1 {
			return -1, unix.EINTR
		}
		return 7, nil
	})
	if fd != 7 || err != nil {
		t.Errorf("got %d, %v, want 7, nil", fd, err)
	}
}
