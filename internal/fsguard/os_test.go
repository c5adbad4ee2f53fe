//go:build unix

package fsguard

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOpenRoot(t *testing.T) { each(t, testOpenRoot) }

func testOpenRoot(t *testing.T, fsys FS) {
	_, path := tempDir(t, fsys)
	strange(t, path)
	tests := []struct {
		name string
		want error
	}{
		{"directory", nil},
		{"directory/", nil},
		{"symlink-dir", nil}, // parents and the root itself may be symlinks
		{"target", ErrNotPlain},
		{"symlink", ErrNotPlain},
		{"fifo", ErrNotPlain}, // and does not block
		{"missing", fs.ErrNotExist},
		{"dangling", fs.ErrNotExist},
		{"loop", unix.ELOOP},
		{"target/x", unix.ENOTDIR},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := fsys.OpenRoot(path + "/" + tt.name)
			if tt.want != nil {
				wantErr(t, err, OpOpenRoot, tt.want)
				return
			}
			ok(t, err)
			defer d.Close()
			if d.Name() != path+"/"+tt.name {
				t.Errorf("name: got %q", d.Name())
			}
			got, want := must(d.Info())(t).Identity, must(fsys.Stat(path+"/directory"))(t).Identity
			if got != want {
				t.Errorf("identity: got %v, want %v", got, want)
			}
		})
	}
	_, err := fsys.OpenRoot("")
	wantErr(t, err, OpOpenRoot, fs.ErrNotExist)
}

func TestOpenRootRelative(t *testing.T) { each(t, testOpenRootRelative) }

func testOpenRootRelative(t *testing.T, fsys FS) {
	t.Chdir(t.TempDir())
	ok(t, os.Mkdir("sub", 0o700))
	for _, path := range []string{".", "sub"} {
		d := must(fsys.OpenRoot(path))(t)
		if got, want := must(d.Info())(t), must(fsys.Stat(path))(t); got.Identity != want.Identity {
			t.Errorf("%s: got %v, want %v", path, got.Identity, want.Identity)
		}
		ok(t, d.Close())
	}
}

func TestStat(t *testing.T) { each(t, testStat) }

func testStat(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	strange(t, path)
	if got, want := must(fsys.Stat(path+"/symlink"))(t), must(d.Lstat("target"))(t); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	_, err := fsys.Stat(path + "/dangling")
	wantErr(t, err, OpStat, fs.ErrNotExist)
}

type syncFunc func() error

func (f syncFunc) Sync() error { return f() }

func TestSyncAllErrors(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	tests := []struct {
		name string
		errs []error
		want string
	}{
		{"none", nil, ""},
		{"one good", []error{nil}, ""},
		{"one bad", []error{one}, "one"},
		{"all good", []error{nil, nil, nil}, ""},
		{"in target order", []error{two, nil, one}, "two\none"},
		{"last", []error{nil, nil, two}, "two"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls := make([]int, len(tt.errs))
			var targets []Syncer
			for i, err := range tt.errs {
				targets = append(targets, syncFunc(func() error { calls[i]++; return err }))
			}
			got := ""
			if err := OS().SyncAll(targets...); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			for i, n := range calls {
				if n != 1 {
					t.Errorf("target %d synced %d times", i, n)
				}
			}
		})
	}
}

// Each target waits until all are being synced: one after the other would hang.
func TestSyncAllAtTheSameTime(t *testing.T) {
	const n = 5
	var running sync.WaitGroup
	running.Add(n)
	ids := make([]string, n)
	all := make(chan struct{})
	go func() { running.Wait(); close(all) }()
	targets := make([]Syncer, n)
	for i := range targets {
		targets[i] = syncFunc(func() error {
			ids[i] = goroutine()
			running.Done()
			select {
			case <-all:
				return nil
			case <-time.After(10 * time.Second):
				return errors.New("alone")
			}
		})
	}
	ok(t, OS().SyncAll(targets...))
	if ids[0] != goroutine() {
		t.Errorf("the first target ran on %s, the caller is %s", ids[0], goroutine())
	}
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	if len(seen) != n {
		t.Errorf("got %d goroutines, want %d", len(seen), n)
	}
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	buf := make([]byte, 64)
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(head)
}

func TestSyncAllOfRealFiles(t *testing.T) {
	d, _ := tempDir(t, OS())
	f := must(d.Create("a"))(t)
	g := must(d.Create("b"))(t)
	ok(t, OS().SyncAll(f, g, d))
	ok(t, g.Close())
	err := OS().SyncAll(f, g, d)
	if !errors.Is(err, fs.ErrClosed) || err.Error() != "sync b: file already closed" {
		t.Errorf("got %v", err)
	}
	ok(t, f.Close())
}

// A syncCount notes how many of its kind sync at once.
type syncCount struct{ now, most *atomic.Int64 }

func (s syncCount) Sync() error {
	n := s.now.Add(1)
	for {
		most := s.most.Load()
		if n <= most || s.most.CompareAndSwap(most, n) {
			break
		}
	}
	runtime.Gosched()
	s.now.Add(-1)
	return nil
}

// However many targets there are, only so many syncs run at once, and all run.
func TestSyncAllIsBounded(t *testing.T) {
	var now, most atomic.Int64
	targets := make([]Syncer, 5000)
	for i := range targets {
		targets[i] = syncCount{&now, &most}
	}
	if err := OS().SyncAll(targets...); err != nil {
		t.Fatal(err)
	}
	if got := most.Load(); got < 1 || got > maxSyncs {
		t.Errorf("%d syncs ran at once, want 1 to %d", got, maxSyncs)
	}
}
