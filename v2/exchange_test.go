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

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// spareStands tells what stands at the two names that are exchanged.
func spareStands(t *testing.T, d *crashtest.Disk) (state, spare fsguard.Info) {
	t.Helper()
	space := simSpace(t, d)
	defer space.Close()
	state, err := space.Lstat(stateFile)
	mustDo(t, err)
	spare, err = space.Lstat(spareFile)
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

// Two files take turns, and a commit makes none, frees none and changes no length.
func TestExchangeTakesTurns(t *testing.T) {
	d, s, w := onDisk(t)
	state, spare := spareStands(t, d)
	if state.Size != spareBlock || spare.Size != spareBlock || state.Identity == spare.Identity {
		t.Fatalf("created: state %+v, spare %+v", state, spare)
	}
	for n := range uint64(6) {
		w.Arm(crashtest.Plan{})
		mustEnqueue(t, s, "mail", small(fmt.Sprint(n)))
		if n := w.Count(fsguard.OpExchange); n != 1 {
			t.Errorf("%d exchanges", n)
		}
		if n := w.Count(fsguard.OpRename) + w.Count(fsguard.OpRemove); n != 0 {
			t.Errorf("%d files were replaced or removed", n)
		}
		nowState, nowSpare := spareStands(t, d)
		if nowState.Identity != spare.Identity || nowSpare.Identity != state.Identity || nowState.Size != spareBlock {
			t.Fatalf("commit %d: state %+v, spare %+v", n, nowState, nowSpare)
		}
		state, spare = nowState, nowSpare
		mustStand(t, d, n+1)
	}
}

// A text that grows takes both files with it, by half; one that has become much smaller
// gives their room back.
func TestSpareGrowsAndShrinks(t *testing.T) {
	d, s, _ := onDisk(t)
	s.opts.block = -1 // no runs
	if _, err := s.EnqueueBatch(t.Context(), "mail", smalls(2000)); err != nil {
		t.Fatal(err)
	}
	mustEnqueue(t, s, "other", small("a"))
	state, spare := spareStands(t, d)
	for _, file := range []fsguard.Info{state, spare} {
		if text := s.cached.size; file.Size%spareBlock != 0 || file.Size < text*3/2-spareBlock || file.Size > text*3/2+spareBlock {
			t.Errorf("%d bytes for a text of %d", file.Size, text)
		}
	}
	if _, err := s.Clear(t.Context(), "mail", queue.ClearOptions{}); err != nil {
		t.Fatal(err)
	}
	mustEnqueue(t, s, "other", small("b"))
	state, spare = spareStands(t, d)
	if state.Size != spareBlock || spare.Size != spareBlock {
		t.Errorf("cleared: %d and %d bytes, want %d each", state.Size, spare.Size, spareBlock)
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
			if !strings.Contains(text, `"features":[]`) || !strings.HasSuffix(text, "}\n") || d.Exists(inCrash(spareFile)) {
				t.Errorf("a spare: %v; the state: %s", d.Exists(inCrash(spareFile)), text)
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
			_, spare := spareStands(t, d)
			d.SetExchangeError(errno)
			for n, groups := range []int{3, 2} { // syncs one after another
				w.Arm(crashtest.Plan{})
				mustEnqueue(t, s, "mail", small(fmt.Sprint(n)))
				if got := len(w.SyncGroups()); got != groups {
					t.Errorf("commit %d: %d groups of syncs, want %d", n, got, groups)
				}
			}
			if n := w.Count(fsguard.OpExchange); n != 0 {
				t.Errorf("tried again: %d times", n)
			}
			if _, now := spareStands(t, d); now.Identity != spare.Identity {
				t.Error("the spare has become the state")
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
			mustDo(t, err, space.Link(spareFile, space, "kept"))
		}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, s, w := onDisk(t)
			mustEnqueue(t, s, "mail", small("a"))
			tt.spoil(d, inCrash(spareFile))
			for _, id := range []string{"b", "c"} {
				w.Arm(crashtest.Plan{})
				mustEnqueue(t, s, "mail", small(id))
				if got := w.Count(fsguard.OpExchange) == 1; got != tt.used {
					t.Errorf("%s: exchanged %v, want %v", id, got, tt.used)
				}
				if n := w.Syncs(); n != 5 {
					t.Errorf("%s: %d syncs", id, n)
				}
			}
			report, err := s.Verify(t.Context(), VerifyOptions{})
			if err != nil || report.OK == tt.fault {
				t.Errorf("verify %+v, %v", report, err)
			}
			if !tt.fault {
				mustStand(t, d, 3)
			}
		})
	}
}

// A short text leaves nothing of a longer one behind it: of one's own from two commits ago,
// which one knows; and of another process's, whose commit came to nothing after it had
// written all of it into a file that one has known.
func TestNothingIsLeftOfALongerText(t *testing.T) {
	cursor := func(s *Store, n int) error {
		_, err := s.Update(t.Context(), queue.CursorChange{Queue: "mail", Cursor: strings.Repeat("x", n)})
		return err
	}
	t.Run("own", func(t *testing.T) {
		d, s, _ := onDisk(t)
		for _, n := range []int{1000, 2, 1, 0} {
			mustDo(t, cursor(s, n))
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
			plan = crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpWrite && path == sparePath }, syscall.ENOSPC, 1+rnd.IntN(2))
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
	_, spoilt := spareStands(t, d)
	w.Arm(crashtest.FailMatching(isStateSync, syscall.EIO, 1))
	refusal(t, "enqueue", second(s.Enqueue(t.Context(), "mail", small("b"))), syscall.EIO, "")
	mustEnqueue(t, s, "mail", small("b"))
	state, spare := spareStands(t, d)
	if state.Identity == spoilt.Identity || spare.Identity == spoilt.Identity {
		t.Error("it is used again")
	}
	mustStand(t, d, 2)
}

// After an uncertain exchange the retired file may still be what the disk has as
// state.json: it stays as it is until a fresh revision is durable.
func TestUncertainExchangeKeepsTheRetired(t *testing.T) {
	d, s, w := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	retired, _ := spareStands(t, d)
	want := d.ReadRaw(inCrash(stateFile))
	w.Arm(crashtest.FailMatching(lastSync, syscall.EIO, 1))
	refusal(t, "enqueue", second(s.Enqueue(t.Context(), "mail", small("b"))), queue.ErrUncertain, "")
	_, spare := spareStands(t, d)
	if spare.Identity != retired.Identity {
		t.Fatal("it is not the spare")
	}
	settled := false
	w.Arm(watch(func(op fsguard.Op, path string) {
		if got := d.ReadRaw(inCrash(spareFile)); !settled && !bytes.Equal(got, want) {
			t.Errorf("written into before %s of %s", op, path)
			settled = true
		}
		settled = settled || lastSync(op, path)
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
			mustEnqueue(t, s, "mail", small("b")) // the reader's file is the spare
			writes := 0
			w.Arm(watch(func(op fsguard.Op, path string) {
				if op == fsguard.OpWrite && path == sparePath {
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

// Two commits bring the old file back to its name. Who compares files sees a change all
// the same, for each commit writes into the file that it is about to put there; and who has
// the state in memory knows it by its first bytes.
func TestTwoCommitsBringTheFileBack(t *testing.T) {
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
	mustEnqueue(t, other, "mail", small("b"))
	mustEnqueue(t, other, "mail", small("c"))
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
	mustStand(t, d, 3)
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil || st.Queues["mail"].Pending != 3 {
		t.Errorf("status %+v, %v; want 3 pending", st, err)
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
