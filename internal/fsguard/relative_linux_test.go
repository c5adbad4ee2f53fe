//go:build linux

package fsguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/sandbox"
)

func init() { roles["no relative calls"] = noRelativeRole }

// relative are the calls that may take a directory's descriptor and a name in it.
var relative = []string{
	"newfstatat", "fstatat64", "openat", "mkdirat", "mknodat", "unlinkat", "renameat", "renameat2",
	"linkat", "symlinkat", "readlinkat", "fchmodat", "fchownat", "faccessat", "utimensat",
	"openat2", "fchmodat2", "faccessat2", "statx",
}

// Where such calls are refused, CheckRelative tells which, and Paths does everything.
func TestWithoutRelativeCalls(t *testing.T) {
	sandbox.Need(t)
	for _, errno := range []syscall.Errno{unix.ENOSYS, unix.EPERM} {
		t.Run(errno.Error(), func(t *testing.T) {
			runChild(t, "no relative calls", strconv.Itoa(int(errno)), strings.Join(relative, ","), t.TempDir())
		})
	}
}

// Each call that OS needs is asked about: one alone that is refused is reported.
func TestWithoutOneRelativeCall(t *testing.T) {
	sandbox.Need(t)
	for _, call := range []string{"newfstatat", "openat", "mkdirat", "unlinkat", "renameat"} {
		t.Run(call, func(t *testing.T) {
			out := runChild(t, "no relative calls", strconv.Itoa(int(unix.EACCES)), call, t.TempDir())
			if want := strings.TrimPrefix(call, "new") + " relative to a directory: permission denied"; !strings.Contains(out, want) {
				t.Errorf("got %q, want it to say %q", out, want)
			}
		})
	}
}

// noRelativeRole takes an errno, the calls that answer it when their first argument is
// a descriptor, and a directory.
func noRelativeRole(args []string) error {
	errno, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := sandbox.RefuseRelative(strings.Split(args[1], ","), syscall.Errno(errno)); err != nil {
		return err
	}
	err = CheckRelative()
	if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, syscall.Errno(errno)) {
		return fmt.Errorf("CheckRelative: got %v, want unsupported and %v", err, syscall.Errno(errno))
	}
	fmt.Println(err)
	if args[1] != strings.Join(relative, ",") {
		return nil
	}
	if err := exercise(OS(), args[2]); !errors.Is(err, syscall.Errno(errno)) {
		return fmt.Errorf("OS: got %v, want %v: the filter is none", err, syscall.Errno(errno))
	}
	dir := filepath.Join(args[2], "paths")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := exerciseLink(Paths(), dir); err != nil {
		return err
	}
	return exercise(Paths(), dir)
}
