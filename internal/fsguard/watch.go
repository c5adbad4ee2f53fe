//go:build unix

package fsguard

import (
	"path/filepath"
	"runtime"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// An osWatch is fsnotify on one directory: inotify on Linux and Android, kqueue on
// darwin and the BSDs. The library is used because it is well kept and has met what
// reading either interface by hand would have to learn again: records cut at the end
// of a buffer, queues that overflow, reads that a close must end.
//
// On inotify every rename over the name is an event (IN_MOVED_TO), and the kernel
// says when it had to drop some (IN_Q_OVERFLOW): a watch that is not lost has missed
// nothing.
//
// kqueue knows no names. There fsnotify opens each file of the directory, takes a
// deletion of the old file for the replacement and then opens the new one; what
// replaces that one before it is open shows only as a change of the directory, in
// which the name is no new one, and is not told. So such a watch is a help and not
// sure: see Sure.
type osWatch struct {
	watcher   *fsnotify.Watcher
	dir, path string // as fsnotify tells them
	changed   chan struct{}
	ended     chan struct{} // follow has returned
}

// Watch begins to watch the directory at dir, symlinks in dir followed.
func (osFS) Watch(dir, name string) (Watch, error) {
	w, err := newWatch(dir, name)
	if err != nil {
		return nil, wrap(OpWatch, dir, err)
	}
	go w.follow()
	return w, nil
}

// newWatch makes a watch that nobody follows yet.
func newWatch(dir, name string) (*osWatch, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	info, err := fstatat(unix.AT_FDCWD, dir, 0)
	if err == nil && !info.Mode.IsDir() {
		err = ErrNotPlain // inotify would watch a file too
	}
	if err != nil {
		return nil, err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	dir = filepath.Clean(dir)
	if err := watcher.Add(dir); err != nil {
		_ = watcher.Close() // it watches nothing; err says more
		return nil, err
	}
	return &osWatch{
		watcher: watcher, dir: dir, path: filepath.Join(dir, name),
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}, nil
}

// follow takes every event of the directory, most of which are of other names.
func (w *osWatch) follow() {
	defer close(w.ended)
	for {
		select {
		case e, more := <-w.watcher.Events:
			switch at := filepath.Clean(e.Name); { // "./name" for a name in "."
			case !more:
				w.lose()
				return
			case at == w.path && e.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename):
				w.signal()
			case at == w.dir && e.Has(fsnotify.Remove|fsnotify.Rename):
				w.lose()
				return
			}
		case <-w.watcher.Errors: // an overflow, a read that failed, or the end
			w.lose()
			return
		}
	}
}

func (w *osWatch) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // the one that waits there stands for this one too
	}
}

// lose gives the watch up. The watcher is closed at once: one whose reads fail would
// go on reading.
func (w *osWatch) lose() {
	_ = w.watcher.Close() // there is nothing in it that could be lost
	w.signal()
}

func (w *osWatch) C() <-chan struct{} { return w.changed }

// Lost asks fsnotify what it watches: nothing any more when it was closed, and when
// the filesystem was unmounted (IN_UNMOUNT), which it does not tell.
func (w *osWatch) Lost() bool { return len(w.watcher.WatchList()) == 0 }

func (w *osWatch) Sure() bool { return runtime.GOOS == "linux" || runtime.GOOS == "android" }

// Close ends the watch and waits until nothing of it runs. A second one does nothing.
func (w *osWatch) Close() error {
	err := w.watcher.Close()
	<-w.ended
	return wrap(OpClose, w.dir, err)
}
