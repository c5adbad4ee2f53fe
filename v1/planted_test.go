//go:build unix

package holdfast

import (
	"testing"

	"example.com/holdfast/internal/crashtest/planted"
)

// The planted bugs are changes of the protocol that a named test must catch. Where the
// simulated disk, which moves a file between directories at once, cannot tell that a
// sync is missing, the count of the syncs does.
var plantedBugs = []planted.Bug{
	{Name: "enqueue: content not synced", Test: "TestCrash$/^enqueue$", Edits: []planted.Edit{
		{File: "enqueue.go", Old: "		err = file.Sync()\n", New: ""}}},
	{Name: "enqueue: renamed before the sync of its content", Test: "TestCrash$/^enqueue-over$", Edits: []planted.Edit{
		{File: "enqueue.go", Old: "		err = file.Sync()\n", New: ""},
		{File: "enqueue.go", Old: "	if err := syncDir(q, s.queue.path); err != nil {\n		return id, err", New: "	if err := errors.Join(temp.Sync(), syncDir(q, s.queue.path)); err != nil {\n		return id, err"}}},
	{Name: "enqueue: directory not synced", Test: "TestCrash$/^enqueue$", Edits: []planted.Edit{
		{File: "enqueue.go", Old: "	if err := syncDir(q, s.queue.path); err != nil {\n		return id, err\n	}\n", New: ""}}},
	{Name: "enqueue: an error of the rename taken for nothing done", Test: "TestFaultEnqueueAfterItsRename", Edits: []planted.Edit{
		{File: "enqueue.go", Old: "lerr == nil && errors.Is(err, fs.ErrNotExist):", New: "!there && (lerr == nil || errors.Is(err, fs.ErrNotExist)):"}}},
	{Name: "claim: not synced", Test: "TestCrash$/^load$/^rename-no-replace", Edits: []planted.Edit{
		{File: "claim.go", Old: "	if err := t.sync(); err != nil {\n		return false, err\n	}\n	return t.owned()", New: "	return t.owned()"}}},
	{Name: "claim: retired before it is durable", Test: "TestCrash$/^load$/^hard-link", Edits: []planted.Edit{
		{File: "claim.go", Old: "	if err := t.sync(); err != nil {\n		return false, err\n	}\n	return t.owned()", New: "	return t.owned()"},
		{File: "retire.go", Old: "	// Another process may have made the directory and not synced it.\n	if err := t.sync(); err != nil {\n		return err\n	}\n", New: ""}}},
	{Name: "claim: a standing one not synced", Test: "TestSyncBudget$", Edits: []planted.Edit{
		{File: "claim.go", Old: "if claimed && !durable && err == nil {", New: "if claimed && !durable && false {"}}},
	{Name: "retire: record not synced", Test: "TestSyncBudget$", Edits: []planted.Edit{
		{File: "retire.go", Old: "	if err := syncDir(record, retirementsDir+\"/\"+t.pending); err != nil {\n		return err\n	}\n	if err := t.sync(); err != nil {", New: "	if err := t.sync(); err != nil {"}}},
	{Name: "retire: nothing put back", Test: "TestCrash$/^load-newer$/^hard-link", Edits: []planted.Edit{
		{File: "retire.go", Old: "	if taken.Identity != claim.Identity {\n", New: "	if taken.Identity != claim.Identity && false {\n"}}},
	{Name: "retire: put back over what came meanwhile", Test: "TestNewestEntryDuringARestore", Edits: []planted.Edit{
		{File: "retire.go", Old: "err = t.place(record, retiredEntry, t.q, t.pending)", New: "err = record.Move(retiredEntry, t.q, t.pending)"},
		{File: "retire.go", Old: "return t.s.opts.ClaimBy == RenameNoReplace, t.sync()", New: "return true, t.sync()"}}},
	{Name: "retire: put back and not synced", Test: "TestCrash$/^load-newer$/^hard-link", Edits: []planted.Edit{
		{File: "retire.go", Old: "return t.s.opts.ClaimBy == RenameNoReplace, t.sync()", New: "return t.s.opts.ClaimBy == RenameNoReplace, nil"}}},
	{Name: "retire: dropped for one that is not durable", Test: "TestCrash$/^load-newest-unsynced$", Edits: []planted.Edit{
		{File: "retire.go", Old: "could take both.\n			return false, t.sync()", New: "could take both.\n			return false, nil"}}},
	{Name: "retire: stuck at the claim's own pending name", Test: "TestCrash$/^load-newer-unsynced$/^hard-link", Edits: []planted.Edit{
		{File: "retire.go", Old: "case is && there.Identity == claim.Identity && there.Links == 2:", New: "case false:"}}},
	{Name: "retire: told apart by bytes", Test: "TestEqualBytesAreTwoGenerations", Edits: []planted.Edit{
		{File: "retire.go", Old: "	if taken.Identity != claim.Identity {\n", New: "	if taken.Size != claim.Size {\n"}}},
	{Name: "retire: no recovery", Test: "TestCrash$/^record-newer$", Edits: []planted.Edit{
		{File: "retire.go", Old: "func (t *transfer) recover() error {\n", New: "func (t *transfer) recover() error {\n	if t != nil {\n		return nil\n	}\n"}}},
	{Name: "lock: a stale one taken over", Test: "TestCrash$/^load$", Edits: []planted.Edit{
		{File: "lock.go", Old: "	return &LockError{What: ErrLockStale, Dir: s.queue.path, Lock: again}", New: "	return errors.Join(errBusy, dir.Remove(n.lock))"}}},
	{Name: "ack: not synced", Test: "TestCrash$/^ack$", Edits: []planted.Edit{
		{File: "ack.go", Old: "		if err := t.sync(); err != nil {\n			return err\n		}\n	}\n	if marked", New: "	}\n	if marked"},
		{File: "ack.go", Old: "	if err := t.sync(); err != nil {\n		return err\n	}\n	if ended", New: "	if ended"}}},
	{Name: "ack: marker removed before it is durable", Test: "TestSyncBudget$", Edits: []planted.Edit{
		{File: "ack.go", Old: "		if err := t.sync(); err != nil {\n			return err\n		}\n	}\n	if marked", New: "	}\n	if marked"}}},
	{Name: "ack: of whatever is claimed", Test: "TestSwappedClaimIsRefused", Edits: []planted.Edit{
		{File: "ack.go", Old: "	if err == nil && !same {", New: "	if err == nil && !same && false {"}}},
	{Name: "ack: refused when it was done", Test: "TestSettlingIsFinishedBesideANewerEntry", Edits: []planted.Edit{
		{File: "ack.go", Old: "	if ended {\n", New: "	if claimed {\n"}}},
	{Name: "fail: evidence not synced", Test: "TestCrash$/^fail$/^hard-link", Edits: []planted.Edit{
		{File: "fail.go", Old: "func (t *transfer) depart(failed fsguard.Dir, named bool) error {\n	if err := syncDir(failed, t.s.fail.path); err != nil {\n		return err\n	}\n", New: "func (t *transfer) depart(failed fsguard.Dir, named bool) error {\n"}}},
	{Name: "fail: claim removed before the evidence is durable", Test: "TestCrash$/^fail$/^hard-link", Edits: []planted.Edit{
		{File: "fail.go", Old: "func (t *transfer) depart(failed fsguard.Dir, named bool) error {\n	if err := syncDir(failed, t.s.fail.path); err != nil {\n		return err\n	}\n", New: "func (t *transfer) depart(failed fsguard.Dir, named bool) error {\n"},
		{File: "fail.go", Old: "			return err\n		}\n	}\n	return t.sync()\n", New: "			return err\n		}\n	}\n	if err := syncDir(failed, t.s.fail.path); err != nil {\n		return err\n	}\n	return t.sync()\n"}}},
	{Name: "fail: queue not synced", Test: "TestSyncBudget$", Edits: []planted.Edit{
		{File: "fail.go", Old: "			return err\n		}\n	}\n	return t.sync()\n", New: "			return err\n		}\n	}\n	return nil\n"}}},
	{Name: "fail: over other evidence", Test: "TestCrash$/^fail-collision$", Edits: []planted.Edit{
		{File: "fail.go", Old: "		if there {\n			return t.collide(failed, evidence)\n		}\n", New: ""},
		{File: "fail.go", Old: "err := t.place(t.q, t.processing, failed, t.failed())", New: "err := t.q.Move(t.processing, failed, t.failed())"}}},
	{Name: "fail: its own evidence taken for another's", Test: "TestCrash$/^fail$/^hard-link", Edits: []planted.Edit{
		{File: "fail.go", Old: "	case !same:\n", New: "	case same || !same:\n"},
		{File: "claim.go", Old: "	return t.depart(failed, true)\n", New: "	return nil\n"}}},
	{Name: "migrate: not synced", Test: "TestCrash$/^migrate$", Edits: []planted.Edit{
		{File: "migrate.go", Old: "	return temp, t.sync()", New: "	return temp, nil"}}},
	{Name: "migrate: over whatever is claimed", Test: "TestLateMigrationIsRefused", Edits: []planted.Edit{
		{File: "migrate.go", Old: "claim.Identity != pin || claim.Links != 1", New: "claim.Links != 1"}}},
	{Name: "load: descriptor given back at once", Test: "TestHeldClaimKeepsItsInodeNumber", Edits: []planted.Edit{
		{File: "load.go", Old: "	return &Claim{ID: id,", New: "	_ = file.Close()\n	return &Claim{ID: id,"}}},
	{Name: "load: descriptor closed while a settlement waits", Test: "TestPinOutlastsTheWait", Edits: []planted.Edit{
		{File: "load.go", Old: "	c.users++\n", New: ""}}},
	{Name: "lock: given up by a new descriptor", Test: "TestLockIsReleasedWithoutDescriptors", Edits: []planted.Edit{
		{File: "lock.go", Old: "		if text, err = fsguard.ReadAll(l.file, maxRecordBytes); err", New: "		if text, _, err = readLock(l.dir, l.name); err"}}},
	{Name: "a failed sync taken for success", Test: "TestFaultsAreTyped", Edits: []planted.Edit{
		{File: "transfer.go", Old: "	if err := dir.Sync(); err != nil {", New: "	if err := dir.Sync(); err != nil && false {"}}},
	{Name: "directories not synced when they are made", Test: "TestCrashOpenOrCreate$/^open-or-create$", Edits: []planted.Edit{
		{File: "directory.go", Old: "	return syncAbove(fsys, path, info.UID)", New: "	_ = info\n	return nil"}}},
}

func TestPlantedBugsAreCaught(t *testing.T) {
	planted.Catch(t, plantedBugs, "HOLDFAST_REQUIRE_ALL=") // the size of every day is enough
}
