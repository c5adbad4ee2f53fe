//go:build unix

package holdfast

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// A holding is a process of a test: handles on one store that share a set of holders.
type holding struct {
	*Store
	set *holderSet
	sim *crashtest.Process // nil: on the real filesystem
}

// A holdingBench is a store on which a test plays several processes.
type holdingBench struct {
	dir  string
	disk *crashtest.Disk // nil: the real filesystem
}

// simHolding is a holdingBench on a simulated disk of its own.
func simHolding(t testing.TB) holdingBench {
	t.Helper()
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	p := d.Process()
	s, err := Create(t.Context(), crashDir, crashOptions(p))
	mustDo(t, err, s.Close())
	p.Kill()
	return holdingBench{crashDir, d}
}

// osHolding is one on the real filesystem.
func osHolding(t *testing.T) holdingBench {
	t.Helper()
	s, dir := newTestStore(t, nil)
	mustDo(t, s.Close())
	return holdingBench{dir: dir}
}

// deadHolder leaves the file of a process that is gone.
func (b holdingBench) deadHolder(t testing.TB) token {
	t.Helper()
	p := b.process(t)
	name := mustHold(t, p.Store)
	p.kill()
	return name
}

// holdingOnBoth runs a test on the simulated disk and on the real filesystem.
func holdingOnBoth(t *testing.T, test func(t *testing.T, b holdingBench)) {
	t.Run("sim", func(t *testing.T) { test(t, simHolding(t)) })
	t.Run("os", func(t *testing.T) { test(t, osHolding(t)) })
}

// process starts another process and opens the store in it.
func (b holdingBench) process(t testing.TB) *holding {
	t.Helper()
	h := &holding{set: &holderSet{}}
	if b.disk != nil {
		h.sim = b.disk.Process()
	}
	h.Store = b.handle(t, h, nil)
	return h
}

// handle opens the store once more in a process, through w if that is given.
func (b holdingBench) handle(t testing.TB, h *holding, w fsguard.FS) *Store {
	t.Helper()
	o := &Options{holders: h.set, fs: w}
	if b.disk != nil {
		o = crashOptions(h.sim)
		o.holders = h.set
		if w != nil {
			o.fs = w
		}
	}
	s, err := Open(context.Background(), b.dir, o)
	mustDo(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// inner is the filesystem of a process, to be wrapped.
func (b holdingBench) inner(h *holding) fsguard.FS {
	if b.disk != nil {
		return h.sim
	}
	return fsguard.OS()
}

// kill ends a process: its descriptors are closed.
func (h *holding) kill() {
	if h.sim != nil {
		h.sim.Kill()
	}
	h.Close()
	h.set.die()
}

// holdNow makes the holder, as a claim would.
func holdNow(s *Store) (name token, err error) {
	err = s.submit(context.Background(), &call{writes: true, decide: func(v *view) (err error) {
		name, err = s.holder(v.pins)
		return err
	}})
	return name, err
}

func mustHold(t testing.TB, s *Store) token {
	t.Helper()
	name, err := holdNow(s)
	mustDo(t, err)
	if name.zero() {
		t.Fatal("a holder without a name")
	}
	return name
}

// proveUnderLock runs f with a prover, under the lock.
func proveUnderLock(s *Store, f func(v *prover) error) error {
	return s.submit(context.Background(), &call{writes: true, decide: func(v *view) error {
		p := newProver(s, v.pins)
		defer p.close()
		return f(p)
	}})
}

func holderDead(s *Store, h token) (dead bool, err error) {
	err = proveUnderLock(s, func(v *prover) (err error) {
		dead, err = v.dead(h)
		return err
	})
	return dead, err
}

func wantHolderDead(t testing.TB, s *Store, h token, want bool) {
	t.Helper()
	if got, err := holderDead(s, h); err != nil || got != want {
		t.Fatalf("dead: %v, %v; want %v", got, err, want)
	}
}

// sweepHolders sweeps as after a commit whose leases name only these.
func sweepHolders(t testing.TB, s *Store, named ...token) {
	t.Helper()
	mustDo(t, proveUnderLock(s, func(v *prover) error {
		v.sweep(func(h token) bool { return slices.Contains(named, h) })
		return nil
	}))
}

// files lists holders/.
func (b holdingBench) files(t testing.TB) []string {
	t.Helper()
	fsys := fsguard.OS()
	if b.disk != nil {
		p := b.disk.Process()
		defer p.Kill()
		fsys = p
	}
	d, err := fsys.OpenRoot(b.at())
	mustDo(t, err)
	defer d.Close()
	names, err := d.ReadDir()
	mustDo(t, err)
	return names
}

// at gives a path in holders/.
func (b holdingBench) at(names ...string) string {
	return filepath.Join(append([]string{b.dir, namespaceDir, holdersDir}, names...)...)
}

func (b holdingBench) wantFiles(t testing.TB, want ...token) {
	t.Helper()
	var names []string
	for _, h := range want {
		names = append(names, h.String())
	}
	slices.Sort(names)
	if got := b.files(t); !slices.Equal(got, names) {
		t.Fatalf("holders/ has %q, want %q", got, names)
	}
}
