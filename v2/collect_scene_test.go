//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// withGarbage is a store that has messages in every place that refers to an object, and
// objects that nothing refers to any more. Each message has an object of its own.
func withGarbage(t testing.TB, d *crashtest.Disk, s *Store) {
	ctx := t.Context()
	for _, m := range smalls(12) { // m002 to m007 in two runs
		_, err := s.Enqueue(ctx, "mail", m)
		mustDo(t, err)
	}
	do := func(id string, then func(r queue.Receipt) error) {
		d, err := s.Load(ctx, "mail", id, queue.LoadOptions{Lease: queue.NoDeadline})
		mustDo(t, err)
		mustDo(t, then(d.Receipt))
	}
	keep := func(queue.Receipt) error { return nil }
	fail := func(r queue.Receipt) error { _, err := s.Fail(ctx, r, queue.FailOptions{}); return err }
	do("m000", func(r queue.Receipt) error { return s.Ack(ctx, r) }) // an orphan
	do("m002", func(r queue.Receipt) error { return s.Ack(ctx, r) }) // one that a run names as gone
	do("m003", keep)
	do("m005", func(r queue.Receipt) error { return s.Release(ctx, r, queue.ReleaseOptions{}) })
	do("m008", fail)
	_, err := s.Enqueue(ctx, "mail", queue.Message{ID: "m009", Payload: []byte(`"newer"`), IfExists: queue.Replace}) // one more
	mustDo(t, err)
	withLeftovers(d)
}

// withLittleGarbage is of the same kinds, for explorations.
func withLittleGarbage(t testing.TB, d *crashtest.Disk, s *Store) {
	for _, m := range smalls(7) { // m002 to m004 in a run
		_, err := s.Enqueue(t.Context(), "mail", m)
		mustDo(t, err)
	}
	mustDo(t, ackOf(s, "m000"), ackOf(s, "m003"))
	withLeftovers(d)
}

// withLeftovers adds what a writer leaves that was killed; on no real disk.
func withLeftovers(d *crashtest.Disk) {
	if d != nil {
		space := crashDir + "/" + namespaceDir + "/"
		d.WriteRaw(space+stateTemp(token{9}), []byte("half"))
		d.MkdirAll(space + objectsDir + "/" + token{0, 0, 8}.String()) // of an object that was being made: the first by its name
	}
}

// garbage is what Collect frees of it on a simulated disk.
const garbage = 4

// objectNames lists what stands in objects/, for a comparison.
func objectNames(t testing.TB, fs fsguard.FS, dir string) []string {
	t.Helper()
	d, err := fs.OpenRoot(dir + "/" + namespaceDir + "/" + objectsDir)
	mustDo(t, err)
	defer d.Close()
	names, err := d.ReadDir()
	mustDo(t, err)
	return names
}

// collectScene gives a store with garbage on a simulated disk, and its operations.
func collectScene(t testing.TB, setup func(testing.TB, *crashtest.Disk, *Store)) (*crashtest.Disk, *Store, *crashtest.Wrapper) {
	t.Helper()
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	w := crashtest.Wrap(d.Process(), crashtest.Plan{})
	s, err := Create(context.Background(), crashDir, crashOptions(w))
	mustDo(t, err)
	t.Cleanup(func() { mustDo(t, s.Close()) })
	setup(t, d, s)
	w.Arm(crashtest.Plan{})
	return d, s, w
}

// beside opens the store once more, as another process does.
func beside(t testing.TB, d *crashtest.Disk) *Store {
	t.Helper()
	s, err := Open(context.Background(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	t.Cleanup(func() { mustDo(t, s.Close()) })
	return s
}

// mustBeClean checks that all is whole and that so many orphans are there.
func mustBeClean(t testing.TB, s *Store, orphans, temps int64) {
	t.Helper()
	r, err := s.Verify(t.Context(), VerifyOptions{})
	if err != nil || !r.OK || r.Orphans != orphans || r.Temps != temps {
		t.Errorf("verify: %+v, %v; want it whole with %d orphans and %d temps", r, err, orphans, temps)
	}
}

// kept gives how many entries stay for a reason.
func (r CollectReport) kept(reason string) int64 {
	for _, k := range r.Kept {
		if k.Reason == reason {
			return k.Count
		}
	}
	return 0
}

// removals are the operations of w that took something away, by hold of the lock.
func removals(w *crashtest.Wrapper) (holds [][]crashtest.Event) {
	for _, e := range w.Events() {
		switch e.Op {
		case fsguard.OpLock:
			if strings.HasSuffix(e.Path, lockFile) && e.Err == nil {
				holds = append(holds, nil)
			}
		case fsguard.OpRemove, fsguard.OpRemoveDir:
			holds[len(holds)-1] = append(holds[len(holds)-1], e)
		}
	}
	return slices.DeleteFunc(holds, func(h []crashtest.Event) bool { return h == nil })
}

// collects is a process that collects, an entry at a time, until it has come to an end.
func collects(c *interClient) {
	for {
		c.step("collect")
		r, err := c.store.Collect(context.Background(), CollectOptions{StepEntries: 1})
		switch {
		case c.Dead():
			return
		case err == nil && r.Done && len(r.Kept) == 0:
			return
		case err == nil:
			c.fail(fmt.Errorf("collect: %+v", r))
			return
		case errors.Is(err, ErrStaleLock) && !c.play.scene.consent:
			c.recover()
		default:
			c.fail(fmt.Errorf("collect: %w", err))
			return
		}
	}
}
