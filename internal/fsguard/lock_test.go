//go:build unix

package fsguard

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() { roles["lock"] = lockRole }

// pair opens two descriptions on one file, or on one directory.
func pair(t *testing.T, fsys FS, dir bool) (a, b locker) {
	t.Helper()
	d, _ := tempDir(t, fsys)
	if dir {
		a, b = d, must(d.OpenDir("."))(t)
	} else {
		a = must(d.Create("lock"))(t)
		b = must(d.Open("lock"))(t) // reading is enough for any lock
		t.Cleanup(func() { a.Close() })
	}
	t.Cleanup(func() { b.Close() })
	return a, b
}

type locker interface {
	Locker
	Info() (Info, error)
	Close() error
}

func TestTwoDescriptionsExcludeEachOther(t *testing.T) { each(t, testTwoDescriptionsExcludeEachOther) }

func testTwoDescriptionsExcludeEachOther(t *testing.T, fsys FS) {
	tests := []struct {
		held, wanted LockMode
		want         bool
	}{
		{Exclusive, Exclusive, false},
		{Exclusive, Shared, false},
		{Shared, Exclusive, false},
		{Shared, Shared, true},
	}
	for _, dir := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("dir=%v/%d-%d", dir, tt.held, tt.wanted), func(t *testing.T) {
				a, b := pair(t, fsys, dir)
				ok(t, a.Lock(tt.held))
				if got := must(b.TryLock(tt.wanted))(t); got != tt.want {
					t.Errorf("while held: got %v, want %v", got, tt.want)
				}
				ok(t, a.Unlock())
				if got := must(b.TryLock(tt.wanted))(t); !got {
					t.Error("after Unlock: got false, want true")
				}
			})
		}
	}
}

func TestCloseReleases(t *testing.T) { each(t, testCloseReleases) }

func testCloseReleases(t *testing.T, fsys FS) {
	a, b := pair(t, fsys, false)
	if got := must(a.TryLock(Exclusive))(t); !got {
		t.Fatal("got false, want true")
	}
	ok(t, a.Close())
	if got := must(b.TryLock(Exclusive))(t); !got {
		t.Error("the lock outlived its description")
	}
}

func TestUnlockOfNothing(t *testing.T) { each(t, testUnlockOfNothing) }

func testUnlockOfNothing(t *testing.T, fsys FS) {
	a, _ := pair(t, fsys, false)
	ok(t, a.Unlock())
}

// Only "would block" is false, nil.
func TestTryLockErrors(t *testing.T) { each(t, testTryLockErrors) }

func testTryLockErrors(t *testing.T, fsys FS) {
	if runtime.GOOS != "linux" {
		t.Skip("needs O_PATH, which only Linux has")
	}
	const oPath = 0x200000 // a descriptor that flock refuses with EBADF (open(2))
	d, _ := tempDir(t, fsys)
	creation(t, d, "a", "")
	ok(t, pinnedOf(d).control(func(dirfd int) error {
		fd := must(unix.Openat(dirfd, "a", oPath|unix.O_CLOEXEC, 0))(t)
		f := &osFile{newDescriptor(fd, "a")}
		defer f.Close()
		held, err := f.TryLock(Exclusive)
		if held {
			t.Error("held")
		}
		wantErr(t, err, OpLock, unix.EBADF)
		wantErr(t, f.Lock(Exclusive), OpLock, unix.EBADF)
		wantErr(t, f.Unlock(), OpUnlock, unix.EBADF)
		return nil
	}))
}

func TestLockWaitsAndGetsIt(t *testing.T) { each(t, testLockWaitsAndGetsIt) }

func testLockWaitsAndGetsIt(t *testing.T, fsys FS) {
	for _, dir := range []bool{false, true} {
		a, b := pair(t, fsys, dir)
		ok(t, a.Lock(Exclusive))
		var released atomic.Bool
		got := make(chan error, 1)
		go func() {
			err := b.Lock(Exclusive)
			if err == nil && !released.Load() {
				err = fmt.Errorf("got the lock while another held it")
			}
			got <- err
		}()
		waitBlocked(t, b)

		// Everything else goes on meanwhile, on the waiting description too.
		must(b.Info())(t)
		other, _ := tempDir(t, fsys)
		creation(t, other, "x", "y")
		ok(t, other.Lock(Exclusive))
		ok(t, other.Sync())

		released.Store(true)
		ok(t, a.Unlock())
		ok(t, <-got)
		if again := must(a.TryLock(Shared))(t); again {
			t.Error("the waiter does not hold what it got")
		}
	}
}

// Close does not wait for a Lock that waits; that Lock never reports success.
func TestCloseWhileLockWaits(t *testing.T) { each(t, testCloseWhileLockWaits) }

func testCloseWhileLockWaits(t *testing.T, fsys FS) {
	for _, dir := range []bool{false, true} {
		a, b := pair(t, fsys, dir)
		ok(t, a.Lock(Exclusive))
		got := make(chan error, 1)
		go func() { got <- b.Lock(Exclusive) }()
		waitBlocked(t, b)
		ok(t, b.Close())
		ok(t, a.Unlock())
		wantErr(t, <-got, OpLock, fs.ErrClosed)
		ok(t, a.Lock(Exclusive)) // would hang if the abandoned lock were kept
	}
}

// waitBlocked returns when somebody waits for the flock of l in the kernel, which
// Linux shows in /proc/locks (proc_locks(5)). Elsewhere it returns at once.
func waitBlocked(t *testing.T, l locker) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	inode := fmt.Sprintf(":%d ", must(l.Info())(t).Ino)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		for line := range strings.Lines(string(must(os.ReadFile("/proc/locks"))(t))) {
			if strings.Contains(line, "-> FLOCK") && strings.Contains(line, inode) {
				return
			}
		}
	}
	t.Fatal("nobody waits for the lock")
}

func TestKillReleasesLock(t *testing.T) { each(t, testKillReleasesLock) }

func testKillReleasesLock(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	creation(t, d, "lock", "")
	f := must(d.Open("lock"))(t)
	defer f.Close()

	cmd := child(t, "lock", path)
	cmd.Stderr = os.Stderr
	in := must(cmd.StdinPipe())(t) // it lives until this closes
	defer in.Close()
	out := must(cmd.StdoutPipe())(t)
	ok(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if got := must(f.TryLock(Shared))(t); got {
		t.Error("two processes hold the lock")
	}
	ok(t, cmd.Process.Kill())
	ok(t, f.Lock(Exclusive)) // waits for the kernel to let go
	if err := cmd.Wait(); err == nil {
		t.Error("the child was not killed")
	}
}

func lockRole(args []string) error {
	d, err := OS().OpenRoot(args[0])
	if err != nil {
		return err
	}
	f, err := d.Open("lock")
	if err != nil {
		return err
	}
	if err := f.Lock(Exclusive); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
