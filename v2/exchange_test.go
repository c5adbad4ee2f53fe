//go:build unix

package holdfast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// spareStands tells what stands at state.json and at the spare of a revision.
func spareStands(t *testing.T, d *crashtest.Disk, revision uint64) (state, spare fsguard.Info) {
	t.Helper()
	space := simSpace(t, d)
	defer space.Close()
	state, err := space.Lstat(stateFile)
	mustDo(t, err)
	spare, err = space.Lstat(spareName(revision))
	mustDo(t, err)
	return state, spare
}

// mustStand opens the store on the disk as a new process and wants that many messages.
func mustStand(t *testing.T, d *crashtest.Disk, pending uint64) {
	t.Helper()
	p := d.Process()
	defer p.Kill()
	s, err := Open(t.Context(), crashDir, crashOptions(p))
	mustDo(t, err)
	defer s.Close()
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil || !st.Settled || st.Queues["mail"].Pending != pending {
		t.Errorf("status %+v, %v; want %d pending", st, err, pending)
	}
	report, err := s.Verify(t.Context(), VerifyOptions{})
	if err != nil || !report.OK || report.Temps != 0 {
		t.Errorf("verify %+v, %v", report, err)
	}
}

// The files take turns, and a commit makes none, frees none and changes no length.
func TestExchangeTakesTurns(t *testing.T) {
	d, s, w := onDisk(t)
	files := map[fsguard.Identity]bool{}
	for n := range uint64(spares) {
		state, spare := spareStands(t, d, n)
		files[state.Identity], files[spare.Identity] = true, true
		if state.Size != spareBlock || spare.Size != spareBlock {
			t.Fatalf("created: state %+v, spare %d %+v", state, n, spare)
		}
	}
	if len(files) != 1+spares {
		t.Fatalf("%d files", len(files))
	}
	for n := range uint64(10) {
		revision := s.cached.st.revision + 1
		state, spare := spareStands(t, d, revision)
		w.Arm(crashtest.Plan{})
		mustEnqueue(t, s, "mail", small(fmt.Sprint(n)))
		if n := w.Count(fsguard.OpExchange); n != 1 {
			t.Errorf("%d exchanges", n)
		}
		if n := w.Count(fsguard.OpRename) + w.Count(fsguard.OpRemove); n != 0 {
			t.Errorf("%d files were replaced or removed", n)
		}
		nowState, nowSpare := spareStands(t, d, revision)
		if nowState.Identity != spare.Identity || nowSpare.Identity != state.Identity || nowState.Size != spareBlock {
			t.Fatalf("commit %d: state %+v, spare %+v", n, nowState, nowSpare)
		}
		mustStand(t, d, n+1)
	}
}

// On a disk without room the spares go, but none that a crash may still need: their exchanges
// are made durable first.
func TestGiveUpSpares(t *testing.T) {
	for commits := range 3 {
		d, s, _ := onDisk(t)
		mustEnqueue(t, s, "mail", smalls(8)...)
		held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 8})
		for n := range commits {
			mustDo(t, s.Ack(t.Context(), held[n].Receipt))
		}
		d.Remove(inCrash(spareName(s.seen.revision + 1)))
		d.SetFree(0)
		cut := 0
		w := watch(func(op fsguard.Op, path string) {
			if op != fsguard.OpRemove || !isSparePath(path) {
				return
			}
			for image := range d.Images(200, 1) {
				cut++
				again, err := Open(t.Context(), crashDir, crashOptions(image.Process()))
				mustDo(t, err)
				st, err := again.Status(t.Context(), queue.StatusOptions{})
				if got := int(st.Queues["mail"].Counters.Completed); err != nil || got != commits {
					t.Errorf("%d acked, then no room and a power loss: %d, %v", commits, got, err)
				}
				mustDo(t, again.Close())
			}
		})
		handle := crashtest.Wrap(d.Process(), w)
		o := crashOptions(handle)
		other, err := Open(t.Context(), crashDir, o)
		mustDo(t, err)
		mustDo(t, other.Ack(t.Context(), held[7].Receipt), other.Ack(t.Context(), held[6].Receipt))
		if cut == 0 || d.Exists(inCrash(spareName(0))) {
			t.Errorf("%d images; the spares were not given up", cut)
		}
		d.SetFree(1 << 30)
		mustEnqueue(t, other, "mail", small("more"))
		mustEnqueue(t, other, "mail", small("more-still"))
		if !other.cached.st.exchange || d.Exists(inCrash(stateTemp(other.seen.commit))) || !d.Exists(inCrash(spareName(other.seen.revision))) {
			t.Error("no spare was made again")
		}
		mustDo(t, other.Close())
	}
}

// Where the sync that makes the exchanges durable has failed, the same sync again, which succeeds,
// is not believed: the spares stay.
func TestGiveUpSparesAfterAFailedSync(t *testing.T) {
	d, s, w := onDisk(t)
	mustEnqueue(t, s, "mail", smalls(3)...)
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		return op == fsguard.OpSyncDir && path == namespaceDir
	}, unix.EIO, 1))
	for range 2 {
		if s.giveUpSpares(s.pins) || s.crowded {
			t.Error("the spares were given up")
		}
	}
	if n := w.Count(fsguard.OpSyncDir); n != 1 {
		t.Errorf("%d syncs of the namespace, want the one that failed", n)
	}
	for n := range uint64(spares) {
		if !d.Exists(inCrash(spareName(n))) {
			t.Errorf("%s is gone", spareName(n))
		}
	}
}

// An enqueue that makes the text outgrow its spare lengthens all: on a full disk, what stands can
// then be claimed and settled, whosever turn it is.
func TestSparesGrowTogether(t *testing.T) {
	d, s, w := onDisk(t)
	s.opts.block, s.opts.MinFreeBytes = -1, -1
	synced, written := false, 0
	w.Arm(watch(func(op fsguard.Op, path string) {
		synced = synced || op == fsguard.OpSyncDir && path == namespaceDir
		if op == fsguard.OpWrite && isSparePath(path) {
			if written++; !synced {
				t.Errorf("%s is written into before the exchanges are durable", path)
			}
		}
	}))
	mustEnqueue(t, s, "mail", smalls(300)...)
	if written < spares {
		t.Errorf("%d writes", written)
	}
	for n := range uint64(spares) {
		if _, spare := spareStands(t, d, n); spare.Size < s.cached.size*3/2 {
			if n != (s.seen.revision)%spares { // that was state.json until now
				t.Errorf("spare %d has %d bytes for a text of %d", n, spare.Size, s.cached.size)
			}
		}
	}
	mustEnqueue(t, s, "mail", small("more")) // and so is that
	w.Arm(crashtest.Plan{})
	mustEnqueue(t, s, "mail", small("once-more"))
	if n := w.Count(fsguard.OpSyncDir); n > 4 { // object, objects/, and perhaps the namespace
		t.Errorf("it grows again:\n%s", w.Trace())
	}
	d.SetFree(0)
	for range 2 * spares {
		held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 10, WithoutHolder: true})
		mustDo(t, s.Ack(t.Context(), held[0].Receipt))
	}
	if d.Exists(inCrash(reserveFile)) != true {
		t.Error("the reserve was given up")
	}
	d.SetFree(1 << 30)
	mustStand(t, d, 302-2*spares*10)
}

// A text that grows takes the files with it, by half; one that has become much smaller
// gives their room back.
func TestSpareGrowsAndShrinks(t *testing.T) {
	d, s, _ := onDisk(t)
	s.opts.block = -1 // no runs
	if _, err := s.EnqueueBatch(t.Context(), "mail", smalls(2000)); err != nil {
		t.Fatal(err)
	}
	turns := func(id string) (files []fsguard.Info) {
		for n := range uint64(spares) {
			mustEnqueue(t, s, "other", small(fmt.Sprint(id, n)))
		}
		for n := range uint64(spares) {
			state, spare := spareStands(t, d, n)
			files = append(files, state, spare)
		}
		return files
	}
	for _, file := range turns("a") {
		if text := s.cached.size; file.Size%spareBlock != 0 || file.Size < text*3/2-spareBlock || file.Size > text*3/2+spareBlock {
			t.Errorf("%d bytes for a text of %d", file.Size, text)
		}
	}
	if _, err := s.Clear(t.Context(), "mail", queue.ClearOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, file := range turns("b") {
		if file.Size != spareBlock {
			t.Errorf("cleared: %d bytes, want %d", file.Size, spareBlock)
		}
	}
	mustStand(t, d, 0)
}

// Where the filesystem cannot exchange names, or says that it did and did something else,
// creation makes a plain store: no feature, no spare, no padding, nothing left over.
func TestCreateProvesTheExchange(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(d *crashtest.Disk, p fsguard.FS) fsguard.FS
	}{
		{"ENOSYS", func(d *crashtest.Disk, p fsguard.FS) fsguard.FS { d.SetExchangeError(syscall.ENOSYS); return p }},
		{"EINVAL", func(d *crashtest.Disk, p fsguard.FS) fsguard.FS { d.SetExchangeError(syscall.EINVAL); return p }},
		{"EPERM", func(d *crashtest.Disk, p fsguard.FS) fsguard.FS { d.SetExchangeError(syscall.EPERM); return p }},
		{"a rename instead", func(_ *crashtest.Disk, p fsguard.FS) fsguard.FS { return liar{p, true} }},
		{"nothing instead", func(_ *crashtest.Disk, p fsguard.FS) fsguard.FS { return liar{p, false} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := crashtest.NewDisk()
			d.MkdirAll("/data")
			s, err := Create(t.Context(), crashDir, crashOptions(tt.set(d, d.Process())))
			mustDo(t, err)
			defer s.Close()
			mustEnqueue(t, s, "mail", small("a"))
			text := string(d.ReadRaw(inCrash(stateFile)))
			if !strings.Contains(text, `"features":[]`) || !strings.HasSuffix(text, "}\n") || d.Exists(inCrash(spareName(1))) {
				t.Errorf("a spare: %v; the state: %s", d.Exists(inCrash(spareName(1))), text)
			}
			mustStand(t, d, 1)
		})
	}
	t.Run("EIO", func(t *testing.T) {
		d := crashtest.NewDisk()
		d.MkdirAll("/data")
		d.SetExchangeError(syscall.EIO)
		_, err := Create(t.Context(), crashDir, crashOptions(d.Process()))
		refusal(t, "create", err, syscall.EIO, "")
	})
}

// On a filesystem of a kind that nobody has cut the power of, a store is made without spares;
// one that comes there with them goes on without.
func TestExchangeOnKnownFilesystems(t *testing.T) {
	for kind, want := range map[string]bool{"ext4": true, "xfs": true, "btrfs": true, "tmpfs": true, "f2fs": false, "overlay": false, "fuse": false, "0x1234": false} {
		d := crashtest.NewDisk()
		d.MkdirAll("/data")
		d.SetSpace(fsguard.Space{Type: kind, Free: 1 << 30})
		s, err := Create(t.Context(), crashDir, crashOptions(d.Process()))
		mustDo(t, err)
		if got := s.cached.st.exchange; got != want || d.Exists(inCrash(spareName(0))) != want {
			t.Errorf("%s: spares: %v, want %v", kind, got, want)
		}
		mustEnqueue(t, s, "mail", small("a"))
		mustDo(t, s.Close())
		d.SetSpace(fsguard.Space{Type: "f2fs", Free: 1 << 30})
		w := crashtest.Wrap(d.Process(), crashtest.Plan{})
		moved, err := Open(t.Context(), crashDir, crashOptions(w))
		mustDo(t, err)
		mustEnqueue(t, moved, "mail", small("b"))
		mustDo(t, moved.Close())
		if n := w.Count(fsguard.OpExchange); n != 0 {
			t.Errorf("from %s to f2fs: %d exchanges", kind, n)
		}
		mustStand(t, d, 2)
	}
}

func inCrash(name string) string { return filepath.Join(crashDir, namespaceDir, name) }

// A liar answers nil to an exchange and renames, or does nothing.
type liar struct {
	fsguard.FS
	renames bool
}

type liarDir struct {
	fsguard.Dir
	l liar
}

func (l liar) OpenRoot(path string) (fsguard.Dir, error) {
	d, err := l.FS.OpenRoot(path)
	return liarDir{d, l}, err
}

func (d liarDir) OpenDir(name string) (fsguard.Dir, error) {
	sub, err := d.Dir.OpenDir(name)
	return liarDir{sub, d.l}, err
}

func (d liarDir) Exchange(a, b string) error {
	if d.l.renames {
		return d.Dir.Rename(a, b)
	}
	return nil
}

// A refused exchange is made up for by a plain replacement in the same commit, which no
// longer costs more from then on.
func TestExchangeRefused(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSYS, syscall.EINVAL, syscall.EOPNOTSUPP, syscall.EPERM, syscall.EACCES} {
		t.Run(errno.Error(), func(t *testing.T) {
			d, s, w := onDisk(t)
			state, spare := spareStands(t, d, 2)
			d.SetExchangeError(errno)
			for n, groups := range []int{4, 2} { // syncs one after another
				w.Arm(crashtest.Plan{})
				mustEnqueue(t, s, "mail", small(fmt.Sprint(n)))
				if got := len(w.SyncGroups()); got != groups {
					t.Errorf("commit %d: %d groups of syncs, want %d", n, got, groups)
				}
			}
			if n := w.Count(fsguard.OpExchange); n != 0 {
				t.Errorf("tried again: %d times", n)
			}
			if nowState, now := spareStands(t, d, 2); now.Identity != spare.Identity || nowState.Identity == state.Identity {
				t.Error("the spare has become the state, or state.json is what it was")
			}
			mustStand(t, d, 2)
			d.SetExchangeError(nil)
			mustStand(t, d, 2) // and whoever may exchange goes on
		})
	}
}

// What stands where the spare should: a commit needs none of it, and makes a spare where
// there is none or a useless one. What is not the store's is left as it is.
func TestOddSpare(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(d *crashtest.Disk, at string)
		used  bool // it is, or a new one, from the next commit on
		fault bool
	}{
		{"as it was", func(*crashtest.Disk, string) {}, true, false},
		{"missing", func(d *crashtest.Disk, at string) { d.Remove(at) }, true, false},
		{"empty", func(d *crashtest.Disk, at string) { d.Replace(at, nil); d.Chmod(at, 0o600) }, true, false},
		{"of any length", func(d *crashtest.Disk, at string) { d.Replace(at, bytes.Repeat([]byte("}"), 9999)); d.Chmod(at, 0o600) }, true, false},
		{"far too long", func(d *crashtest.Disk, at string) {
			d.Replace(at, bytes.Repeat([]byte("}"), 1<<20))
			d.Chmod(at, 0o600)
		}, true, false},
		{"a directory", func(d *crashtest.Disk, at string) { d.Remove(at); d.MkdirAll(at) }, false, true},
		{"a symlink", func(d *crashtest.Disk, at string) { d.Remove(at); d.Symlink(stateFile, at) }, false, true},
		{"one with a second name", func(d *crashtest.Disk, _ string) {
			space, err := d.Process().OpenRoot(filepath.Join(crashDir, namespaceDir))
			mustDo(t, err, space.Link(spareName(3), space, "kept"))
		}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, s, w := onDisk(t)
			mustEnqueue(t, s, "mail", small("a"))
			if s.seen.revision != 2 {
				t.Fatalf("revision %d", s.seen.revision)
			}
			tt.spoil(d, inCrash(spareName(3)))
			for i, id := range []string{"b", "c", "d", "e", "f"} { // with the first and the last it has its turn
				w.Arm(crashtest.Plan{})
				mustEnqueue(t, s, "mail", small(id))
				if got, want := w.Count(fsguard.OpExchange) == 1, tt.used || i%spares != 0; got != want {
					t.Errorf("%s: exchanged %v, want %v", id, got, want)
				}
			}
			report, err := s.Verify(t.Context(), VerifyOptions{})
			if err != nil || report.OK == tt.fault {
				t.Errorf("verify %+v, %v", report, err)
			}
			if !tt.fault {
				mustStand(t, d, 6)
			}
		})
	}
}

// A short text leaves nothing of a longer one behind it: of one's own from some commits ago,
// which one knows; and of another process's, whose commit came to nothing after it had
// written all of it into a file that one has known.
func TestNothingIsLeftOfALongerText(t *testing.T) {
	cursor := func(s *Store, n int) error {
		_, err := s.Update(t.Context(), queue.CursorChange{Queue: "mail", Cursor: strings.Repeat("x", n)})
		return err
	}
	t.Run("own", func(t *testing.T) {
		d, s, _ := onDisk(t)
		for _, n := range []int{1000, 900, 800, 700, 4, 3, 2, 1, 0} {
			mustDo(t, cursor(s, n))
			mustStand(t, d, 0)
		}
	})
	t.Run("another's, whose turn came between", func(t *testing.T) {
		d, s, _ := onDisk(t)
		other := beside(t, d)
		for n := range 2 * spares {
			mustDo(t, cursor(s, 2+n%2))
			for n := range 2*spares + 1 { // then the file that s wrote has its turn again
				mustDo(t, cursor(other, 1000+n%2))
			}
			mustStand(t, d, 0)
		}
	})
	t.Run("another's", func(t *testing.T) {
		d, s, _ := onDisk(t)
		mustDo(t, cursor(s, 1), cursor(s, 2))
		w := crashtest.Wrap(d.Process(), crashtest.FailMatching(isCommitPoint, syscall.EIO, 1))
		other, err := Open(t.Context(), crashDir, crashOptions(w))
		mustDo(t, err)
		defer other.Close()
		refusal(t, "a commit that comes to nothing", cursor(other, 1000), syscall.EIO, "")
		mustDo(t, cursor(s, 3))
		mustStand(t, d, 0)
	})
}

// Whatever wrote into the spare before, and however it ended, no byte of it is left behind
// the next text: texts of all lengths, by two handles of two processes, some of which fail.
func TestNothingIsLeftBehindTheText(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 1))
	d, s, w := onDisk(t)
	two := crashtest.Wrap(d.Process(), crashtest.Plan{})
	other, err := Open(t.Context(), crashDir, crashOptions(two))
	mustDo(t, err)
	defer other.Close()
	handles := []struct {
		*Store
		w *crashtest.Wrapper
	}{{s, w}, {other, two}}
	mustEnqueue(t, s, "mail", small("m"))
	mustDo(t, s.SetFailedNamespace(t.Context(), "mail", "x"))
	for n := range 200 {
		h := handles[rnd.IntN(2)]
		var plan crashtest.Plan
		switch rnd.IntN(6) {
		case 0:
			plan = crashtest.FailMatching(isCommitPoint, syscall.EIO, 1)
		case 1:
			plan = crashtest.FailMatching(isStateSync, syscall.EIO, 1)
		case 2:
			plan = crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpWrite && isSparePath(path) }, syscall.ENOSPC, 1+rnd.IntN(2))
		}
		h.w.Arm(plan)
		// The cursor makes the text longer and shorter.
		_, err := h.Update(t.Context(), queue.CursorChange{Queue: fmt.Sprint("q", rnd.IntN(30)), Cursor: strings.Repeat("x", rnd.IntN(1000))})
		if err != nil && plan.Match == nil {
			t.Fatalf("%d: %v", n, err)
		}
		h.w.Arm(crashtest.Plan{})
		mustStand(t, d, 1)
		if t.Failed() {
			t.Fatalf("after change %d", n)
		}
	}
}

// A spare whose sync failed is not used again: what its pages hold may never come to the
// disk, and nobody is told a second time.
func TestSpareWhoseSyncFailed(t *testing.T) {
	d, s, w := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	revision := s.seen.revision + 1
	_, spoilt := spareStands(t, d, revision)
	w.Arm(crashtest.FailMatching(isStateSync, syscall.EIO, 1))
	refusal(t, "enqueue", second(s.Enqueue(t.Context(), "mail", small("b"))), syscall.EIO, "")
	mustEnqueue(t, s, "mail", small("b"))
	state, spare := spareStands(t, d, revision)
	if state.Identity == spoilt.Identity || spare.Identity == spoilt.Identity {
		t.Error("it is used again")
	}
	mustStand(t, d, 2)
}

// reserveSoon makes the next enqueue make a new reserve, and so sync the namespace last.
func reserveSoon(t *testing.T, s *Store) {
	t.Helper()
	mustDo(t, s.pins.space.Remove(reserveFile))
}

// After an uncertain exchange the retired file may still be what the disk has as
// state.json: it stays as it is until a fresh revision is durable.
func TestUncertainExchangeKeepsTheRetired(t *testing.T) {
	d, s, w := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	revision := s.seen.revision + 1
	retired, _ := spareStands(t, d, revision)
	want := d.ReadRaw(inCrash(stateFile))
	reserveSoon(t, s)
	w.Arm(crashtest.FailMatching(lastSync(), syscall.EIO, 1))
	refusal(t, "enqueue", second(s.Enqueue(t.Context(), "mail", small("b"))), queue.ErrUncertain, "")
	_, spare := spareStands(t, d, revision)
	if spare.Identity != retired.Identity {
		t.Fatal("it is not the spare")
	}
	settled, last := false, lastSync()
	w.Arm(watch(func(op fsguard.Op, path string) {
		if got := d.ReadRaw(inCrash(spareName(revision))); !settled && !bytes.Equal(got, want) {
			t.Errorf("written into before %s of %s", op, path)
			settled = true
		}
		settled = settled || last(op, path)
	}))
	mustEnqueue(t, s, "mail", small("c"))
	if !settled {
		t.Error("there was no recovery")
	}
	if w.Count(fsguard.OpRename) != 1 || w.Count(fsguard.OpExchange) != 1 {
		t.Errorf("want a rename and then an exchange:\n%s", w.Trace())
	}
	mustStand(t, d, 3)
}

// hookedReads gives a filesystem that lets two commits of another process come, and all of
// them be written, between two reads of state.json.
func hookedReads(fsys fsguard.FS, at int, do func()) *crashtest.Wrapper {
	n := 0
	plan := watch(func(op fsguard.Op, path string) {
		if op == fsguard.OpRead && path == statePath {
			if n++; n == at {
				do()
			}
		}
	})
	plan.Reads = true
	return crashtest.Wrap(fsys, plan)
}

// A reader without the lock takes no mixture of two states, wherever the file that it
// reads is retired and overwritten: with a text of the same length, so that every byte has
// its place.
func TestReaderWithoutTheLock(t *testing.T) {
	for at := 1; at <= 6; at++ {
		t.Run(fmt.Sprint("read ", at), func(t *testing.T) {
			d, s, _ := onDisk(t)
			mustEnqueue(t, s, "mail", small("a"))
			mustEnqueue(t, s, "mail", small("b"))
			called := 0
			w := hookedReads(d.Process(), at, func() {
				called++
				for _, id := range []string{"c", "d", "e"} {
					mustEnqueue(t, s, "mail", small(id))
				}
			})
			reader, err := Open(t.Context(), crashDir, crashOptions(w))
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			defer reader.Close()
			var st queue.Status
			w.Arm(crashtest.Plan{})
			mustDo(t, reader.glance(func(v *view) (err error) {
				st, err = v.draft.st.status(nil, v.draft.now)
				return err
			}))
			if got := st.Queues["mail"].Pending; got != 2+3*uint64(called) {
				t.Errorf("a glance saw %d pending after %d calls", got, called)
			}
			if at <= 3 && called != 1 {
				t.Errorf("called %d times: the test shows nothing", called)
			}
		})
	}
}

// It takes none either where the writer has only begun to overwrite the file that it
// reads: it has written the first bytes, and the rest is of the old text.
func TestReaderBesideAHalfWrittenSpare(t *testing.T) {
	for at := 1; at <= 3; at++ {
		t.Run(fmt.Sprint("read ", at), func(t *testing.T) {
			d, s, w := onDisk(t)
			mustEnqueue(t, s, "mail", small("a"))
			reached, goOn, opened := make(chan bool), make(chan bool), make(chan error)
			reader := hookedReads(d.Process(), at, func() {
				reached <- true
				<-goOn
			})
			go func() {
				r, err := Open(context.Background(), crashDir, crashOptions(reader))
				if err == nil {
					err = r.Close()
				}
				opened <- err
			}()
			<-reached
			for n := range spares { // the reader's file is the next spare
				mustEnqueue(t, s, "mail", small(fmt.Sprint("b", n)))
			}
			writes := 0
			w.Arm(watch(func(op fsguard.Op, path string) {
				if op == fsguard.OpWrite && isSparePath(path) {
					if writes++; writes == 2 {
						close(goOn)
						if err := <-opened; err != nil {
							t.Errorf("open: %v", err)
						}
					}
				}
			}))
			mustEnqueue(t, s, "mail", small("c"))
			if writes != 2 {
				t.Fatalf("%d writes: the test shows nothing", writes)
			}
		})
	}
}

// One that is overtaken each time gives up, and says why.
func TestReaderOvertaken(t *testing.T) {
	d, s, _ := onDisk(t)
	n := 0
	plan := watch(func(op fsguard.Op, path string) {
		if op == fsguard.OpLstat && path == statePath {
			for range 2 {
				n++
				mustEnqueue(t, s, "mail", small(fmt.Sprint(n)))
			}
		}
	})
	plan.Reads = true
	_, err := Open(t.Context(), crashDir, crashOptions(crashtest.Wrap(d.Process(), plan)))
	refusal(t, "open", err, ErrBusy, stateFile)
	if n != 2*maxReadings {
		t.Errorf("%d commits overtook it", n)
	}
	if NeedsOperator(err) {
		t.Error("it needs no operator")
	}
}

// Five commits bring the old file back to its name. Who compares files sees a change all
// the same, for each commit writes into the file that it is about to put there; and who has
// the state in memory knows it by its first bytes.
func TestCommitsBringTheFileBack(t *testing.T) {
	d, s, _ := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	waitIdle(s)
	p := d.Process()
	path := inCrash(stateFile)
	before, err := p.Stat(path)
	mustDo(t, err)
	waits := &parked{told: make(chan struct{}, 1), last: sight{file: before}}
	s.wake.mu.Lock()
	s.wake.waiters[waits] = true
	s.wake.mu.Unlock()
	defer s.wake.leave(waits)
	other, err := Open(t.Context(), crashDir, crashOptions(p))
	mustDo(t, err)
	defer other.Close()
	for n := range spares + 1 {
		mustEnqueue(t, other, "mail", small(fmt.Sprint(n)))
	}
	after, err := p.Stat(path)
	mustDo(t, err)
	if after.Identity != before.Identity || after.Size != before.Size {
		t.Fatalf("%+v is another file than %+v: the test shows nothing", after, before)
	}
	(&sentry{w: s.wake, never: true}).poll()
	select {
	case <-waits.told:
	default:
		t.Errorf("a poll does not tell %+v from %+v", after, before)
	}
	s.cached.info = after // as where the clock has not ticked since
	mustStand(t, d, spares+2)
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil || st.Queues["mail"].Pending != spares+2 {
		t.Errorf("status %+v, %v; want %d pending", st, err, spares+2)
	}
}

// A handle that may not exchange shares a store with one that may.
func TestExchangeBesideReplacement(t *testing.T) {
	d, s, _ := onDisk(t)
	o := crashOptions(d.Process())
	o.plain = true
	plain, err := Open(context.Background(), crashDir, o)
	mustDo(t, err)
	defer plain.Close()
	for n := range uint64(12) {
		h := s
		if n%3 == 1 {
			h = plain
		}
		mustEnqueue(t, h, "mail", small(fmt.Sprint(n)))
		mustStand(t, d, n+1)
	}
}

// Spaces behind the text are taken where the feature says so, and nothing else is.
func TestPadding(t *testing.T) {
	st := sampleState()
	st.exchange = true
	whole := encodeState(nil, st)
	for n := range len(whole) {
		_, err := decodeState(padded(whole[:n:n], 9000)[:9000], stateFile, st.store)
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d bytes of %d and spaces: %v", n, len(whole), err)
		}
	}
	for _, tt := range []struct {
		exchange bool
		behind   string
		ok       bool
	}{
		{true, "", true}, {true, " ", true}, {true, strings.Repeat(" ", 9000), true},
		{true, "\n", false}, {true, " \n", false}, {true, " {", false}, {true, "\x00", false}, {true, "  \x00 ", false}, {true, "\t", false},
		{false, "", true}, {false, " ", false},
	} {
		st.exchange = tt.exchange
		_, err := decodeState(append(encodeState(nil, st), tt.behind...), stateFile, st.store)
		if (err == nil) != tt.ok {
			t.Errorf("exchange %v, %q behind the text: %v", tt.exchange, tt.behind, err)
		}
		if err != nil && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "trailing bytes")) {
			t.Errorf("%q: %v", tt.behind, err)
		}
	}
}
