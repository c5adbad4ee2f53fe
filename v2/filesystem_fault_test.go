//go:build linux

package holdfast

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/mount"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

// A filesystemFault ends a filesystem's work while a store is at work in it.
type filesystemFault struct {
	name   string
	strike func(d *mount.Device, m *mount.Mount) error
	errnos []error // what calls say from then on
	looks  bool    // reading goes on
}

// An ext4 that may not even ask for a block behind the end of its device calls that a lack
// of memory.
var (
	becomesReadOnly = filesystemFault{name: "becomes read-only", looks: true, errnos: []error{unix.EROFS},
		strike: func(_ *mount.Device, m *mount.Mount) error { return m.Abort() }}
	shutsDown = filesystemFault{name: "shuts down", errnos: []error{unix.EIO},
		strike: func(_ *mount.Device, m *mount.Mount) error { return m.Shutdown() }}
	losesItsDevice = filesystemFault{name: "loses its device", errnos: []error{unix.EIO, unix.EROFS, unix.ENOMEM},
		strike: func(d *mount.Device, _ *mount.Mount) error { return d.Break(4096) }}

	// Files have nowhere to go; the filesystem lives on.
	hasNoRoomBelow = filesystemFault{name: "has no room below", errnos: []error{unix.ENOSPC},
		strike: func(d *mount.Device, _ *mount.Mount) error { return d.Starve() }}
)

// filesystemFaults are the faults that each filesystem can have.
var filesystemFaults = map[string][]filesystemFault{
	mount.Ext4.Name:      {becomesReadOnly, shutsDown, losesItsDevice},
	mount.Writeback.Name: {losesItsDevice},
	mount.XFS.Name:       {shutsDown, losesItsDevice},
	mount.Btrfs.Name:     {losesItsDevice},
}

// A real filesystem fails right before each operation of a commit: the kernel's own EROFS
// and EIO come from it, from whatever call meets them first. The answer is typed and true:
// a refusal says that nothing happened. When the filesystem is mounted anew, the store goes
// on, with all that was done before.
func TestFilesystemFaults(t *testing.T) {
	thorough(t)
	kinds := firstOf(mount.Ext4, mount.Writeback, mount.XFS, mount.Btrfs)
	onEach(t, kinds, func(t *testing.T, k mount.Kind) {
		for _, fault := range firstOf(filesystemFaults[k.Name]...) {
			for _, f := range firstOf(fatalStepsNamed("ack", "enqueue")...) {
				t.Run(fault.name+"/"+f.name, func(t *testing.T) {
					template, base, next := prepared(t, f)
					c := newCutter(t, k, template)
					counts := map[string]int{}
					for at, struck := 1, true; struck; at++ {
						var found string
						found, struck = c.strike(t, fault, base, next, at)
						counts[found]++
						if t.Failed() {
							t.Fatalf("before operation %d", at)
						}
					}
					if n := sum(counts) - 1; n < 8 {
						t.Errorf("%d faults: the test shows little", n)
					}
					t.Logf("%d faults: %v", sum(counts)-1, counts)
				})
			}
		}
	})
}

// A struckStore is a store in a filesystem, at work until it is struck.
type struckStore struct {
	*Store
	d   *mount.Device
	m   *mount.Mount
	w   *crashtest.Wrapper
	set *holderSet
	dir string
}

func (c cutter) open(t *testing.T) *struckStore {
	t.Helper()
	x := &struckStore{d: c.before.Copy(), set: &holderSet{}, w: crashtest.Wrap(fsguard.OS(), crashtest.Plan{})}
	x.m = x.d.Mount()
	x.dir = filepath.Join(x.m.Dir, "store")
	var err error
	x.Store, err = Open(t.Context(), x.dir, &Options{fs: x.w, holders: x.set})
	mustDo(t, err)
	t.Cleanup(func() { // of a test that failed
		_ = x.Close()
		x.set.die()
	})
	return x
}

// end lets go of the filesystem. No failed sync may have been tried again.
func (x *struckStore) end(t *testing.T) {
	t.Helper()
	mustDo(t, x.Close())
	x.set.die()
	x.m.Unmount()
	for _, v := range x.w.Violations() {
		t.Error(v)
	}
}

// call makes a call and strikes right before its operation at. It tells what was said, and
// whether there were so many.
func (x *struckStore) call(t *testing.T, fault filesystemFault, next history.Step, at int) (e ending, struck bool) {
	t.Helper()
	n := 0
	var failed error
	x.w.Arm(watch(func(op fsguard.Op, _ string) {
		if numbered(op) {
			if n++; n == at {
				failed = fault.strike(x.d, x.m)
			}
		}
	}))
	_, err := linPerform(t.Context(), x.Store, next)
	x.w.Arm(crashtest.Plan{})
	mustDo(t, failed)
	struck = n >= at
	if err == nil {
		e.said = saidDone
		return e, struck
	}
	if !fault.explains(err) {
		t.Errorf("%s before operation %d: %v", next.Op, at, err)
	}
	if errors.As(err, &e.uncertain) {
		e.said = saidUncertain
	} else {
		e.said = saidRefused
	}
	return e, struck
}

// numbered reports whether an operation changes the disk, what is durable, or a lock.
func numbered(op fsguard.Op) bool {
	others := []fsguard.Op{fsguard.OpSync, fsguard.OpSyncDir, fsguard.OpLock, fsguard.OpUnlock}
	return slices.Contains(changing, op) || slices.Contains(others, op)
}

// explains reports whether an error says what has happened.
func (f filesystemFault) explains(err error) bool {
	return slices.ContainsFunc(f.errnos, func(errno error) bool { return errors.Is(err, errno) })
}

// strike lets the fault come right before operation at of next, and mounts the filesystem
// anew. It tells what was said and found, and whether the call had so many operations.
func (c cutter) strike(t *testing.T, fault filesystemFault, base *history.Model, next history.Step, at int) (found string, struck bool) {
	t.Helper()
	ctx := t.Context()
	x := c.open(t)
	e, struck := x.call(t, fault, next, at)
	var later error
	if struck {
		if _, err := x.Status(ctx, queue.StatusOptions{}); err != nil && !fault.explains(err) {
			t.Errorf("status: %v", err)
		}
		if _, later = x.Enqueue(ctx, "later", small("a")); later == nil || !fault.explains(later) {
			t.Errorf("the next call: %v", later)
		}
		if fault.looks {
			mustSee(t, x.dir)
		}
		e.orphans++
	} else if e.said != saidDone {
		t.Errorf("%s without a fault", e.said)
	}
	x.end(t)

	m := x.d.Mount()
	dir := filepath.Join(m.Dir, "store")
	found = foundAfter(t, base.Clone(), dir, next, e)
	if !errors.Is(later, queue.ErrUncertain) {
		mustBeEmpty(t, dir, "later")
	}
	m.Unmount()
	x.d.Remove()
	return found, struck
}

// mustSee looks at a store that nobody can write.
func mustSee(t *testing.T, dir string) {
	t.Helper()
	s, err := OpenReadOnly(t.Context(), dir, nil)
	if err != nil {
		t.Errorf("open for looking: %v", err)
		return
	}
	defer s.Close()
	if st, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil || len(st.Queues) == 0 {
		t.Errorf("a look: %+v, %v", st, err)
	}
	page, err := s.List(t.Context(), "mail", queue.ListOptions{})
	if err != nil || len(page.Entries) < 3 {
		t.Errorf("a list: %+v, %v", page, err)
	}
}

func mustBeEmpty(t *testing.T, dir, name string) {
	t.Helper()
	s, err := OpenReadOnly(t.Context(), dir, nil)
	mustDo(t, err)
	defer s.Close()
	page, err := s.List(t.Context(), name, queue.ListOptions{})
	if err != nil || len(page.Entries) > 0 {
		t.Errorf("queue %s: %+v, %v; want it empty", name, page, err)
	}
}

// The device has nowhere to put a file for a while: it is the sync of that file that fails,
// for the filesystem itself has room, and lives on. The same process goes on too, once that
// is over; what it then says is true after a power cut.
func TestPassingError(t *testing.T) {
	thorough(t)
	onEach(t, []mount.Kind{mount.Ext4}, func(t *testing.T, k mount.Kind) {
		for _, f := range firstOf(fatalStepsNamed("enqueue", "ack", "claim")...) {
			t.Run(f.name, func(t *testing.T) {
				template, base, next := prepared(t, f)
				c := newCutter(t, k, template)
				counts := map[string]int{}
				for at, struck := 1, true; struck; at++ {
					var said string
					said, struck = c.pass(t, base, next, at)
					counts[said]++
					if t.Failed() {
						t.Fatalf("before operation %d", at)
					}
				}
				// What settles overwrites the spare, whose blocks are there: no sync of it asks for others.
				if n := sum(counts) - 1; n < 8 || (counts[saidRefused] > 0) != (f.name == "enqueue") {
					t.Errorf("%d faults, %v: the test shows little", n, counts)
				}
				t.Logf("%d faults: %v", sum(counts)-1, counts)
			})
		}
	})
}

// pass lets the errors begin right before operation at of next, and end after the call. It
// tells what was said, and whether the call had so many operations.
func (c cutter) pass(t *testing.T, base *history.Model, next history.Step, at int) (said string, struck bool) {
	t.Helper()
	ctx := t.Context()
	x := c.open(t)
	e, struck := x.call(t, hasNoRoomBelow, next, at)
	mustDo(t, x.d.Feed())
	m, happened := settled(t, base.Clone(), x.Store, fatalQueues, &next)
	if happened != (e.said == saidDone) {
		t.Errorf("%s, and happened is %v", e.said, happened)
	}
	if e.said == saidRefused {
		a, err := linPerform(ctx, x.Store, next)
		mustDo(t, err)
		if want, ok := m.Apply(next, &a); !ok {
			t.Errorf("the next try: %s, want %s", jsonOf(a), jsonOf(want))
		}
	}
	cut := x.d.Copy()
	x.end(t)
	x.d.Remove()

	found := cut.Mount()
	foundAfter(t, base.Clone(), filepath.Join(found.Dir, "store"), next, ending{said: saidDone, orphans: 1})
	found.Unmount()
	cut.Remove()
	return e.said, struck
}

// Mounted so that nobody can write, a store is there to be looked at, and refuses typed to
// be opened for more. It does not let a filesystem become read-only under itself: its lock
// is open for writing.
func TestReadOnlyFilesystem(t *testing.T) {
	onEach(t, firstOf(mount.Ext4, mount.XFS, mount.Btrfs), func(t *testing.T, k mount.Kind) {
		template, _, _ := prepared(t, fatalStepsNamed("ack")[0])
		c := newCutter(t, k, template)
		x := c.open(t)
		if err := x.m.ReadOnly(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("remount under an open store: %v, want EBUSY", err)
		}
		mustEnqueue(t, x.Store, "later", small("a"))
		mustDo(t, x.Close())
		x.set.die()
		mustDo(t, x.m.ReadOnly())
		refusedReadOnly(t, x.dir)
		x.m.Unmount()

		m := x.d.MountReadOnly()
		refusedReadOnly(t, filepath.Join(m.Dir, "store"))
		m.Unmount()

		m = x.d.Mount()
		s, err := Open(t.Context(), filepath.Join(m.Dir, "store"), nil)
		mustDo(t, err)
		if d := mustClaim(t, s, "later", queue.ClaimOptions{WithoutHolder: true}); len(d) != 1 {
			t.Errorf("claimed %d, want 1", len(d))
		}
		mustDo(t, s.Close())
	})
}

// refusedReadOnly checks that a store that nobody can write can be looked at, and verified.
func refusedReadOnly(t *testing.T, dir string) {
	t.Helper()
	mustSee(t, dir)
	mustVerify(t, dir)
	for what, open := range map[string]func() (*Store, error){
		"open":   func() (*Store, error) { return Open(t.Context(), dir, nil) },
		"create": func() (*Store, error) { return Create(t.Context(), dir+"-new", nil) },
	} {
		if _, err := open(); !errors.Is(err, unix.EROFS) {
			t.Errorf("%s: %v, want EROFS", what, err)
		}
	}
}
