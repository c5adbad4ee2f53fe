package fsguard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/sandbox"
)

func init() {
	acts["watch fails"] = watchFails
}

// watchedDir gives a watch on the name "state" of a fresh directory below another, with
// room for signals to be counted, and the directory.
func watchedDir(t *testing.T) (*osWatch, Dir, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "watched")
	ok(t, os.Mkdir(path, 0o700))
	d := must(OS().OpenRoot(path))(t)
	creation(t, d, "state", "old")
	creation(t, d, "lock", "")
	w := must(newWatch(path, "state"))(t)
	w.changed = make(chan struct{}, 100)
	go w.follow()
	t.Cleanup(func() {
		ok(t, w.Close())
		ok(t, d.Close())
	})
	return w, d, path
}

// signals counts what the watch has told once everything so far is behind it: the
// directory is moved, which is the last thing that a watch tells.
func (w *osWatch) signals(t *testing.T) int {
	t.Helper()
	ok(t, os.Rename(w.dir, w.dir+"-moved"))
	<-w.ended
	if !w.Lost() {
		t.Error("the watch on a moved directory is not lost")
	}
	return len(w.changed) - 1
}

// Only another file at the name signals, once for each.
func TestWatchSignals(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, d Dir)
		want int
	}{
		{"nothing", func(*testing.T, Dir) {}, 0},
		{"a temp is made, written, synced and removed", func(t *testing.T, d Dir) {
			f := must(d.Create("state.tmp"))(t)
			must(f.WriteAt([]byte("new"), 0))(t)
			ok(t, f.Sync())
			ok(t, f.Close())
			ok(t, d.Remove("state.tmp"))
		}, 0},
		{"the lock is taken, written and released", func(t *testing.T, d Dir) {
			f := must(d.OpenWrite("lock"))(t)
			ok(t, f.Lock(Exclusive))
			must(f.WriteAt([]byte("me"), 0))(t)
			ok(t, f.Unlock())
			ok(t, f.Close())
		}, 0},
		{"the file there is read, written and its mode changed", func(t *testing.T, d Dir) {
			if got := content(t, d, "state"); got != "old" {
				t.Errorf("got %q", got)
			}
			f := must(d.OpenWrite("state"))(t)
			must(f.WriteAt([]byte("new"), 0))(t)
			ok(t, f.Sync())
			ok(t, f.Close())
			ok(t, os.Chmod(filepath.Join(d.Name(), "state"), 0o640))
		}, 0},
		{"other names come, are replaced and go", func(t *testing.T, d Dir) {
			ok(t, d.Mkdir("objects"))
			ok(t, d.WriteFile("states", nil))
			ok(t, d.WriteFile("states", nil))
			ok(t, d.Rename("states", "stat"))
			ok(t, d.Remove("stat"))
			ok(t, d.RemoveDir("objects"))
		}, 0},
		{"the name in a directory below", func(t *testing.T, d Dir) {
			ok(t, d.Mkdir("sub"))
			sub := must(d.OpenDir("sub"))(t)
			ok(t, sub.WriteFile("state", nil))
			ok(t, sub.Close())
		}, 0},
		{"a rename over it", func(t *testing.T, d Dir) {
			creation(t, d, "temp", "new")
			ok(t, d.Rename("temp", "state"))
		}, 1},
		{"an exchange with another", func(t *testing.T, d Dir) {
			creation(t, d, "temp", "new")
			needExchange(t, d)
			ok(t, d.Exchange("state", "temp"))
			ok(t, d.Exchange("temp", "state"))
		}, 4}, // each takes one away and brings another
		{"three renames over it", func(t *testing.T, d Dir) {
			for range 3 {
				ok(t, d.WriteFile("state", nil))
			}
		}, 3},
		{"it is removed and made", func(t *testing.T, d Dir) {
			ok(t, d.Remove("state"))
			creation(t, d, "state", "new")
		}, 2},
		{"it is renamed", func(t *testing.T, d Dir) { ok(t, d.Rename("state", "was")) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, d, _ := watchedDir(t)
			c.do(t, d)
			if got := w.signals(t); got != c.want {
				t.Errorf("%d signals, want %d", got, c.want)
			}
		})
	}
}

// Signals that nobody has received are one.
func TestWatchSignalsBecomeOne(t *testing.T) {
	d, path := tempDir(t, OS())
	watch := must(OS().Watch(path, "state"))(t)
	for range 10 {
		ok(t, d.WriteFile("state", nil))
	}
	ok(t, d.Close())
	ok(t, os.Rename(path, path+"-moved"))
	w := watch.(*osWatch)
	<-w.ended
	<-watch.C()
	select {
	case <-watch.C():
		t.Error("a second signal")
	default:
	}
	ok(t, watch.Close())
	ok(t, os.Rename(path+"-moved", path))
}

// A watch that may have missed something says so.
func TestWatchIsLost(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, w *osWatch)
	}{
		{"the directory is moved", func(t *testing.T, w *osWatch) { ok(t, os.Rename(w.dir, w.dir+"-moved")) }},
		{"the directory is removed", func(t *testing.T, w *osWatch) { ok(t, os.RemoveAll(w.dir)) }},
		{"reading fails", func(t *testing.T, w *osWatch) { w.watcher.Errors <- unix.EIO }},
		{"it is closed", func(t *testing.T, w *osWatch) { ok(t, w.watcher.Close()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "watched")
			ok(t, os.Mkdir(path, 0o700))
			watch := must(OS().Watch(path, "state"))(t)
			if watch.Lost() || !watch.Sure() {
				t.Error("lost, or not sure, from the beginning")
			}
			c.do(t, watch.(*osWatch))
			<-watch.C()
			if !watch.Lost() {
				t.Error("not lost")
			}
			ok(t, watch.Close())
		})
	}

	// An unmount goes by without an event: fsnotify only forgets the directory.
	t.Run("the directory is forgotten", func(t *testing.T) {
		w, _, path := watchedDir(t)
		ok(t, w.watcher.Remove(path))
		if !w.Lost() {
			t.Error("not lost")
		}
	})
}

// When the kernel's queue overflows, the watch is lost.
func TestWatchOverflows(t *testing.T) {
	text := must(os.ReadFile("/proc/sys/fs/inotify/max_queued_events"))(t)
	most := must(strconv.Atoi(string(text[:len(text)-1])))(t)
	if most > 1<<20 {
		skip(t, "this kernel queues more events than a test should make")
	}
	d, path := tempDir(t, OS())
	w := must(newWatch(path, "state"))(t)
	// Nobody follows yet, so what fsnotify has read waits in it: a buffer of 64 KiB.
	// Each rename is two events.
	ok(t, d.Mkdir("a"))
	for range most/4 + 64<<10/(4*unix.SizeofInotifyEvent) {
		ok(t, d.Rename("a", "b"))
		ok(t, d.Rename("b", "a"))
	}
	go w.follow()
	<-w.C()
	<-w.ended
	if !w.Lost() {
		t.Error("not lost")
	}
	ok(t, w.Close())
}

// However the path to the directory is spelled, the name in it is found.
func TestWatchPaths(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "dir")
	ok(t, os.Mkdir(dir, 0o700))
	ok(t, os.Symlink("dir", filepath.Join(top, "link")))
	d := must(OS().OpenRoot(dir))(t)
	defer d.Close()
	t.Chdir(dir)
	for _, path := range []string{dir, dir + "/", dir + "/.", top + "//link", "../link/", ".", "", "../dir/../dir"} {
		w, err := OS().Watch(path, "state")
		if path == "" {
			wantErr(t, err, OpWatch, fs.ErrNotExist)
			continue
		}
		ok(t, err)
		ok(t, d.WriteFile("state", nil))
		<-w.C()
		if w.Lost() {
			t.Errorf("%q: lost", path)
		}
		ok(t, w.Close())
	}
}

// What cannot be watched is refused and leaves nothing open, and a watch that was
// closed leaves nothing: no descriptor and no goroutine.
func TestWatchLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	before := descriptors(t)
	for _, name := range badNames {
		_, err := OS().Watch(dir, name)
		wantErr(t, err, OpWatch, ErrName)
	}
	_, err := OS().Watch(filepath.Join(dir, "missing"), "state")
	wantErr(t, err, OpWatch, fs.ErrNotExist)
	_, err = OS().Watch(filepath.Join(dir, "file"), "state")
	wantErr(t, err, OpWatch, ErrNotPlain)
	if after := descriptors(t); !slices.Equal(after, before) {
		t.Errorf("open: %q, before %q", after, before)
	}
	for range 3 {
		w := must(OS().Watch(dir, "state"))(t)
		if slices.Equal(descriptors(t), before) {
			t.Error("a watch holds no descriptor: this test sees nothing")
		}
		ok(t, w.Close())
		ok(t, w.Close())
		<-w.(*osWatch).ended
		if after := descriptors(t); !slices.Equal(after, before) {
			t.Errorf("open after Close: %q, before %q", after, before)
		}
	}
}

// descriptors lists what this process has open for watching.
func descriptors(t *testing.T) (open []string) {
	t.Helper()
	for _, fd := range must(os.ReadDir("/proc/self/fd"))(t) {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == "anon_inode:inotify" {
			open = append(open, fd.Name())
		}
	}
	return open
}

// The kernel's refusals come as they are, and leave nothing open.
func TestWatchErrnos(t *testing.T) {
	sandbox.Need(t)
	for _, c := range []struct {
		call  string
		errno syscall.Errno
	}{
		{"inotify_init1", unix.EMFILE}, {"inotify_init1", unix.ENOSYS},
		{"inotify_add_watch", unix.ENOSPC}, {"inotify_add_watch", unix.EACCES},
	} {
		t.Run(c.call+"="+strconv.Itoa(int(c.errno)), func(t *testing.T) {
			runChild(t, "seccomp", strconv.Itoa(int(c.errno)), c.call, "watch fails", t.TempDir())
		})
	}
}

func watchFails(dir string, errno syscall.Errno) error {
	w, err := OS().Watch(dir, "state")
	if w != nil {
		return errors.New("a watch beside an error")
	}
	fds, derr := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); to == "anon_inode:inotify" {
			derr = fmt.Errorf("descriptor %s is left", fd.Name())
		}
	}
	return errors.Join(failure(err, OpWatch, errno), derr)
}
