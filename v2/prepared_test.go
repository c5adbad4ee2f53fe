//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// preparing is a crash scenario of a handle that prepares objects from its second enqueue
// on: the steps make them, and use them.
func preparing(steps ...crashStep) crashScenario {
	return crashScenario{name: "prepared", prepare: 1, steps: steps}
}

// A producer's commits, each cut off at each operation: the one that prepares objects, and
// those that use them, alone and as an array.
func TestCrashPrepared(t *testing.T) {
	c := preparing(put(small("a")), put(small("b")), put(small("c")),
		func(ctx context.Context, s *Store, r receipts) error {
			_, err := s.EnqueueBatch(ctx, "mail", []queue.Message{small("x"), small("y")})
			return err
		})
	crashtest.Explore(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 100, AfterCheck: 3}))
}

// The same with an error at each operation.
func TestFaultPrepared(t *testing.T) {
	c := preparing(put(small("a")), put(small("b")), put(small("c")), put(small("d")))
	crashtest.ExploreErrors(t, c.scenario(t), smaller(crashtest.Options{MaxImages: 2, AfterCheck: -1, Uneven: true}))
}

// producing gives a handle with wrapped operations that has prepared an object and put
// nothing into it.
func producing(t *testing.T) (*Store, *crashtest.Wrapper, *crashtest.Disk) {
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	w := crashtest.Wrap(d.Process(), crashtest.Plan{})
	o := crashOptions(w)
	o.prepare = 1
	s, err := Create(t.Context(), crashDir, o)
	mustDo(t, err)
	t.Cleanup(func() { mustDo(t, s.Close()) })
	mustEnqueue(t, s, "mail", small("a"))
	mustEnqueue(t, s, "mail", small("b"))
	if x := s.pool.ready; x == nil || x.named || x.next != 0 || x.size != 2*preparedBlock {
		t.Fatalf("prepared %+v", x)
	}
	return s, w, d
}

// The sync budget of a producer: four syncs, and two for an object that is prepared beside
// it; two while that has room, for 2 commits, then 4, 8, 16, 32 and 64.
func TestSyncBudgetOfAProducer(t *testing.T) {
	s, w := counted(t)
	grew := 0
	for i := range preparesAfter + 200 {
		w.Arm(crashtest.Plan{})
		mustEnqueue(t, s, "mail", small(fmt.Sprint(i)))
		want := []int{1, 1}
		switch i - preparesAfter {
		case 0, 1 + 2, 2 + 6, 3 + 14, 4 + 30, 5 + 62, 6 + 126, 7 + 190:
			want = []int{3 + 2, 1}
		default:
			if i < preparesAfter {
				want = []int{3, 1}
			}
		}
		want = budget(s, i == 0, want...)
		got := syncGroups(w)
		if first := w.SyncGroups()[0]; len(first) == 1 && first[0] == namespaceDir { // the spares are lengthened
			grew++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("enqueue %d: %v, want %v\n%s", i, got, want, w.Trace())
		}
	}
	if grew > 4 || grew == 0 && s.cached.st.exchange {
		t.Errorf("the spares were lengthened %d times", grew)
	}
}

// What a prepared object is not used for: payloads that it cannot hold, and runs.
func TestPreparedObjectTooSmall(t *testing.T) {
	s, w, _ := producing(t)
	w.Arm(crashtest.Plan{})
	mustEnqueue(t, s, "mail", queue.Message{ID: "wide", Payload: []byte(`"` + strings.Repeat("x", 40000) + `"`)})
	if got := fmt.Sprint(syncGroups(w)); got != "[5 1]" { // and a larger one is prepared
		t.Errorf("sync groups %s, want [5 1]\n%s", got, w.Trace())
	}
	x := s.pool.ready
	if x == nil || x.size != 4*40<<10 {
		t.Fatalf("prepared %+v, want %d bytes", x, 4*40<<10)
	}
	mustEnqueue(t, s, "mail", queue.Message{ID: "big", Payload: bigPayload})
	if s.pool.ready != x || x.next != 0 {
		t.Errorf("a payload with an object of its own used %d bytes", x.next)
	}
}

// The file of a prepared object is one JSON text at any time, its length stays, and every
// payload is where its reference says, whatever the sizes.
func TestPreparedObjectIsJSON(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := crashtest.NewDisk()
		d.MkdirAll("/data")
		o := crashOptions(d.Process())
		o.prepare = 1
		s, err := Create(t.Context(), crashDir, o)
		mustDo(t, err)
		defer s.Close()
		mustEnqueue(t, s, "mail", small("a"))
		mustEnqueue(t, s, "mail", small("b"))
		sizes := map[string]int{}
		for i := range rapid.IntRange(1, 12).Draw(rt, "commits") {
			ms := make([]queue.Message, rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(rt, "messages"))
			for j := range ms {
				size := rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(preparedBlock-12, preparedBlock+12),
					rapid.IntRange(2*preparedBlock-12, 2*preparedBlock+12), rapid.IntRange(1, 30000)).Draw(rt, "size")
				ms[j] = queue.Message{ID: fmt.Sprint(i, "-", j), Payload: []byte(strings.Repeat("7", size))}
				sizes[ms[j].ID] = size
			}
			x := s.pool.ready
			if _, err := s.EnqueueBatch(t.Context(), "mail", ms); err != nil {
				rt.Fatal(err)
			}
			if x == nil || !x.named {
				continue
			}
			file, err := openObject(s.pins.objects, x.name, payloadFile)
			if err != nil {
				rt.Fatal(err)
			}
			text, err := fsguard.ReadAll(file, 2*maxPreparedBytes)
			mustDo(t, file.Close())
			if err != nil || int64(len(text)) != x.size || !json.Valid(text) {
				rt.Fatalf("%d bytes, JSON: %v, %v, want %d", len(text), json.Valid(text), err, x.size)
			}
		}
		for _, v := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 100}) {
			if want := sizes[v.Receipt.ID]; want > 0 && string(v.Payload) != strings.Repeat("7", want) {
				rt.Fatalf("%s: %s, want %d times 7", v.Receipt.ID, v.Payload, want)
			}
		}
		if r, err := s.Verify(t.Context(), VerifyOptions{}); err != nil || !r.OK {
			rt.Fatalf("%+v, %v", r, err)
		}
	})
}

// The first byte of a block and the last of the file are the array's.
func TestPreparedObjectHolds(t *testing.T) {
	const size = 4 * preparedBlock
	for _, c := range []struct {
		next, bytes int64
		want        bool
	}{
		{0, 1, true},
		{0, preparedBlock - 1, true},
		{0, size - 2, true},
		{0, size - 1, false},
		{0, size, false},
		{3 * preparedBlock, preparedBlock - 2, true},
		{3 * preparedBlock, preparedBlock - 1, false},
		{2 * preparedBlock, preparedBlock, true},
		{size, 1, false},
	} {
		x := &preparedObject{size: size, next: c.next}
		if got := x.holds(c.bytes); got != c.want {
			t.Errorf("%d bytes at %d of %d: %v, want %v", c.bytes, c.next, size, got, c.want)
		}
	}
}

// A collector has taken what was prepared, or something else stands there: the object is
// made anew.
func TestPreparedObjectGone(t *testing.T) {
	object := func(s *Store) string {
		return crashDir + "/" + namespaceDir + "/" + objectsDir + "/" + s.pool.ready.name.String()
	}
	for name, spoil := range map[string]func(d *crashtest.Disk, fs fsguard.FS, s *Store) error{
		"collected": func(d *crashtest.Disk, fs fsguard.FS, s *Store) error {
			objects, err := fs.OpenRoot(crashDir + "/" + namespaceDir + "/" + objectsDir)
			if err != nil {
				return err
			}
			defer objects.Close()
			dropObject(objects, s.pool.ready.name, payloadFile)
			return nil
		},
		"another file": func(d *crashtest.Disk, fs fsguard.FS, s *Store) error {
			dir, err := fs.OpenRoot(object(s))
			if err != nil {
				return err
			}
			defer dir.Close()
			return dir.WriteFile(payloadFile, []byte(strings.Repeat(" ", 2*preparedBlock)))
		},
		"linked": func(d *crashtest.Disk, fs fsguard.FS, s *Store) error {
			dir, err := fs.OpenRoot(object(s))
			if err != nil {
				return err
			}
			defer dir.Close()
			return dir.Link(payloadFile, dir, "second")
		},
		"another length": func(d *crashtest.Disk, fs fsguard.FS, s *Store) error {
			dir, err := fs.OpenRoot(object(s))
			if err != nil {
				return err
			}
			defer dir.Close()
			f, err := dir.OpenWrite(payloadFile)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte(" "), 2*preparedBlock)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, w, d := producing(t)
			odd := s.pool.ready.name
			mustDo(t, spoil(d, d.Process(), s))
			w.Arm(crashtest.Plan{})
			mustEnqueue(t, s, "mail", small("c"))
			shown, err := s.Show(t.Context(), "mail", "c")
			if err != nil || shown[0].Object == odd.String() {
				t.Errorf("in object %s: %v", odd, err)
			}
			for _, v := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 3}) {
				if string(v.Payload) != string(small(v.Receipt.ID).Payload) {
					t.Errorf("%s: %s", v.Receipt.ID, v.Payload)
				}
			}
		})
	}
}

// A commit that fails throws its object away: no other is written over it, and nothing
// that was prepared before it is used after a failed sync.
func TestPreparedObjectIsUsedOnce(t *testing.T) {
	for name, plan := range map[string]crashtest.Plan{
		"sync":         crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpSyncData }, unix.EIO, 1),
		"commit point": crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpExchange }, unix.EIO, 1),
	} {
		t.Run(name, func(t *testing.T) {
			s, w, _ := producing(t)
			used := s.pool.ready.name.String()
			w.Arm(plan)
			if _, err := s.Enqueue(t.Context(), "mail", small("c")); err == nil {
				t.Fatal("no error")
			}
			w.Arm(crashtest.Plan{})
			mustEnqueue(t, s, "mail", small("d"))
			shown, err := s.Show(t.Context(), "mail", "d")
			if err != nil || shown[0].Object == used {
				t.Errorf("written over %s a second time: %v", used, err)
			}
			groups := w.SyncGroups()
			if name == "sync" && !slices.ContainsFunc(groups[0], func(path string) bool { return strings.HasSuffix(path, objectsDir) }) {
				t.Errorf("an object used after a failed sync: %v", groups)
			}
		})
	}
}

// What the commits before one that fails put into a prepared object stays there.
func TestPreparedObjectOfAFailedCommit(t *testing.T) {
	s, w, _ := producing(t)
	mustEnqueue(t, s, "mail", small("c"))
	used := s.pool.ready.name.String()
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpExchange }, unix.EIO, 1))
	if _, err := s.Enqueue(t.Context(), "mail", small("d")); err == nil {
		t.Fatal("no error")
	}
	w.Arm(crashtest.Plan{})
	shown, err := s.Show(t.Context(), "mail", "c")
	if err != nil || shown[0].Object != used || string(shown[0].Payload) != string(small("c").Payload) {
		t.Errorf("%+v, %v", shown, err)
	}
	mustDo(t, s.Close())
	s, err = Open(t.Context(), crashDir, crashOptions(w))
	mustDo(t, err)
	defer s.Close()
	if r, err := s.Verify(t.Context(), VerifyOptions{}); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}

// What a handle prepared and did not use goes with it.
func TestCloseRemovesWhatWasPrepared(t *testing.T) {
	s, _, d := producing(t)
	mustDo(t, s.Close())
	other, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	defer other.Close()
	if r, err := other.Verify(t.Context(), VerifyOptions{}); err != nil || r.Orphans != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A killed process leaves what it had prepared, as one orphan.
func TestKilledProducerLeavesOrphans(t *testing.T) {
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	p := d.Process()
	o := crashOptions(p)
	o.prepare = 1
	s, err := Create(t.Context(), crashDir, o)
	mustDo(t, err)
	for i := range 20 {
		mustEnqueue(t, s, "mail", small(fmt.Sprint(i)))
	}
	if !s.pool.ready.named {
		t.Fatal("nothing is in the prepared object")
	}
	for i := 0; s.pool.ready.named; i++ { // until it has no room, and another is prepared
		mustEnqueue(t, s, "mail", queue.Message{ID: fmt.Sprint("wide", i), Payload: []byte(`"` + strings.Repeat("x", 60000) + `"`)})
	}
	p.Kill()
	s.Close()
	other, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	defer other.Close()
	r, err := other.Verify(t.Context(), VerifyOptions{})
	if err != nil || !r.OK || r.Orphans != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Nothing is prepared where the disk has little room.
func TestNothingIsPreparedOnAFullDisk(t *testing.T) {
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	o := crashOptions(d.Process())
	o.prepare = 1
	s, err := Create(t.Context(), crashDir, o)
	mustDo(t, err)
	defer s.Close()
	d.SetFree(DefaultMinFreeBytes + preparedFree - 1)
	for i := range 5 {
		mustEnqueue(t, s, "mail", small(fmt.Sprint(i)))
	}
	if s.pool.ready != nil {
		t.Errorf("prepared %+v", s.pool.ready)
	}
}

// Where sizes lie a prepared object is used all the same, and none is left for each commit.
func TestPreparedObjectWhereSizesLie(t *testing.T) {
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	d.SetSizeLies(true)
	o := crashOptions(d.Process())
	o.prepare = 1
	s, err := Create(t.Context(), crashDir, o)
	mustDo(t, err)
	defer s.Close()
	for i := range 20 {
		mustEnqueue(t, s, "mail", small(fmt.Sprint(i)))
	}
	if r, err := s.Verify(t.Context(), VerifyOptions{}); err != nil || !r.OK || r.Orphans > 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// An object whose name is taken was another's, and stays: a source of tokens that repeats
// itself loses nothing.
func TestTakenTokenRemovesNothing(t *testing.T) {
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	open := func() *Store {
		o := crashOptions(d.Process())
		o.rand = rand.NewChaCha8([32]byte{7})
		s, err := Open(t.Context(), crashDir, o)
		mustDo(t, err)
		return s
	}
	s, err := Create(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err, s.Close())
	s = open()
	mustEnqueue(t, s, "mail", small("a"))
	mustDo(t, s.Close())
	s = open()
	defer s.Close()
	if _, err := s.Enqueue(t.Context(), "mail", small("b")); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("enqueue: %v, want it to meet the object of the first", err)
	}
	if got := mustClaim(t, s, "mail", queue.ClaimOptions{}); len(got) != 1 || string(got[0].Payload) != string(small("a").Payload) {
		t.Errorf("claimed %+v", got)
	}
}
