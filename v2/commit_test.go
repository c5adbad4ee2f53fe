//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// simSpace opens the namespace of onDisk's store as another process.
func simSpace(t *testing.T, d *crashtest.Disk) fsguard.Dir {
	t.Helper()
	space, err := d.Process().OpenRoot(crashDir + "/" + namespaceDir)
	mustDo(t, err)
	return space
}

// hookAt gives a hook for a plan that fails nothing: do runs before each operation of that
// kind on a name in the namespace.
func hookAt(kind fsguard.Op, name string, do func()) crashtest.Plan {
	return crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		if op == kind && path == filepath.Join(namespaceDir, name) {
			do()
		}
		return false
	}, nil, 0)
}

// Where identity, size and times say that nothing has changed, the first bytes still do.
func TestChangedStateThatLooksTheSame(t *testing.T) {
	d, s, _ := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	waitIdle(s)
	file, err := simSpace(t, d).OpenWrite(stateFile)
	mustDo(t, err)
	text, err := fsguard.ReadAll(file, 1<<20)
	mustDo(t, err)
	changed := resummed(bytes.Replace(text, []byte(`"revision":"2"`), []byte(`"revision":"8"`), 1))
	if bytes.Equal(changed, resummed(text)) {
		t.Fatalf("%s", text)
	}
	if _, err := file.WriteAt(changed, 0); err != nil {
		t.Fatal(err)
	}
	s.cached.info, err = file.Info() // as where the clock has not ticked since
	mustDo(t, err)
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil || st.Revision != 8 {
		t.Errorf("revision %d, %v; want 8", st.Revision, err)
	}
}

// A state that somebody puts there while a commit is written is not replaced by it.
func TestReplacedInsideACommit(t *testing.T) {
	for kind, plain := range map[string]bool{"exchanged": false, "renamed": true} {
		t.Run(kind, func(t *testing.T) {
			d, s, w := onDisk(t)
			s.noExchange = plain
			mustEnqueue(t, s, "mail", small("a"))
			space := simSpace(t, d)
			_, info, err := createIn(space, "foreign")
			mustDo(t, err)
			w.Arm(hookAt(fsguard.OpSyncDir, objectsDir, func() { mustDo(t, space.Rename("foreign", stateFile)) }))
			_, err = s.Enqueue(t.Context(), "mail", small("b"))
			refusal(t, "enqueue", err, ErrReplaced, stateFile)
			if is, err := space.Lstat(stateFile); err != nil || is.Identity != info.Identity {
				t.Errorf("what stands there is another file: %+v, %v", is, err)
			}
		})
	}
}

// Nor is one made of a spare that somebody puts there meanwhile.
func TestSpareReplacedInsideACommit(t *testing.T) {
	d, s, w := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	space := simSpace(t, d)
	_, info, err := createIn(space, "foreign")
	mustDo(t, err)
	spare := spareName(s.seen.revision + 1)
	w.Arm(hookAt(fsguard.OpSyncDir, objectsDir, func() { mustDo(t, space.Rename("foreign", spare)) }))
	_, err = s.Enqueue(t.Context(), "mail", small("b"))
	refusal(t, "enqueue", err, ErrReplaced, spare)
	if is, err := space.Lstat(spare); err != nil || is.Identity != info.Identity {
		t.Errorf("what stands there is another file: %+v, %v", is, err)
	}
	w.Arm(crashtest.Plan{})
	mustEnqueue(t, s, "mail", small("b"))
	mustStand(t, d, 2)
}

func createIn(in fsguard.Dir, name string) (fsguard.File, fsguard.Info, error) {
	f, err := in.Create(name)
	if err != nil {
		return nil, fsguard.Info{}, err
	}
	info, err := f.Info()
	return f, info, err
}

// An error of the commit point that left the old state in its place is no uncertainty, and
// leaves nothing behind.
func TestRenameThatDidNotHappen(t *testing.T) {
	for name, match := range map[string]func(fsguard.Op, string) bool{
		"commit point": isCommitPoint,
		"sync":         isStateSync,
	} {
		for kind, plain := range map[string]bool{"exchanged": false, "renamed": true} {
			t.Run(name+", "+kind, func(t *testing.T) {
				_, s, w := onDisk(t)
				s.noExchange = plain
				w.Arm(crashtest.FailMatching(match, syscall.EIO, 1))
				_, err := s.Enqueue(t.Context(), "mail", small("a"))
				if !errors.Is(err, syscall.EIO) || errors.Is(err, queue.ErrUncertain) {
					t.Errorf("enqueue: %v, want EIO and no uncertainty", err)
				}
				st, err := s.Status(t.Context(), queue.StatusOptions{Orphans: true})
				if err != nil || !st.Settled || st.Orphans != 0 {
					t.Errorf("status %+v, %v; want it settled, without orphans", st, err)
				}
				report, err := s.Verify(t.Context(), VerifyOptions{})
				if err != nil || !report.OK || report.Temps != 0 {
					t.Errorf("verify %+v, %v", report, err)
				}
			})
		}
	}
}

// What an uncertain commit has written stays: it may be the state that stands.
func TestUncertainCommitKeepsItsObjects(t *testing.T) {
	_, s, w := onDisk(t)
	w.Arm(crashtest.FailMatching(lastSync(), syscall.EIO, 1))
	if _, err := s.Enqueue(t.Context(), "mail", small("a")); !errors.Is(err, queue.ErrUncertain) {
		t.Fatal(err)
	}
	w.Arm(crashtest.Plan{})
	mustEnqueue(t, s, "mail", small("b"))
	report, err := s.Verify(t.Context(), VerifyOptions{})
	if err != nil || !report.OK || report.Messages != 2 {
		t.Errorf("verify %+v, %v; want two messages, whole", report, err)
	}
}

// A larger reserve is durable when it takes the place of the old one.
func TestReserveIsSynced(t *testing.T) {
	s, w := counted(t)
	s.opts.block = -1 // a state that outgrows its reserve
	w.Arm(crashtest.Plan{})
	if _, err := s.EnqueueBatch(t.Context(), "mail", smalls(2000)); err != nil {
		t.Fatal(err)
	}
	groups := w.SyncGroups()
	for _, name := range slices.Concat(groups[:2]...) { // spares may be lengthened first
		if strings.Contains(name, reserveTempPrefix) {
			return
		}
	}
	t.Errorf("no sync of the reserve before the rename: %v", groups)
}

// objects/ is opened anew when its sync failed and the commit is tried again without
// the calls that took room. (The wrapper tells of a descriptor that is synced again.)
func TestFailedSyncOfObjectsTriedAgain(t *testing.T) {
	d, s, w := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	held := mustClaim(t, s, "mail", queue.ClaimOptions{})
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		return op == fsguard.OpSyncDir && path == filepath.Join(namespaceDir, objectsDir)
	}, syscall.ENOSPC, 1))
	errs := together(t, d, s,
		func() error { _, err := s.Enqueue(t.Context(), "mail", small("b")); return err },
		func() error { return s.ReplacePayload(t.Context(), held[0].Receipt, []byte(`"other"`)) },
	)
	if !errors.Is(errs[0], queue.ErrFull) || errs[1] != nil {
		t.Errorf("enqueue %v, replace %v; want the first refused", errs[0], errs[1])
	}
}

// Between two calls no state is held open: a replaced one would keep its room.
func TestNoStateIsHeldOpen(t *testing.T) {
	for plain, pinned := range map[bool]int{
		true:  5,  // root, namespace, objects/, format.json, the lock
		false: 10, // and the state and the four spares, which nobody frees
	} {
		t.Run(fmt.Sprint("plain ", plain), func(t *testing.T) { stateHeldOpen(t, plain, pinned) })
	}
}

func stateHeldOpen(t *testing.T, plain bool, pinned int) {
	d := crashtest.NewDisk()
	p := d.Process()
	d.MkdirAll("/data")
	o := crashOptions(p)
	o.plain = plain
	s, err := Create(t.Context(), crashDir, o)
	mustDo(t, err)
	defer s.Close()
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		mustEnqueue(t, s, "mail", small(id))
		if _, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil {
			t.Fatal(err)
		}
		waitIdle(s)
		if n := p.Open(); n > pinned {
			t.Errorf("after %s: %d descriptors are open, want %d", id, n, pinned)
		}
	}
	if n := p.Open(); n != pinned {
		t.Errorf("%d descriptors are open, want %d", n, pinned)
	}
}

// waitIdle returns when no run of the pipeline is alive.
func waitIdle(s *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.running {
		s.idle.Wait()
	}
}

// A second name that a pinned file gets is noticed by the next call. (It makes hard
// links, which some sandboxes kill for: kept apart by its name.)
func TestLinkedWhileOpen_HardLink(t *testing.T) {
	for _, name := range []string{stateFile, formatFile, lockFile} {
		t.Run(name, func(t *testing.T) {
			s, dir := newTestStore(t, nil)
			mustEnqueue(t, s, "mail", small("a"))
			path := filepath.Join(dir, namespaceDir, name)
			mustDo(t, os.Link(path, dir+"-link"))
			_, err := s.Enqueue(t.Context(), "mail", small("b"))
			refusal(t, "enqueue", err, ErrUnsafe, name)
			mustDo(t, os.Remove(dir+"-link"))
			mustEnqueue(t, s, "mail", small("b"))
		})
	}
}

// What a dead writer left is removed by Recover, and told.
func TestRecoverRemovesTemps(t *testing.T) {
	d, s, _ := onDisk(t)
	space := simSpace(t, d)
	temp := stateTemp(token{9})
	d.WriteRaw(crashDir+"/"+namespaceDir+"/"+temp, []byte("half"))
	d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
	recovery, err := s.Recover(t.Context())
	if err != nil || recovery.Owner == nil || recovery.TempsRemoved != 1 {
		t.Errorf("recovery %+v, %v; want one temp removed", recovery, err)
	}
	if _, err := space.Lstat(temp); err == nil {
		t.Errorf("%s still stands", temp)
	}
}
