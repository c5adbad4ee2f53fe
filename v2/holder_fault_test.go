//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// The file of a process that cannot lock it is removed again, and the next try works.
func TestHolderThatCannotBeLocked(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		other := b.process(t)
		for _, c := range []struct {
			name string
			err  error
			want error
		}{
			{"no flock here", unix.ENOLCK, ErrFilesystem},
			{"a broken disk", unix.EIO, unix.EIO},
		} {
			p := b.process(t)
			w := crashtest.Wrap(b.inner(p), crashtest.FailMatching(func(op fsguard.Op, path string) bool {
				return op == fsguard.OpLock && filepath.Dir(path) == filepath.Join(namespaceDir, holdersDir)
			}, c.err, 1))
			s := b.handle(t, p, w)
			name, err := holdNow(s)
			refusal(t, c.name, err, c.want, "holders/")
			if !name.zero() {
				t.Errorf("%s: a name beside an error", c.name)
			}
			b.wantFiles(t)
			name = mustHold(t, s)
			b.wantFiles(t, name)
			p.kill()
			sweepHolders(t, other.Store)
			b.wantFiles(t)
		}
	})
}

// A lock that somebody else takes first makes no holder.
func TestHolderLockedFirstByAnother(t *testing.T) {
	b := simHolding(t)
	d := b.disk
	p := b.process(t)
	var once sync.Once
	w := crashtest.Wrap(p.sim, watch(func(op fsguard.Op, path string) {
		if op != fsguard.OpLock || filepath.Dir(path) != filepath.Join(namespaceDir, holdersDir) {
			return
		}
		once.Do(func() {
			dir, err := d.Process().OpenRoot(b.at())
			mustDo(t, err)
			file, err := dir.Open(filepath.Base(path))
			mustDo(t, err)
			if ok, err := file.TryLock(fsguard.Shared); !ok || err != nil {
				t.Error(ok, err)
			}
		})
	}))
	other := b.handle(t, p, w)
	_, err := holdNow(other)
	refusal(t, "hold", err, ErrUnsafe, "locked by somebody else")
	b.wantFiles(t)
	mustHold(t, other)
}

// A name that is taken is left to whoever has it.
func TestHolderNameTaken(t *testing.T) {
	b := simHolding(t)
	name := token{3}
	b.disk.WriteRaw(b.at(name.String()), []byte("theirs"))
	p := b.process(t)
	holdingStatus(t, p.Store)
	before, open := b.disk.Tree(), p.sim.Open()
	mustDo(t, p.submit(t.Context(), &call{writes: true, decide: func(v *view) error {
		held, err := makeHolder(v.pins, bytes.NewReader(name[:]))
		if held != nil || !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v, %v", held, err)
		}
		held, err = makeHolder(v.pins, bytes.NewReader(nil))
		if held != nil || !errors.Is(err, io.EOF) {
			t.Errorf("without randomness: %v, %v", held, err)
		}
		return nil
	}}))
	if after := b.disk.Tree(); after != before || p.sim.Open() != open {
		t.Errorf("%d descriptors, were %d; changed:\n%s\nwas:\n%s", p.sim.Open(), open, after, before)
	}
}

// A full disk: no claim by a process that has not claimed yet.
func TestHolderOnAFullDisk(t *testing.T) {
	b := simHolding(t)
	d := b.disk
	p, claimed := b.process(t), b.process(t)
	name := mustHold(t, claimed.Store)
	d.SetFree(0)
	_, err := holdNow(p.Store)
	refusal(t, "hold", err, queue.ErrFull, "holders/")
	refusal(t, "hold", err, unix.ENOSPC, "holders/")
	if got := mustHold(t, claimed.Store); got != name {
		t.Errorf("another holder: %s", got)
	}
	b.wantFiles(t, name)
}

// holderFaults are what may go wrong with any operation.
var holderFaults = []unix.Errno{unix.EMFILE, unix.EIO, unix.EACCES, unix.ENFILE, unix.EROFS}

// Each operation of making a holder fails, with each error, before or after it was
// done: the error comes out, nobody is named, and the next try works.
func TestHolderFaults(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		for _, errno := range holderFaults {
			for _, plan := range []func(int, error) crashtest.Plan{crashtest.FailAt, crashtest.FailAfter, crashtest.FailAlwaysFrom} {
				for k, fired := 1, true; fired; k++ {
					fired = holderFault(t, b, plan(k, errno))
				}
			}
		}
	})
}

func holderFault(t *testing.T, b holdingBench, plan crashtest.Plan) (fired bool) {
	p := b.process(t)
	w := crashtest.Wrap(b.inner(p), crashtest.Plan{})
	s := b.handle(t, p, w)
	plan.Reads = true
	what := fmt.Sprintf("%v at %d", plan.Err, plan.N)
	var name token
	var failed error
	mustDo(t, s.submit(t.Context(), &call{writes: true, decide: func(v *view) error {
		before := w.Open()
		w.Arm(plan)
		name, failed = s.holder(v.pins)
		fired = w.Fired()
		w.Arm(crashtest.Plan{})
		if after := w.Open(); failed != nil && !slices.Equal(after, before) {
			t.Errorf("%s: %q are open, were %q", what, after, before)
		}
		return nil
	}}))
	if failed != nil {
		if !errors.Is(failed, plan.Err) || !name.zero() || len(p.set.made) > 0 {
			t.Errorf("%s: %v, holder %s, %d made", what, failed, name, len(p.set.made))
		}
		if left := b.files(t); len(left) > 1 || len(left) == 1 && plan.Mode == crashtest.FailingAt {
			t.Errorf("%s: left %q", what, left)
		}
		name = mustHold(t, s)
	}
	other := b.process(t)
	wantHolderDead(t, other.Store, name, false)
	sweepHolders(t, other.Store)
	b.wantFiles(t, name) // garbage goes, the living stay
	p.kill()
	sweepHolders(t, other.Store)
	b.wantFiles(t)
	if v := w.Violations(); len(v) > 0 && b.disk == nil {
		t.Errorf("%s: %q", what, v)
	}
	other.kill()
	return fired
}
