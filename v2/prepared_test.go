//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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

// producing gives a handle with wrapped operations that has prepared two objects.
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
	if len(s.pool.ready) != 2 {
		t.Fatalf("%d prepared", len(s.pool.ready))
	}
	return s, w, d
}

func syncGroups(w *crashtest.Wrapper) (groups []int) {
	for _, g := range w.SyncGroups() {
		groups = append(groups, len(g))
	}
	return groups
}

// The sync budget of a producer: five syncs, then those of the objects that are prepared
// beside it, two for each; three while these last.
func TestSyncBudgetOfAProducer(t *testing.T) {
	s, w := counted(t)
	for i := range preparesAfter + 20 {
		w.Arm(crashtest.Plan{})
		mustEnqueue(t, s, "mail", small(fmt.Sprint(i)))
		want := []int{2, 1}
		switch i - preparesAfter {
		case 0:
			want = []int{4 + 2*2, 1}
		case 3:
			want = []int{4 + 2*4, 1}
		case 8:
			want = []int{4 + 2*8, 1}
		case 17:
			want = []int{4 + 2*16, 1}
		default:
			if i < preparesAfter {
				want = []int{4, 1}
			}
		}
		if got := syncGroups(w); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("enqueue %d: %v, want %v\n%s", i, got, want, w.Trace())
		}
	}
}

// What a prepared object is not used for: payloads that it cannot hold, and runs.
func TestPreparedObjectTooSmall(t *testing.T) {
	s, w, _ := producing(t)
	w.Arm(crashtest.Plan{})
	mustEnqueue(t, s, "mail", queue.Message{ID: "wide", Payload: []byte(`"` + strings.Repeat("x", 9000) + `"`)})
	if got := fmt.Sprint(syncGroups(w)); got != "[12 1]" { // and four larger ones are prepared
		t.Errorf("sync groups %s, want [12 1]\n%s", got, w.Trace())
	}
	for _, x := range s.pool.ready {
		if x.size != 12<<10 {
			t.Errorf("prepared %d bytes, want %d", x.size, 12<<10)
		}
	}
	before := len(s.pool.ready)
	mustEnqueue(t, s, "mail", queue.Message{ID: "big", Payload: bigPayload})
	if len(s.pool.ready) != before {
		t.Errorf("%d prepared after a payload with an object of its own, want %d", len(s.pool.ready), before)
	}
}

// A collector has taken what was prepared, or something else stands there: the object is
// made anew.
func TestPreparedObjectGone(t *testing.T) {
	object := func(s *Store) string {
		return crashDir + "/" + namespaceDir + "/" + objectsDir + "/" + s.pool.ready[len(s.pool.ready)-1].name.String()
	}
	for name, spoil := range map[string]func(d *crashtest.Disk, fs fsguard.FS, s *Store) error{
		"collected": func(d *crashtest.Disk, fs fsguard.FS, s *Store) error {
			objects, err := fs.OpenRoot(crashDir + "/" + namespaceDir + "/" + objectsDir)
			if err != nil {
				return err
			}
			defer objects.Close()
			for _, x := range s.pool.ready {
				dropObject(objects, x.name, payloadFile)
			}
			return nil
		},
		"another file": func(d *crashtest.Disk, fs fsguard.FS, s *Store) error {
			dir, err := fs.OpenRoot(object(s))
			if err != nil {
				return err
			}
			defer dir.Close()
			return dir.WriteFile(payloadFile, []byte(strings.Repeat(" ", preparedUnit)))
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
			_, err = f.WriteAt([]byte(" "), preparedUnit)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, w, d := producing(t)
			odd := s.pool.ready[len(s.pool.ready)-1].name
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
			used := s.pool.ready[len(s.pool.ready)-1].name.String()
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
			if got := w.Count(fsguard.OpSyncData); name == "sync" && got != 0 {
				t.Errorf("%d objects used after a failed sync", got)
			}
		})
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

// A killed process leaves what it had prepared, as orphans and no more than the bound.
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
	left := len(s.pool.ready)
	p.Kill()
	s.Close()
	other, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	defer other.Close()
	r, err := other.Verify(t.Context(), VerifyOptions{})
	if err != nil || !r.OK || left == 0 || r.Orphans != int64(left) || left > maxPrepared {
		t.Errorf("%d left: %+v, %v", left, r, err)
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
	if len(s.pool.ready) != 0 {
		t.Errorf("%d prepared", len(s.pool.ready))
	}
}
