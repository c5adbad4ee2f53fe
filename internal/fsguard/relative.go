//go:build unix

package fsguard

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// CheckRelative returns nil if the system answers the calls that OS reaches names by,
// which take a directory's descriptor. Otherwise the error wraps errors.ErrUnsupported
// and the errno, and names the call: use Paths then. Old kernels, emulators and sandboxes
// lack such calls or forbid them. Nothing is kept, so each call asks again.
//
// Each is asked about the empty name, at which the kernel stops with ENOENT before it
// looks at any file (path_resolution(7)), so that nothing can change. What lies deeper
// is not found out by this. Links are not asked about: where they are refused they are
// so by path too, and whoever makes one is told. A sandbox that kills at such a call
// kills here too.
func CheckRelative() error {
	// "/" always is there, and with the probe's flags it need not be readable.
	fd, err := retryFD(func() (int, error) {
		return unix.Openat(unix.AT_FDCWD, "/", openProbe|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return wrap(OpOpenRoot, "/", err)
	}
	defer unix.Close(fd)
	return checkRelative(fd)
}

func checkRelative(dirfd int) error {
	for _, p := range probes {
		err := retry(func() error { return p.ask(dirfd) })
		switch err {
		case unix.ENOENT:
		case nil:
			return fmt.Errorf("%w here: %s relative to a directory found an empty name", errors.ErrUnsupported, p.call)
		default:
			return fmt.Errorf("%w here: %s relative to a directory: %w", errors.ErrUnsupported, p.call, err)
		}
	}
	return nil
}

// probes are the calls, each with the empty name.
var probes = []struct {
	call string
	ask  func(dirfd int) error
}{
	{"fstatat", func(dirfd int) error {
		_, err := lstatat(dirfd, "")
		return err
	}},
	{"openat", func(dirfd int) error {
		fd, err := unix.Openat(dirfd, "", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"mkdirat", func(dirfd int) error { return unix.Mkdirat(dirfd, "", dirMode) }},
	{"unlinkat", func(dirfd int) error { return unix.Unlinkat(dirfd, "", 0) }},
	{"renameat", func(dirfd int) error { return unix.Renameat(dirfd, "", dirfd, "") }},
}
