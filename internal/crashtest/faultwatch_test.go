//go:build unix

package crashtest

import (
	"syscall"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// A watch counts as open until it is closed, and is closed once; one whose success is
// hidden is closed. What it tells passes.
func TestWatchUnderAWrapper(t *testing.T) {
	b := newBench(t, fsguard.OS(), t.TempDir())
	before := len(b.w.Open())
	watch := must(b.w.Watch(b.root, "f"))(t)
	if got := b.w.Open(); len(got) != before+1 {
		t.Errorf("open: %q", got)
	}
	ok(t, b.dir.WriteFile("f", nil))
	<-watch.C()
	ok(t, watch.Close())
	if got := b.w.Open(); len(got) != before {
		t.Errorf("open after Close: %q", got)
	}
	_ = watch.Close()
	if got := b.w.Violations(); len(got) != 1 {
		t.Errorf("violations after a second Close: %q", got)
	}

	inner := &watchCloses{FS: fsguard.OS()}
	for i, plan := range []Plan{FailAfter(1, syscall.EMFILE), StopAfter(1)} {
		plan.Reads = true
		if watch, err := Wrap(inner, plan).Watch(b.root, "f"); err == nil || watch != nil || inner.n != i+1 {
			t.Errorf("got %v, %v and %d closes, want %d", watch, err, inner.n, i+1)
		}
	}
}

// watchCloses counts how often its watches are closed.
type watchCloses struct {
	fsguard.FS
	n int
}

func (f *watchCloses) Watch(dir, name string) (fsguard.Watch, error) {
	w, err := f.FS.Watch(dir, name)
	return countedWatch{w, f}, err
}

type countedWatch struct {
	fsguard.Watch
	f *watchCloses
}

func (w countedWatch) Close() error {
	w.f.n++
	return w.Watch.Close()
}
