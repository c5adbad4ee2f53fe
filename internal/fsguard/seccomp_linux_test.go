//go:build linux

package fsguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

func init() {
	roles["seccomp"] = seccompRole
	roles["forbidden call"] = forbiddenRole
}

// forbidden are the calls that an Android app may not make, or not everywhere,
// and those that need hard links or symlinks. One of them and the process dies.
var forbidden = []string{
	"link", "linkat", "symlink", "symlinkat",
	"openat2", "faccessat2", "fchmodat2", "clone3",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
	"pidfd_open", "pidfd_getfd", "pidfd_send_signal", "statx", "close_range",
}

// changing are the calls that change a mode after creation.
var changing = []string{"chmod", "fchmod", "fchmodat", "fchmodat2"}

// Everything works without the forbidden calls.
func TestForbiddenCallsAreNotMade(t *testing.T) {
	needSeccomp(t)
	dir := t.TempDir()
	if got := runChild(t, "seccomp", "kill", strings.Join(here(forbidden), ","), "exercise", dir); got != "done\n" {
		t.Errorf("got %q, want done", got)
	}
}

// The filter is real: each of the calls kills the process that makes it.
func TestForbiddenCallsKill(t *testing.T) {
	needSeccomp(t)
	for _, call := range here(forbidden) {
		if call == "clone3" && raceEnabled {
			continue // see filterAction
		}
		err := child(t, "forbidden call", strings.Join(here(forbidden), ","), call).Run()
		if got := killedBy(err); got != syscall.SIGSYS {
			t.Errorf("%s: got %v (%v), want SIGSYS", call, got, err)
		}
	}
	for _, call := range []string{"linkat", "symlinkat", "openat2", "fchmodat2", "clone3", "statx"} {
		if !slices.Contains(here(forbidden), call) {
			t.Errorf("%s has no number here", call)
		}
	}
}

// With a umask that takes nothing away, the modes come out exact although every
// later change is forbidden: nothing is wider for even an instant.
func TestModesAreRightFromTheFirstInstant(t *testing.T) {
	needSeccomp(t)
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "replaced"), nil, 0o600))
	ok(t, os.Chmod(filepath.Join(dir, "replaced"), 0o666))
	runChild(t, "seccomp", "kill", strings.Join(here(changing), ","), "make", dir)
	checkModes(t, dir)
}

// Errnos that this kernel does not give by itself, given by the filter.
func TestErrnos(t *testing.T) {
	needSeccomp(t)
	tests := []struct {
		call  string
		errno syscall.Errno
		act   string
	}{
		{"flock", unix.ENOSYS, "lock fails"},
		{"flock", unix.EOPNOTSUPP, "lock fails"},
		{"flock", unix.ENOLCK, "lock fails"},
		{"fallocate", unix.EOPNOTSUPP, "allocate"},
		{"fallocate", unix.ENOSYS, "allocate"},
		{"fallocate", unix.EINVAL, "allocate"},
		{"fallocate", unix.ENOSPC, "allocate fails"},
		{"fsync", unix.EIO, "sync fails"},
		{"fsync", unix.EINVAL, "sync fails"},
		{"fchmod", unix.EPERM, "create fails"},
		{"fchmodat", unix.EPERM, "mkdir fails"},
	}
	for _, tt := range tests {
		t.Run(tt.act+"/"+tt.call+"="+strconv.Itoa(int(tt.errno)), func(t *testing.T) {
			runChild(t, "seccomp", strconv.Itoa(int(tt.errno)), tt.call, tt.act, t.TempDir())
		})
	}
}

// acts are what a process does under a filter that answers errno.
var acts = map[string]func(dir string, errno syscall.Errno) error{
	"exercise": func(dir string, _ syscall.Errno) error { return exercise(dir) },
	"make": func(dir string, _ syscall.Errno) error {
		syscall.Umask(0)
		return makeAll(dir)
	},
	"lock fails": func(dir string, errno syscall.Errno) error {
		return withFile(dir, func(d Dir, f File) error {
			for _, l := range []Locker{d, f} {
				held, tryErr := l.TryLock(Exclusive)
				if held {
					return errors.New("held")
				}
				err := errors.Join(failure(l.Lock(Exclusive), OpLock, errno),
					failure(tryErr, OpLock, errno), failure(l.Unlock(), OpUnlock, errno))
				if err != nil {
					return err
				}
			}
			return nil
		})
	},
	"allocate": func(dir string, _ syscall.Errno) error {
		return withFile(dir, func(d Dir, f File) error {
			if err := f.Allocate(200_000); err != nil {
				return err
			}
			space, err := d.Space()
			if err != nil {
				return err
			}
			room, err := reserved(f.(*osFile))
			if err != nil {
				return err
			}
			if room < 200_000 && !zerosAreFree(space) {
				return fmt.Errorf("got %d bytes of blocks: the file is sparse", room)
			}
			data, err := ReadAll(f, 1<<20)
			if err != nil {
				return err
			}
			return equal(string(data), "content"+strings.Repeat("\x00", 200_000-len("content")))
		})
	},
	"allocate fails": func(dir string, errno syscall.Errno) error {
		return withFile(dir, func(_ Dir, f File) error {
			return failure(f.Allocate(200_000), OpAllocate, errno)
		})
	},
	// A WriteFile whose sync fails replaces nothing and leaves nothing: the proof
	// that it syncs, and before the rename.
	"sync fails": func(dir string, errno syscall.Errno) error {
		return withFile(dir, func(d Dir, f File) error {
			err := errors.Join(failure(f.Sync(), OpSync, errno), failure(d.Sync(), OpSyncDir, errno),
				failure(d.WriteFile("a", []byte("new")), OpWriteFile, errno))
			names, derr := d.ReadDir()
			data, rerr := ReadAll(f, 100)
			return errors.Join(err, derr, rerr, equal(fmt.Sprint(names), "[a]"), equal(string(data), "content"))
		})
	},
	"create fails": func(dir string, errno syscall.Errno) error {
		return withFile(dir, func(d Dir, _ File) error {
			syscall.Umask(0o777)
			_, err := d.Create("b")
			names, derr := d.ReadDir()
			return errors.Join(failure(err, OpCreate, errno), derr, equal(fmt.Sprint(names), "[a]"))
		})
	},
	"mkdir fails": func(dir string, errno syscall.Errno) error {
		return withFile(dir, func(d Dir, _ File) error {
			syscall.Umask(0o777)
			err := d.Mkdir("b")
			names, derr := d.ReadDir()
			return errors.Join(failure(err, OpMkdir, errno), derr, equal(fmt.Sprint(names), "[a]"))
		})
	},
}

// withFile makes the file "a" that holds "content".
func withFile(dir string, act func(Dir, File) error) error {
	d, err := OS().OpenRoot(dir)
	if err != nil {
		return err
	}
	f, err := d.Create("a")
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte("content"), 0); err != nil {
		return err
	}
	return act(d, f)
}

// failure checks that err is an *Error of op with errno.
func failure(err error, op Op, errno syscall.Errno) error {
	var e *Error
	if !errors.As(err, &e) || e.Op != op || !errors.Is(err, errno) {
		return fmt.Errorf("got %v, want op %s and %v", err, op, errno)
	}
	return nil
}

// seccompRole takes "kill" or an errno, the calls, what to do, and a directory.
func seccompRole(args []string) error {
	errno, _ := strconv.Atoi(args[0])
	action := seccomp.ActionKillProcess
	if args[0] != "kill" {
		action = seccomp.ActionErrno | seccomp.Action(errno)
	}
	if err := filter(strings.Split(args[1], ","), action); err != nil {
		return err
	}
	if err := acts[args[2]](args[3], syscall.Errno(errno)); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// forbiddenRole takes the calls that kill and the one to make.
func forbiddenRole(args []string) error {
	if err := filter(strings.Split(args[0], ","), seccomp.ActionKillProcess); err != nil {
		return err
	}
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	_, _, errno := syscall.RawSyscall(uintptr(info.SyscallNames[args[1]]), 0, 0, 0)
	return fmt.Errorf("%s returned %v", args[1], errno)
}

// filter puts every thread of this process under action for the calls.
func filter(calls []string, action seccomp.Action) error {
	var groups []seccomp.SyscallGroup
	for _, call := range calls {
		groups = append(groups, seccomp.SyscallGroup{Names: []string{call}, Action: filterAction(call, action)})
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy:     seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: groups},
	})
}

// filterAction makes one exception. A binary with the race detector starts its
// threads through glibc, which tries clone3 and takes ENOSYS for an answer; the
// Go runtime and Android's C library never try.
func filterAction(call string, action seccomp.Action) seccomp.Action {
	if call == "clone3" && raceEnabled {
		return seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)
	}
	return action
}

// here keeps the calls that exist on this architecture.
func here(calls []string) []string {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool {
		_, found := info.SyscallNames[call]
		return !found
	})
}

// needSeccomp leaves the test out where no filter can be set.
func needSeccomp(t *testing.T) {
	t.Helper()
	if !seccomp.Supported() {
		skip(t, "this kernel has no seccomp filters")
	}
	if len(here(forbidden)) == 0 {
		skip(t, "the seccomp package knows no system calls of this architecture")
	}
}

// killedBy is the signal that ended a process, or 0.
func killedBy(err error) syscall.Signal {
	var exit interface{ Sys() any }
	if errors.As(err, &exit) {
		if status, isStatus := exit.Sys().(syscall.WaitStatus); isStatus && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}
