//go:build unix

package fsguard

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { roles["inherit"] = inheritRole }

// dupPair gives a locked file and another description to ask with.
func dupPair(t *testing.T, fsys FS) (locked, other File) {
	t.Helper()
	d, _ := tempDir(t, fsys)
	locked = must(d.Create("lock"))(t)
	other = must(d.Open("lock"))(t)
	t.Cleanup(func() { other.Close() })
	if !must(locked.TryLock(Exclusive))(t) {
		t.Fatal("a new file is locked")
	}
	return locked, other
}

func wantFree(t *testing.T, f File, when string, want bool) {
	t.Helper()
	if got := must(f.TryLock(Exclusive))(t); got != want {
		t.Fatalf("%s: the lock is free: %v, want %v", when, got, want)
	}
}

// The lock lives until the last duplicate is closed.
func TestDupKeepsTheLock(t *testing.T) { each(t, testDupKeepsTheLock) }

func testDupKeepsTheLock(t *testing.T, fsys FS) {
	f, other := dupPair(t, fsys)
	one, two := must(f.Dup())(t), must(f.Dup())(t)
	ok(t, one.Close())
	wantFree(t, other, "one duplicate closed", false)
	ok(t, f.Close())
	wantFree(t, other, "the original closed", false)
	ok(t, two.Close())
	wantFree(t, other, "all closed", true)
}

// An unlock of the original unlocks its duplicates.
func TestDupIsOneDescription(t *testing.T) { each(t, testDupIsOneDescription) }

func testDupIsOneDescription(t *testing.T, fsys FS) {
	f, other := dupPair(t, fsys)
	dup := must(f.Dup())(t)
	defer dup.Close()
	if dup.Name() != f.Name() {
		t.Errorf("named %q, want %q", dup.Name(), f.Name())
	}
	ok(t, f.Unlock())
	wantFree(t, other, "unlocked", true)
	ok(t, f.Close())
}

func TestDupIsCloseOnExec(t *testing.T) { each(t, testDupIsCloseOnExec) }

func testDupIsCloseOnExec(t *testing.T, fsys FS) {
	f, _ := dupPair(t, fsys)
	defer f.Close()
	dup := must(f.Dup())(t)
	defer dup.Close()
	flags := must(unix.FcntlInt(dup.Fd(), unix.F_GETFD, 0))(t)
	if flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor flags %#x: a child would inherit it unasked", flags)
	}
}

func TestDupOfClosed(t *testing.T) { each(t, testDupOfClosed) }

func testDupOfClosed(t *testing.T, fsys FS) {
	f, _ := dupPair(t, fsys)
	ok(t, f.Close())
	dup, err := f.Dup()
	wantErr(t, err, OpDup, fs.ErrClosed)
	if dup != nil {
		t.Error("a duplicate beside an error")
	}
}

// A child that is given the duplicate keeps the lock after everybody else has closed
// it; one that is not given it keeps nothing.
func TestChildInheritsDup(t *testing.T) { each(t, testChildInheritsDup) }

func testChildInheritsDup(t *testing.T, fsys FS) {
	for _, given := range []bool{true, false} {
		f, other := dupPair(t, fsys)
		dup := must(f.Dup())(t)
		cmd := child(t, "inherit")
		cmd.Stderr = os.Stderr
		if given {
			cmd.ExtraFiles = []*os.File{dup}
		}
		in := must(cmd.StdinPipe())(t) // it lives until this closes
		out := must(cmd.StdoutPipe())(t)
		ok(t, cmd.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "here\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		ok(t, dup.Close())
		ok(t, f.Close())
		wantFree(t, other, "while the child lives", !given)
		ok(t, other.Unlock())
		ok(t, in.Close())
		ok(t, cmd.Wait())
		wantFree(t, other, "after the child's end", true)
	}
}

func inheritRole([]string) error {
	if _, err := os.Stdout.WriteString("here\n"); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
