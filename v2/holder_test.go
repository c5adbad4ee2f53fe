//go:build unix

package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// The handles of one process share a holder; it outlives them, and is found again.
func TestHolderIsOfTheProcess(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		one, other := b.process(t), b.process(t)
		b.wantFiles(t) // a process that never claimed has none
		second := b.handle(t, one, nil)
		name := mustHold(t, one.Store)
		if got := mustHold(t, second); got != name {
			t.Errorf("the second handle is %s, the first %s", got, name)
		}
		theirs := mustHold(t, other.Store)
		if theirs == name {
			t.Error("two processes are one holder")
		}
		b.wantFiles(t, name, theirs)
		for _, s := range []*Store{one.Store, second} {
			wantHolderDead(t, s, name, false)
			mustDo(t, s.Close())
			wantHolderDead(t, other.Store, name, false)
		}
		if got := mustHold(t, b.handle(t, one, nil)); got != name {
			t.Errorf("a later handle is %s, want %s", got, name)
		}
		one.kill()
		wantHolderDead(t, other.Store, name, true)
		wantHolderDead(t, other.Store, theirs, false)
	})
}

// A holder is an empty file of mode 0600.
func TestHolderFile(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		p := b.process(t)
		name := mustHold(t, p.Store)
		info, err := p.set.made[p.holderKey(p.pins)].file.Info()
		mustDo(t, err)
		if !info.Plain() || info.Mode.Perm() != 0o600 || info.Size != 0 {
			t.Errorf("%s is %v, %d bytes", name, info.Mode, info.Size)
		}
		p.kill()
	})
}

// What a claim costs: nothing once there is a holder. What a question about our own
// process costs: nothing, ever.
func TestHolderCost(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		p := b.process(t)
		w := crashtest.Wrap(b.inner(p), crashtest.Plan{})
		s := b.handle(t, p, w)
		count := func(f func(v *view) error) (ops, changes int) {
			mustDo(t, s.submit(t.Context(), &call{writes: true, decide: func(v *view) error {
				w.Arm(crashtest.Plan{})
				err := f(v)
				ops, changes = w.Count(), w.Ops()
				return err
			}}))
			return ops, changes
		}
		var name token
		holder := func(v *view) (err error) {
			name, err = s.holder(v.pins)
			return err
		}
		if _, changes := count(holder); changes != 2 || w.Syncs() != 0 {
			t.Errorf("%d changing operations, %d syncs; want the create and the lock", changes, w.Syncs())
		}
		if ops, _ := count(holder); ops != 0 {
			t.Errorf("again: %d operations", ops)
		}
		ops, _ := count(func(v *view) error {
			p := newProver(s, v.pins)
			defer p.close()
			for _, h := range []token{name, {}} {
				if dead, err := p.dead(h); dead || err != nil {
					t.Errorf("dead: %v, %v", dead, err)
				}
			}
			return nil
		})
		if ops != 0 {
			t.Errorf("asking about ourselves and about nobody: %d operations", ops)
		}
		p.kill()
	})
}

// A directory that took the place of the namespace is another one, though its inode
// number be the same again: a holder there would name a file that nobody locked.
func TestHolderOfARestoredStore(t *testing.T) {
	b := simHolding(t)
	d := b.disk
	p := b.process(t)
	name := mustHold(t, p.Store)
	space, err := p.sim.Stat(b.dir + "/" + namespaceDir)
	mustDo(t, err, p.Close())

	backup := map[string][]byte{}
	for _, file := range []string{formatFile, stateFile, lockFile, reserveFile, holdersDir + "/" + name.String()} {
		backup[file] = d.ReadRaw(b.dir + "/" + namespaceDir + "/" + file)
	}
	d.Remove(b.dir + "/" + namespaceDir)
	for _, dir := range []string{"", objectsDir, holdersDir} {
		d.MkdirAll(b.dir + "/" + namespaceDir + "/" + dir)
	}
	for file, data := range backup {
		d.WriteRaw(b.dir+"/"+namespaceDir+"/"+file, data)
	}
	again := b.handle(t, p, nil)
	restored, err := p.sim.Stat(b.dir + "/" + namespaceDir)
	mustDo(t, err)
	if restored.Identity == space.Identity {
		t.Error("the namespace has its old identity: nothing keeps it")
	}
	if got := mustHold(t, again); got == name {
		t.Error("a holder from the backup, which nobody locked, is named")
	}
}

// Holder gives a descriptor that keeps this process alive for as long as it is open.
func TestHolderDescriptor(t *testing.T) {
	b := holdingBench{}
	s, dir := newTestStore(t, nil)
	b.dir = dir
	mustDo(t, s.Close())
	one, other := b.process(t), b.process(t)
	before := holdingStatus(t, one.Store).Revision
	var dups []*os.File
	for range 2 {
		dup, err := one.Holder(t.Context())
		mustDo(t, err)
		dups = append(dups, dup)
	}
	name := mustHold(t, one.Store)
	b.wantFiles(t, name)
	flags, err := unix.FcntlInt(dups[0].Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor flags %#x, %v: a child would inherit it unasked", flags, err)
	}
	mustDo(t, dups[0].Close())
	one.kill()
	wantHolderDead(t, other.Store, name, false)
	mustDo(t, dups[1].Close())
	wantHolderDead(t, other.Store, name, true)
	if after := holdingStatus(t, other.Store).Revision; after != before {
		t.Errorf("revision %d became %d", before, after)
	}
}

func holdingStatus(t testing.TB, s *Store) queue.Status {
	t.Helper()
	st, err := s.Status(context.Background(), queue.StatusOptions{})
	mustDo(t, err)
	return st
}

// However many goroutines and handles are first at once, a process is one holder.
func TestHolderAtOnce(t *testing.T) {
	b := osHolding(t)
	p := b.process(t)
	second := b.handle(t, p, nil)
	var wg sync.WaitGroup
	for i := range 12 {
		s := []*Store{p.Store, second}[i%2]
		wg.Go(func() {
			file, err := s.Holder(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b.wantFiles(t, mustHold(t, p.Store))
	p.kill()
}

func TestHolderRefusals(t *testing.T) {
	b := simHolding(t)
	d := b.disk
	p := b.process(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	closed := b.process(t).Store
	mustDo(t, closed.Close())
	look, err := OpenReadOnly(t.Context(), b.dir, crashOptions(d.Process()))
	mustDo(t, err)
	defer look.Close()
	for _, c := range []struct {
		name string
		ctx  context.Context
		s    *Store
		want error
	}{
		{"simulated", t.Context(), p.Store, errors.ErrUnsupported},
		{"cancelled", cancelled, p.Store, context.Canceled},
		{"closed", t.Context(), closed, queue.ErrClosed},
		{"looking only", t.Context(), look, ErrReadOnly},
	} {
		if f, err := c.s.Holder(c.ctx); f != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, f, err, c.want)
		}
	}
	d.Remove(b.at())
	if f, err := b.process(t).Holder(t.Context()); f != nil || !errors.Is(err, ErrCorrupt) {
		t.Errorf("without holders/: %v, %v", f, err)
	}
}

// What stands where holders/ must be.
func TestHoldersDirectory(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(d *crashtest.Disk, at string)
		want  error
		names string
		fault string // of verify
	}{
		{"missing", func(d *crashtest.Disk, at string) {}, ErrCorrupt, "holders: missing", "holders is missing"},
		{"a symlink", func(d *crashtest.Disk, at string) { d.Symlink(objectsDir, at) }, ErrUnsafe, "holders", ""},
		{"a file", func(d *crashtest.Disk, at string) { d.WriteRaw(at, nil) }, ErrUnsafe, "holders", ""},
		{"not readable", func(d *crashtest.Disk, at string) { d.MkdirAll(at); d.Chmod(at, 0) }, fs.ErrPermission, "holders", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := simHolding(t)
			d := b.disk
			gone := b.process(t)
			name := mustHold(t, gone.Store)
			gone.kill()
			d.Remove(b.at())
			c.spoil(d, b.at())
			before := d.Tree()

			p := b.process(t)
			_, err := holdNow(p.Store)
			refusal(t, "hold", err, c.want, c.names)
			if dead, err := holderDead(p.Store, name); dead || (err != nil) != (c.want == fs.ErrPermission) {
				t.Errorf("dead: %v, %v", dead, err)
			}
			sweepHolders(t, p.Store)
			if after := d.Tree(); after != before {
				t.Errorf("changed:\n%s\nwas:\n%s", after, before)
			}
			if c.want == fs.ErrPermission {
				return
			}
			var report Report
			mustDo(t, verifyHolders(p.pins, &report))
			reasons := ""
			for _, f := range report.Faults {
				reasons += f.File + " " + f.Reason
			}
			if !strings.HasPrefix(reasons, c.fault) || (reasons == "") != (c.fault == "") {
				t.Errorf("verify says %q, want %q", reasons, c.fault)
			}
		})
	}
}
