//go:build unix

package holdfast

import (
	"testing"

	"example.com/holdfast/internal/crashtest/planted"
)

// The uncaught bugs are those that no test catches, each with the reason and the test
// that comes nearest to it. One that becomes caught belongs to the others.
var uncaughtBugs = []planted.Uncaught{
	uncaught("the state's size not compared", "TestChangedStateIsNoticed$",
		"The first bytes tell every commit of this format; identity, size and ctime notice what no writer does, and two of the three are left.",
		edit("commit.go", "info.Size != c.info.Size || ", "")),
	uncaught("the state's ctime not compared", "TestChangedStateIsNoticed$",
		"As above: identity and size are left, and the first bytes.",
		edit("commit.go", " || info.CtimeNanos != c.info.CtimeNanos", "")),
	uncaught("not re-admitted when the lock is had, before the rename only", "TestReplacedInsideACommit$",
		"A commit looks again right before its rename. A call that commits nothing rests on the first look alone: see \"a store that is never re-admitted\".",
		edit("commit.go", "	if err := p.readmit(s.fs, s.dir); err != nil {\n		return nil, err\n	}\n	if s.cached != nil && s.cached.beside {", "	if s.cached != nil && s.cached.beside {")),
	uncaught("a state of any size committed", "TestFullState$",
		"Every call counts its own room before: nothing that this program does comes to this bound.",
		edit("commit.go", "if size > most && size > s.cached.size {", "if false && size > most {")),
	uncaught("no room kept for a recovery", "TestRecoverOnAFullDisk$",
		"It is kept within the bound above, which nothing comes to.",
		edit("commit.go", "		most -= recoveryRoom", "		most -= 0")),
	uncaught("an uncertain state still held in memory", "TestTrial15UncertainCommit$",
		"It goes all the same with the descriptors, which are spent.",
		edit("commit.go", "	t.pins.spent = true\n	s.forget()\n	s.wake.all()", "	t.pins.spent = true\n	s.wake.all()")),
	uncaught("the lock's links not looked at when it is had", "TestLinkedWhileOpen_HardLink$",
		"They are looked at again when the store is re-admitted, under that lock.",
		edit("lock.go", "	if err := admitPlain(lockFile, info); err != nil {\n		return err\n	}\n", "")),
	uncaught("objects/ not compared when it is opened anew", "TestFailedSyncOfObjectsTriedAgain$",
		"It is compared by its path right before the rename.",
		edit("pins.go", "	if err := same(objectsDir, info, err, p.objectsID); err != nil {\n		return errors.Join(err, d.Close())\n	}\n	_ = p.objects", "	if _ = info; err != nil {\n		return errors.Join(err, d.Close())\n	}\n	_ = p.objects")),
	uncaught("directory sync not tried before anything is made", "TestT15NoDirectorySync$",
		"The sync of the root's own name meets it first. It matters only where the directory above cannot be opened.",
		edit("create.go", "		if err := root.Sync(); err != nil {\n			return syncError(err)\n		}\n		return root.Mkdir(namespaceDir)", "		return root.Mkdir(namespaceDir)")),
	uncaught("a recovery through the descriptors at hand", "TestUncertainRecovery$",
		"Those of an uncertain commit were given up, so the ones at hand are new as well; the rule is kept where it is read.",
		edit("recover.go", "	parent, err := t.pins.space.OpenDir(\".\")\n	if err != nil {\n		return nil, err\n	}\n	defer parent.Close()\n", "	parent := t.pins.space\n")),
	uncaught("claims while there is no room to settle", "TestClaimsWithoutAReserveCanBeSettled$",
		"A claim whose own state does not fit is refused by the disk. The check stops claims earlier, and that test's disk does not come between the two.",
		edit("reserve.go", "		if err == nil && space.Free < uint64(2*size+recoveryRoom) {", "		if err == nil && false {")),
	uncaught("a reserve that is no plain file", "TestFullDisk$",
		"The next larger one takes its name, which follows nothing and writes into nothing.",
		edit("reserve.go", "		err = admitPlain(reserveFile, info)\n", "		err = nil\n")),
	uncaught("a reserve with a hole in it", "TestFullDisk$",
		"The simulated disk knows no holes. That a reserve takes its room is proven of the real one, by TestAllocateReserves of fsguard.",
		edit("reserve.go", "	if err := file.Allocate(want); err != nil {", "	if _, err := file.WriteAt([]byte{0}, want-1); err != nil {")),
	uncaught("changes under the shared lock", "TestGroupCommit$",
		"Only a call that comes after the question how to lock, and before the lock is had for a look, meets it: no test makes it come there, and TestLinearizable does in some runs only.",
		edit("pipeline.go", "		if !all && mode != fsguard.Exclusive && c.writes {\n			rest = append(rest, c)\n			continue\n		}\n", "")),
	uncaught("a look without the lock at another store", "TestLookAfter$",
		"Root, namespace and lock are compared first: it would have to be a state put there alone, and what is shown is called unsettled.",
		edit("glance.go", "	if c.st.store != s.id {", "	if c.st.store != s.id && false {")),
	uncaught("a look without the lock at another directory", "TestLookAfter$",
		"Its store id is compared too: only a copy of the same store is let through, and what is shown is called unsettled.",
		edit("glance.go", "	p, err := s.repin(true)\n", "	p, err := pin(s.fs, s.dir, &s.opts, true)\n")),
}

func uncaught(name, nearest, why string, edits ...planted.Edit) planted.Uncaught {
	return planted.Uncaught{Bug: bug(name, nearest, edits...), Why: why}
}

func TestUncaughtBugs(t *testing.T) { bed.Miss(t, uncaughtBugs) }
