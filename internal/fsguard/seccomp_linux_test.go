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

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/reexec"
	"example.com/holdfast/internal/crashtest/sandbox"
)

func init() {
	roles["seccomp"] = seccompRole
	roles["forbidden call"] = forbiddenRole
}

// forbidden are the calls that an Android app may not make, or not everywhere,
// and those that need hard links or symlinks. One of them and the process dies.
var forbidden = slices.Concat(sandbox.Links, sandbox.Android)

// changing are the calls that change a mode after creation.
var changing = []string{"chmod", "fchmod", "fchmodat", "fchmodat2"}

// Everything works without the forbidden calls.
func TestForbiddenCallsAreNotMade(t *testing.T) {
	sandbox.Need(t)
	for _, act := range []string{"exercise", "exercise paths"} {
		dir := t.TempDir()
		if got := runChild(t, "seccomp", "kill", strings.Join(sandbox.Known(forbidden), ","), act, dir); got != "done\n" {
			t.Errorf("%s: got %q, want done", act, got)
		}
	}
}

// The filter is real: each of the calls kills the process that makes it.
func TestForbiddenCallsKill(t *testing.T) {
	sandbox.Need(t)
	for _, call := range sandbox.Known(forbidden) {
		if sandbox.Excepted(call) {
			continue
		}
		err := child(t, "forbidden call", strings.Join(sandbox.Known(forbidden), ","), call).Run()
		if got := reexec.KilledBy(err); got != syscall.SIGSYS {
			t.Errorf("%s: got %v (%v), want SIGSYS", call, got, err)
		}
	}
	// So is Link, which the exercise leaves out.
	err := child(t, "seccomp", "kill", strings.Join(sandbox.Known(forbidden), ","), "link", t.TempDir()).Run()
	if got := reexec.KilledBy(err); got != syscall.SIGSYS {
		t.Errorf("Link: got %v (%v), want SIGSYS", got, err)
	}
	for _, call := range []string{"linkat", "symlinkat", "openat2", "fchmodat2", "clone3", "statx"} {
		if !slices.Contains(sandbox.Known(forbidden), call) {
			t.Errorf("%s has no number here", call)
		}
	}
}

// With a umask that takes nothing away, the modes come out exact although every
// later change is forbidden: nothing is wider for even an instant.
func TestModesAreRightFromTheFirstInstant(t *testing.T) {
	sandbox.Need(t)
	for _, act := range []string{"make", "make paths"} {
		dir := t.TempDir()
		ok(t, os.WriteFile(filepath.Join(dir, "replaced"), nil, 0o600))
		ok(t, os.Chmod(filepath.Join(dir, "replaced"), 0o666))
		runChild(t, "seccomp", "kill", strings.Join(sandbox.Known(changing), ","), act, dir)
		checkModes(t, dir)
	}
}

// Errnos that this kernel does not give by itself, given by the filter.
func TestErrnos(t *testing.T) {
	sandbox.Need(t)
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
		{"fsync", unix.EIO, "sync fails paths"},
		{"fdatasync", unix.EIO, "syncdata fails"},
		{"fdatasync", unix.ENOSPC, "syncdata fails"},
		{"fsync", unix.EIO, "syncdata alone"}, // it calls no fsync
		{"fcntl", unix.EMFILE, "dup fails"},
		{"fchmod", unix.EPERM, "create fails"},
		{"fchmodat", unix.EPERM, "mkdir fails"},
		{"linkat", unix.EACCES, "link fails"}, // what SELinux answers to an Android app
		{"linkat", unix.EPERM, "link fails"},
		{"linkat", unix.EXDEV, "link fails"},
		{"linkat", unix.ENOTSUP, "link fails"},
		{"linkat", unix.ENOSYS, "link fails"},
		{"linkat", unix.EMLINK, "link fails"},
		{"linkat", unix.EINTR, "link fails"}, // once
		{"renameat2", unix.ENOSYS, "movenew fails"},
		{"renameat2", unix.EINVAL, "movenew fails"}, // a filesystem that does not know the flag
		{"renameat2", unix.EXDEV, "movenew fails"},
		{"renameat2", unix.EINTR, "movenew fails"},
		{"renameat2", unix.ENOSYS, "exchange fails"},
		{"renameat2", unix.EINVAL, "exchange fails"},
		{"renameat2", unix.ENOTSUP, "exchange fails"},
		{"renameat2", unix.EXDEV, "exchange fails"},
		{"renameat2", unix.EINTR, "exchange fails"},
		{"renameat", unix.EXDEV, "move fails"},
		{"renameat", unix.EINTR, "move fails"},
	}
	for _, tt := range tests {
		t.Run(tt.act+"/"+tt.call+"="+strconv.Itoa(int(tt.errno)), func(t *testing.T) {
			runChild(t, "seccomp", strconv.Itoa(int(tt.errno)), tt.call, tt.act, t.TempDir())
		})
	}
}

// acts are what a process does under a filter that answers errno.
var acts = map[string]func(dir string, errno syscall.Errno) error{
	"exercise":       func(dir string, _ syscall.Errno) error { return exercise(OS(), dir) },
	"exercise paths": func(dir string, _ syscall.Errno) error { return exercise(Paths(), dir) },
	"link":           func(dir string, _ syscall.Errno) error { return exerciseLink(OS(), dir) },
	"make": func(dir string, _ syscall.Errno) error {
		syscall.Umask(0)
		return makeAll(OS(), dir)
	},
	"make paths": func(dir string, _ syscall.Errno) error {
		syscall.Umask(0)
		return makeAll(Paths(), dir)
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
	"sync fails":       syncFails(OS()),
	"sync fails paths": syncFails(Paths()),
	"syncdata fails": func(dir string, errno syscall.Errno) error {
		return withFile(dir, func(_ Dir, f File) error {
			return errors.Join(failure(f.SyncData(), OpSyncData, errno),
				failure(OS().SyncAll(DataOf(f)), OpSyncData, errno), f.Sync())
		})
	},
	"syncdata alone": func(dir string, errno syscall.Errno) error {
		return withFile(dir, func(_ Dir, f File) error {
			return errors.Join(f.SyncData(), OS().SyncAll(DataOf(f)), failure(f.Sync(), OpSync, errno))
		})
	},
	"link fails":     twoNamesFail(OpLink, Dir.Link),
	"move fails":     twoNamesFail(OpMove, Dir.Move),
	"movenew fails":  twoNamesFail(OpMoveNew, Dir.MoveNew),
	"exchange fails": exchangeFails,
	"dup fails": func(dir string, errno syscall.Errno) error {
		return withFile(dir, func(_ Dir, f File) error {
			dup, err := f.Dup()
			if dup != nil {
				return errors.New("a duplicate beside an error")
			}
			return errors.Join(failure(err, OpDup, errno), held(f.TryLock(Exclusive)))
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

// A WriteFile whose sync fails replaces nothing and leaves nothing: the proof that it
// syncs, and before the rename.
func syncFails(fsys FS) func(dir string, errno syscall.Errno) error {
	return func(dir string, errno syscall.Errno) error {
		return withFileOf(fsys, dir, func(d Dir, f File) error {
			err := errors.Join(failure(f.Sync(), OpSync, errno), failure(d.Sync(), OpSyncDir, errno),
				failure(d.WriteFile("a", []byte("new")), OpWriteFile, errno))
			names, derr := d.ReadDir()
			data, rerr := ReadAll(f, 100)
			return errors.Join(err, derr, rerr, equal(fmt.Sprint(names), "[a]"), equal(string(data), "content"))
		})
	}
}

// twoNamesFail gives an act in which an operation on two names fails with errno and does
// nothing in its stead, inside a directory and across two, on both implementations.
func twoNamesFail(op Op, do func(d Dir, oldName string, to Dir, newName string) error) func(string, syscall.Errno) error {
	return func(dir string, errno syscall.Errno) (err error) {
		for _, s := range systems {
			path := filepath.Join(dir, s.name)
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			err = errors.Join(err, withFileOf(s.fsys, path, func(d Dir, _ File) error {
				if err := d.Mkdir("sub"); err != nil {
					return err
				}
				sub, err := d.OpenDir("sub")
				if err != nil {
					return err
				}
				err = errors.Join(failure(do(d, "a", d, "b"), op, errno), failure(do(d, "a", sub, "b"), op, errno))
				names, derr := d.ReadDir()
				below, serr := sub.ReadDir()
				info, ierr := d.Lstat("a")
				return errors.Join(err, derr, serr, ierr, equal(fmt.Sprint(names, below, info.Links), "[a sub] [] 1"))
			}))
		}
		return err
	}
}

// exchangeFails is an act in which Exchange fails with errno and does nothing in its stead.
func exchangeFails(dir string, errno syscall.Errno) (err error) {
	unsupported := errno == unix.EINVAL || errno == unix.ENOSYS || errno == unix.ENOTSUP
	for _, s := range systems {
		path := filepath.Join(dir, s.name)
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		err = errors.Join(err, withFileOf(s.fsys, path, func(d Dir, f File) error {
			if err := d.WriteFile("b", nil); err != nil {
				return err
			}
			xerr := d.Exchange("a", "b")
			there, lerr := d.Lstat("a")
			here, ierr := f.Info()
			names, derr := d.ReadDir()
			return errors.Join(failure(xerr, OpExchange, errno), lerr, ierr, derr, equal(fmt.Sprint(names), "[a b]"),
				equal(fmt.Sprint(there.Identity, errors.Is(xerr, errors.ErrUnsupported)), fmt.Sprint(here.Identity, unsupported)))
		}))
	}
	return err
}

// withFile makes the file "a" that holds "content".
func withFile(dir string, act func(Dir, File) error) error { return withFileOf(OS(), dir, act) }

func withFileOf(fsys FS, dir string, act func(Dir, File) error) error {
	d, err := fsys.OpenRoot(dir)
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
	calls := strings.Split(args[1], ",")
	filter := func() error { return sandbox.Refuse(calls, syscall.Errno(errno)) }
	if args[0] == "kill" {
		filter = func() error { return sandbox.Kill(calls) }
	}
	if err := filter(); err != nil {
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
	if err := sandbox.Kill(strings.Split(args[0], ",")); err != nil {
		return err
	}
	return sandbox.Make(args[1])
}
