//go:build unix

package crashtest

import (
	"reflect"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"example.com/holdfast/internal/fsguard"
)

// SyncData makes durable what was written and allocated, but no name: by itself and in
// SyncAll, on the bare disk and under a wrapper.
func TestSyncData(t *testing.T) {
	for name, sync := range map[string]func(fs fsguard.FS, f fsguard.File) error{
		"alone":      func(_ fsguard.FS, f fsguard.File) error { return f.SyncData() },
		"in a group": func(fs fsguard.FS, f fsguard.File) error { return fs.SyncAll(fsguard.DataOf(f)) },
	} {
		for wrapped, wrap := range map[string]func(*Process) fsguard.FS{
			"bare":    func(p *Process) fsguard.FS { return p },
			"wrapped": func(p *Process) fsguard.FS { return Wrap(p, Plan{}) },
		} {
			t.Run(name+"/"+wrapped, func(t *testing.T) {
				d, p, _ := store(t)
				d.WriteRaw("/store/state", []byte("old"))
				fs := wrap(p)
				dir := must(fs.OpenRoot("/store"))(t)
				state, fresh := must(dir.OpenWrite("state"))(t), must(dir.Create("new"))(t)
				for _, f := range []fsguard.File{state, fresh} {
					must(f.WriteAt([]byte("NEW"), 0))(t)
					ok(t, f.Allocate(4))
					ok(t, sync(fs, f))
				}
				want := []string{`new "NEW\x00"; state "NEW\x00"`, `state "NEW\x00"`}
				if got := trees(t, d); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// A SyncData that fails dooms what it covered, as a failed Sync does.
func TestFailedSyncDataDooms(t *testing.T) {
	d, p, _ := store(t)
	d.WriteRaw("/store/state", []byte("o"))
	w := Wrap(p, Plan{})
	f := must(must(w.OpenRoot("/store"))(t).OpenWrite("state"))(t)
	must(f.WriteAt([]byte("n"), 0))(t)
	w.Arm(FailAt(1, syscall.EIO))
	wantErr(t, w.SyncAll(fsguard.DataOf(f)), fsguard.OpSyncData, syscall.EIO)
	w.Arm(Plan{})
	ok(t, f.SyncData())
	if got, want := trees(t, d), []string{`state "n"`, `state "o"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A wrapper knows its files in the targets of SyncAll by what is asked of each.
func TestSyncDataIsTraced(t *testing.T) {
	for name, inner := range map[string]func(t *testing.T) (fsguard.FS, string){
		"sim": func(t *testing.T) (fsguard.FS, string) { _, p, _ := store(t); return p, "/store" },
		"os":  func(t *testing.T) (fsguard.FS, string) { return fsguard.OS(), t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			fs, root := inner(t)
			b := newBench(t, fs, root)
			b.w.Arm(Plan{})
			ok(t, b.file.SyncData())
			ok(t, b.w.SyncAll(fsguard.DataOf(b.file), b.dir))
			groups := b.w.SyncGroups()
			if len(groups) == 2 {
				slices.Sort(groups[1]) // on the system they run at the same time
			}
			if want := [][]string{{"f"}, {".", "f"}}; !reflect.DeepEqual(groups, want) {
				t.Errorf("sync groups: got %v, want %v", groups, want)
			}
			counts := []int{b.w.Count(fsguard.OpSyncData), b.w.Count(fsguard.OpSyncDir), b.w.Count(fsguard.OpSync), b.w.Syncs(), b.w.Ops()}
			if want := []int{2, 1, 0, 3, 3}; !slices.Equal(counts, want) {
				t.Errorf("counts: got %v, want %v", counts, want)
			}
		})
	}
}

// The scheduler of interleavings is asked about each SyncData by that name.
func TestSyncDataWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, _ := store(t)
		c := newClient(d, 0)
		f := must(must(c.FS.OpenRoot("/store"))(t).Create("f"))(t)
		c.stepped = true
		done := make(chan error)
		go func() { done <- c.FS.SyncAll(fsguard.DataOf(f)) }()
		synctest.Wait()
		turns := c.waiting()
		if len(turns) != 1 || turns[0].String() != "syncdata f" {
			t.Fatalf("turns: got %v, want syncdata f", turns)
		}
		c.let(turns[0], passes)
		ok(t, <-done)
	})
}
