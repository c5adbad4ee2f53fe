//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A fullStore is a store on a simulated disk that is about to run full: six messages
// are claimed, four wait, one has failed.
type fullStore struct {
	*Store
	disk *crashtest.Disk
	w    *crashtest.Wrapper
	held []queue.Receipt
}

func newFullStore(t *testing.T, o Options) *fullStore {
	t.Helper()
	f := &fullStore{disk: crashtest.NewDisk()}
	f.disk.MkdirAll("/data")
	p := f.disk.Process()
	f.w = crashtest.Wrap(p, crashtest.Plan{})
	o.fs, o.holders = f.w, &holderSet{}
	s, err := Create(t.Context(), simDir, &o)
	mustDo(t, err)
	f.Store = s
	t.Cleanup(func() {
		mustDo(t, s.Close())
		o.holders.die()
		for _, v := range f.w.Violations() {
			t.Error(v)
		}
		if n := p.Open(); n != 0 {
			t.Errorf("%d descriptors are left open", n)
		}
		f.check(t)
	})
	mustEnqueue(t, s, "mail", smalls(10)...)
	mustEnqueue(t, s, "mail", small("bad"))
	bad, err := s.Load(t.Context(), "mail", "bad", queue.LoadOptions{})
	mustDo(t, err)
	_, err = s.Fail(t.Context(), bad.Receipt, queue.FailOptions{Cause: "no"})
	mustDo(t, err)
	for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 6, Lease: queue.NoDeadline}) {
		f.held = append(f.held, d.Receipt)
	}
	return f
}

// check is what another process finds, on the disk as it is and after a power loss.
// (After that the lock's record, which nobody syncs, may be any of those written.)
func (f *fullStore) check(t *testing.T) {
	t.Helper()
	verify := func(d *crashtest.Disk) Report {
		r, err := VerifyDir(context.Background(), simDir, &Options{fs: d.Process()}, VerifyOptions{})
		if err != nil || !r.OK {
			t.Errorf("verify: %+v, %v\n%s", r, err, d.Story())
		}
		return r
	}
	now := verify(f.disk)
	if !now.Settled || now.Temps > 0 {
		t.Errorf("verify: %+v", now)
	}
	for img := range f.disk.Images(20, 1) {
		if r := verify(img); r.Revision != now.Revision {
			t.Errorf("revision %d, after a power loss %d\n%s", now.Revision, r.Revision, img.Story())
		}
	}
}

func (f *fullStore) hasReserve() bool { return f.disk.Exists(inSim(reserveFile)) }

// mustBeFull checks that an enqueue is refused and nothing is enqueued by it.
func (f *fullStore) mustBeFull(t *testing.T, because ...error) {
	t.Helper()
	before := f.disk.ReadRaw(inSim(stateFile))
	_, err := f.Enqueue(t.Context(), "mail", small("more"))
	for _, want := range append(because, queue.ErrFull) {
		if !errors.Is(err, want) {
			t.Errorf("enqueue: %v, want %v", err, want)
		}
	}
	_, err = f.EnqueueBatch(t.Context(), "mail", smalls(200))
	if !errors.Is(err, queue.ErrFull) && !errors.Is(err, queue.ErrDuplicate) {
		t.Errorf("enqueue of a batch: %v", err)
	}
	if after := f.disk.ReadRaw(inSim(stateFile)); string(after) != string(before) {
		t.Errorf("a refused enqueue changed the state:\n%s\n%s", before, after)
	}
}

// fullActs are what must work on a full disk.
var fullActs = map[string]func(t *testing.T, f *fullStore) error{
	"ack": func(t *testing.T, f *fullStore) error { return f.Ack(t.Context(), f.held[0]) },
	"fail": func(t *testing.T, f *fullStore) error {
		_, err := f.Fail(t.Context(), f.held[0], queue.FailOptions{Cause: strings.Repeat("x", 2000)})
		return err
	},
	"release": func(t *testing.T, f *fullStore) error {
		return f.Release(t.Context(), f.held[0], queue.ReleaseOptions{})
	},
	"clear": func(t *testing.T, f *fullStore) error {
		n, err := f.Clear(t.Context(), "mail", queue.ClearOptions{Leased: true})
		if n < 9 {
			t.Errorf("%d cleared", n)
		}
		mustEmpty(t, f)
		return err
	},
	"purge": func(t *testing.T, f *fullStore) error { return f.Purge(t.Context(), "bad", queue.PurgeOptions{}) },
}

func mustEmpty(t *testing.T, f *fullStore) {
	t.Helper()
	st, err := f.Status(t.Context(), queue.StatusOptions{Queues: []string{"mail"}})
	if err != nil || !st.Complete() {
		t.Errorf("status: %+v, %v; want complete", st, err)
	}
}

// When the disk has not one byte left, an enqueue is refused and whatever settles goes
// on, each by giving up the reserve, or in the room that the spare has. When there is room
// again, the next enqueue brings the reserve back.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(fullActs)) {
		for _, plain := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, plain %v", name, plain), func(t *testing.T) { testFullDisk(t, name, plain) })
		}
	}
}

func testFullDisk(t *testing.T, name string, plain bool) {
	f := newFullStore(t, Options{MinFreeBytes: -1, plain: plain})
	f.disk.SetFree(0)
	f.mustBeFull(t, syscall.ENOSPC)
	if !f.hasReserve() {
		t.Error("an enqueue took the reserve")
	}
	mustDo(t, fullActs[name](t, f))
	if stands := f.hasReserve(); stands == plain {
		t.Errorf("the reserve stands: %v", stands)
	}
	if name != "clear" { // which makes room enough
		f.mustBeFull(t, syscall.ENOSPC) // what the reserve left is not for enqueues
		for range 20 {
			d := mustClaim(t, f.Store, "mail", queue.ClaimOptions{})
			if len(d) != 1 {
				t.Fatalf("claimed %d", len(d))
			}
			mustDo(t, f.Release(t.Context(), d[0].Receipt, queue.ReleaseOptions{}))
		}
		mustDo(t, f.Ack(t.Context(), f.held[1]))
		f.mustBeFull(t, syscall.ENOSPC)
	}
	f.disk.SetFree(1 << 20)
	mustEnqueue(t, f.Store, "mail", small("more"))
	if got := len(f.disk.ReadRaw(inSim(reserveFile))); got < minReserve {
		t.Errorf("the reserve has %d bytes again", got)
	}
}

// Below the floor an enqueue is refused before anything is written; all else goes on
// without the reserve.
func TestFreeSpaceFloor(t *testing.T) {
	f := newFullStore(t, Options{MinFreeBytes: 1 << 20})
	f.disk.SetFree(1<<20 - 1)
	f.w.Arm(crashtest.Plan{})
	f.mustBeFull(t)
	if n := f.w.Count(changing...); n != 0 {
		t.Errorf("a refused enqueue did %d operations that change something:\n%s", n, f.w.Trace())
	}
	for _, name := range []string{"ack", "purge"} {
		mustDo(t, fullActs[name](t, f))
	}
	mustClaim(t, f.Store, "mail", queue.ClaimOptions{})
	mustDo(t, fullActs["clear"](t, f))
	if !f.hasReserve() {
		t.Error("the reserve was given up where there was room")
	}
	f.disk.SetFree(1 << 20)
	mustEnqueue(t, f.Store, "mail", small("more"))

	// The default floor is 8 MiB.
	f = newFullStore(t, Options{})
	f.disk.SetFree(DefaultMinFreeBytes - 1)
	f.mustBeFull(t)
}

// In one and the same commit an enqueue is refused and an acknowledgement made.
func TestFullDiskInOneCommit(t *testing.T) {
	for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		for _, where := range []struct {
			name  string
			match func(op fsguard.Op, path string) bool
			times int  // how often it fails: once for the enqueue, once for the rest
			plain bool // commits replace
		}{
			{"the payload's file", func(op fsguard.Op, path string) bool {
				return op == fsguard.OpCreate && strings.HasSuffix(path, payloadFile)
			}, 1, false},
			{"the payload's sync", func(op fsguard.Op, path string) bool {
				return op == fsguard.OpSync && strings.HasSuffix(path, payloadFile)
			}, 1, false},
			{"the sync of objects/", func(op fsguard.Op, path string) bool {
				return op == fsguard.OpSyncDir && strings.HasSuffix(path, objectsDir)
			}, 1, false},
			{"the spare's bytes", func(op fsguard.Op, path string) bool { return op == fsguard.OpWrite && isSparePath(path) }, 2, false},
			{"the spare's sync", isStateSync, 2, false},
			{"the state's temp", func(op fsguard.Op, path string) bool {
				return op == fsguard.OpCreate && strings.Contains(path, stateTempPrefix)
			}, 2, true},
			{"the state's bytes", func(op fsguard.Op, path string) bool {
				return op == fsguard.OpWrite && strings.Contains(path, stateTempPrefix)
			}, 2, true},
			{"the state's sync", isStateSync, 2, true},
		} {
			t.Run(fmt.Sprintf("%v at %s", errno, where.name), func(t *testing.T) {
				f := newFullStore(t, Options{plain: where.plain})
				full, acked := make(chan error, 1), make(chan error, 1)
				inOneCommit(t, f.Store, func() { full <- second(f.Enqueue(t.Context(), "mail", small("more"))) },
					func() { acked <- f.Ack(t.Context(), f.held[0]) },
					func() { f.w.Arm(crashtest.FailMatching(where.match, errno, where.times)) })
				if err := <-full; !errors.Is(err, queue.ErrFull) || !errors.Is(err, errno) {
					t.Errorf("enqueue: %v", err)
				}
				if err := <-acked; err != nil {
					t.Errorf("ack: %v", err)
				}
				if given := !f.hasReserve(); given != (where.times == 2 && where.plain) {
					t.Errorf("the reserve was given up: %v", given)
				}
				if given := !f.disk.Exists(inSim(spareName(0))); given != (where.times == 2 || where.plain) {
					t.Errorf("the spares were given up: %v", given)
				}
				st, err := f.Status(t.Context(), queue.StatusOptions{Queues: []string{"mail"}, Orphans: true})
				if q := st.Queues["mail"]; err != nil || q.Pending != 4 || q.Processing != 5 || q.Counters.Completed != 1 {
					t.Errorf("status: %+v, %v", st, err)
				}
				mustEnqueue(t, f.Store, "mail", small("more"))
			})
		}
	}
}

func second[T any](_ T, err error) error { return err }

// inOneCommit lets two calls wait for the lock, so that one commit serves both.
func inOneCommit(t *testing.T, s *Store, a, b, before func()) {
	t.Helper()
	p, err := pin(s.fs, s.dir, &s.opts, false)
	mustDo(t, err)
	defer p.close()
	held, err := acquire(p, fsguard.Exclusive)
	mustDo(t, err)
	go a()
	waitFor(s, 1)
	go b()
	waitFor(s, 2)
	before()
	held.release()
}

// waitFor returns when n calls wait in s.
func waitFor(s *Store, n int) {
	for {
		s.mu.Lock()
		waiting := len(s.waiting)
		s.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}

// A recovery works on a full disk too.
func TestRecoverOnAFullDisk(t *testing.T) {
	f := newFullStore(t, Options{MinFreeBytes: -1})
	record := encodeRecord(queue.Owner{Token: namedToken("dead").String(), Since: time.UnixMilli(0)})
	f.disk.WriteRaw(inSim(lockFile), record)
	f.disk.SetFree(0)
	if err := f.Ack(t.Context(), f.held[0]); !errors.Is(err, ErrStaleLock) {
		t.Fatalf("ack: %v", err)
	}
	r, err := f.Recover(t.Context())
	if err != nil || r.Owner == nil || r.Owner.Token != namedToken("dead").String() {
		t.Fatalf("recover: %+v, %v", r, err)
	}
	mustDo(t, f.Ack(t.Context(), f.held[0]))
	f.mustBeFull(t)
}

// The bound of the state refuses enqueues and nothing else, and lets them in again
// when there is room. Readers take twice the bound.
func TestFullState(t *testing.T) {
	const bound = leastStateBytes
	s, dir := newTestStore(t, &Options{MaxStateBytes: bound, block: -1}) // everything stands inline
	ctx := t.Context()
	n := 0
	var err error
	for ; err == nil; n++ {
		_, err = s.Enqueue(ctx, "mail", small(fmt.Sprintf("m%03d", n)))
	}
	refusal(t, "enqueue", err, queue.ErrFull, "65536")
	n--
	if n < 150 {
		t.Errorf("full after %d messages", n)
	}
	var batch *queue.BatchError
	if _, err := s.EnqueueBatch(ctx, "mail", []queue.Message{small("x"), small("y")}); !errors.As(err, &batch) || !errors.Is(err, queue.ErrFull) || len(batch.Refused) != 2 {
		t.Errorf("batch: %v", err)
	}
	kept, err := s.Enqueue(ctx, "mail", queue.Message{ID: "m000", Payload: []byte("1"), IfExists: queue.Keep})
	if err != nil || !kept.Kept {
		t.Errorf("keep: %+v, %v", kept, err)
	}
	d := mustClaim(t, s, "mail", queue.ClaimOptions{Max: n})
	if len(d) != n {
		t.Errorf("claimed %d of %d", len(d), n)
	}
	for _, x := range d[:n-20] {
		as := x.Receipt.ID + strings.Repeat("x", queue.MaxNameBytes-len(x.Receipt.ID))
		if _, err := s.Fail(ctx, x.Receipt, queue.FailOptions{Cause: strings.Repeat("c", maxLastError), As: as}); err != nil {
			t.Fatal(err)
		}
	}
	if len(mustRead(t, dir+"/"+namespaceDir+"/"+stateFile)) <= bound {
		t.Error("the failures did not pass the bound: the test shows nothing")
	}
	d = d[n-20:]
	mustDo(t, s.Release(ctx, d[1].Receipt, queue.ReleaseOptions{}))
	other, err := Open(ctx, dir, &Options{MaxStateBytes: bound})
	mustDo(t, err)
	defer other.Close()
	for i, d := range d {
		if i != 1 {
			mustDo(t, other.Ack(ctx, d.Receipt))
		}
	}
	page, err := s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{Limit: n})
	mustDo(t, err)
	for _, e := range page.Entries {
		mustDo(t, s.Purge(ctx, e.FailedName, queue.PurgeOptions{}))
	}
	mustEnqueue(t, s, "mail", small("x"), small("y"))
}

// A reserve below the minimum, as an earlier program made it, does for everything but an
// enqueue on a disk that has no room for a larger one.
func TestReserveOfAnEarlierProgram(t *testing.T) {
	f := newFullStore(t, Options{MinFreeBytes: -1})
	f.disk.Replace(inSim(reserveFile), make([]byte, minReserve/4))
	f.disk.Chmod(inSim(reserveFile), 0o600)
	f.disk.SetFree(minReserve / 2)
	f.mustBeFull(t, syscall.ENOSPC)
	if d := mustClaim(t, f.Store, "mail", queue.ClaimOptions{}); len(d) != 1 {
		t.Errorf("claimed %d, want one", len(d))
	}
	mustDo(t, f.Pause(t.Context(), "mail"))
	mustDo(t, f.Ack(t.Context(), f.held[0]))
	if got := len(f.disk.ReadRaw(inSim(reserveFile))); got != minReserve/4 {
		t.Errorf("the reserve has %d bytes, want what it had, %d", got, minReserve/4)
	}
	f.disk.SetFree(1 << 20)
	mustEnqueue(t, f.Store, "mail", small("later"))
	if got := len(f.disk.ReadRaw(inSim(reserveFile))); got != minReserve {
		t.Errorf("after an enqueue the reserve has %d bytes, want %d", got, minReserve)
	}
}

// Where sizes are told as 0, the reserve that stands is found all the same.
func TestReserveWhereSizesLie(t *testing.T) {
	f := newFullStore(t, Options{MinFreeBytes: -1})
	f.disk.SetSizeLies(true)
	before := f.disk.ReadRaw(inSim(reserveFile))
	f.disk.SetFree(minReserve / 2) // another one would not fit
	mustEnqueue(t, f.Store, "mail", small("later"))
	if got := f.disk.ReadRaw(inSim(reserveFile)); len(got) != len(before) {
		t.Errorf("the reserve has %d bytes, want %d", len(got), len(before))
	}
}
