//go:build unix

package holdfast

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A sourceEdit changes one place of the source.
type sourceEdit struct{ file, old, new string }

// A planted bug is a change of the protocol that a named test must catch. Where the
// simulated disk, which moves a file between directories at once, cannot tell that a
// sync is missing, the count of the syncs does.
var plantedBugs = []struct {
	name  string
	test  string // as for go test -run
	edits []sourceEdit
}{
	{"enqueue: content not synced", "TestCrash$/^enqueue$", []sourceEdit{
		{"enqueue.go", "		err = file.Sync()\n", ""}}},
	{"enqueue: renamed before the sync of its content", "TestCrash$/^enqueue-over$", []sourceEdit{
		{"enqueue.go", "		err = file.Sync()\n", ""},
		{"enqueue.go", "	if err := syncDir(q, s.queue.path); err != nil {\n		return id, err", "	if err := errors.Join(temp.Sync(), syncDir(q, s.queue.path)); err != nil {\n		return id, err"}}},
	{"enqueue: directory not synced", "TestCrash$/^enqueue$", []sourceEdit{
		{"enqueue.go", "	if err := syncDir(q, s.queue.path); err != nil {\n		return id, err\n	}\n", ""}}},
	{"enqueue: an error of the rename taken for nothing done", "TestFaultEnqueueAfterItsRename", []sourceEdit{
		{"enqueue.go", "lerr == nil && !there {", "lerr == nil && !there && false {"}}},
	{"claim: not synced", "TestCrash$/^load$/^rename-no-replace", []sourceEdit{
		{"claim.go", "	if err := t.sync(); err != nil {\n		return false, err\n	}\n	return t.owned()", "	return t.owned()"}}},
	{"claim: retired before it is durable", "TestCrash$/^load$/^hard-link", []sourceEdit{
		{"claim.go", "	if err := t.sync(); err != nil {\n		return false, err\n	}\n	return t.owned()", "	return t.owned()"},
		{"retire.go", "	// Another process may have made the directory and not synced it.\n	if err := t.sync(); err != nil {\n		return err\n	}\n", ""}}},
	{"claim: a standing one not synced", "TestSyncBudget$", []sourceEdit{
		{"claim.go", "if claimed && !durable && err == nil {", "if claimed && !durable && false {"}}},
	{"retire: record not synced", "TestSyncBudget$", []sourceEdit{
		{"retire.go", "	if err := syncDir(record, retirementsDir+\"/\"+t.pending); err != nil {\n		return err\n	}\n	if err := t.sync(); err != nil {", "	if err := t.sync(); err != nil {"}}},
	{"retire: nothing put back", "TestCrash$/^load-newer$/^hard-link", []sourceEdit{
		{"retire.go", "	if taken.Identity != claim.Identity {\n", "	if taken.Identity != claim.Identity && false {\n"}}},
	{"retire: put back over what came meanwhile", "TestNewestEntryDuringARestore", []sourceEdit{
		{"retire.go", "err = t.place(record, retiredEntry, t.q, t.pending)", "err = record.Move(retiredEntry, t.q, t.pending)"},
		{"retire.go", "return t.s.opts.ClaimBy == RenameNoReplace, t.sync()", "return true, t.sync()"}}},
	{"retire: put back and not synced", "TestCrash$/^load-newer$/^hard-link", []sourceEdit{
		{"retire.go", "return t.s.opts.ClaimBy == RenameNoReplace, t.sync()", "return t.s.opts.ClaimBy == RenameNoReplace, nil"}}},
	{"retire: dropped for one that is not durable", "TestCrash$/^load-newest-unsynced$", []sourceEdit{
		{"retire.go", "could take both.\n			return false, t.sync()", "could take both.\n			return false, nil"}}},
	{"retire: stuck at the claim's own pending name", "TestCrash$/^load-newer-unsynced$/^hard-link", []sourceEdit{
		{"retire.go", "case is && there.Identity == claim.Identity && there.Links == 2:", "case false:"}}},
	{"retire: told apart by bytes", "TestEqualBytesAreTwoGenerations", []sourceEdit{
		{"retire.go", "	if taken.Identity != claim.Identity {\n", "	if taken.Size != claim.Size {\n"}}},
	{"retire: no recovery", "TestCrash$/^record-newer$", []sourceEdit{
		{"retire.go", "func (t *transfer) recover() error {\n", "func (t *transfer) recover() error {\n	if t != nil {\n		return nil\n	}\n"}}},
	{"lock: a stale one taken over", "TestCrash$/^load$", []sourceEdit{
		{"lock.go", "	return &LockError{What: ErrLockStale, Lock: again}", "	return errors.Join(errBusy, dir.Remove(n.lock))"}}},
	{"ack: not synced", "TestCrash$/^ack$", []sourceEdit{
		{"ack.go", "		if err := t.sync(); err != nil {\n			return err\n		}\n	}\n	if marked", "	}\n	if marked"},
		{"ack.go", "	if err := t.sync(); err != nil {\n		return err\n	}\n	if ended", "	if ended"}}},
	{"ack: marker removed before it is durable", "TestSyncBudget$", []sourceEdit{
		{"ack.go", "		if err := t.sync(); err != nil {\n			return err\n		}\n	}\n	if marked", "	}\n	if marked"}}},
	{"ack: of whatever is claimed", "TestSwappedClaimIsRefused", []sourceEdit{
		{"ack.go", "	if err == nil && !same {", "	if err == nil && !same && false {"}}},
	{"ack: refused when it was done", "TestSettlingIsFinishedBesideANewerEntry", []sourceEdit{
		{"ack.go", "	if ended {\n", "	if claimed {\n"}}},
	{"fail: evidence not synced", "TestCrash$/^fail$/^hard-link", []sourceEdit{
		{"fail.go", "func (t *transfer) depart(failed fsguard.Dir, named bool) error {\n	if err := syncDir(failed, t.s.fail.path); err != nil {\n		return err\n	}\n", "func (t *transfer) depart(failed fsguard.Dir, named bool) error {\n"}}},
	{"fail: claim removed before the evidence is durable", "TestCrash$/^fail$/^hard-link", []sourceEdit{
		{"fail.go", "func (t *transfer) depart(failed fsguard.Dir, named bool) error {\n	if err := syncDir(failed, t.s.fail.path); err != nil {\n		return err\n	}\n", "func (t *transfer) depart(failed fsguard.Dir, named bool) error {\n"},
		{"fail.go", "			return err\n		}\n	}\n	return t.sync()\n", "			return err\n		}\n	}\n	if err := syncDir(failed, t.s.fail.path); err != nil {\n		return err\n	}\n	return t.sync()\n"}}},
	{"fail: queue not synced", "TestSyncBudget$", []sourceEdit{
		{"fail.go", "			return err\n		}\n	}\n	return t.sync()\n", "			return err\n		}\n	}\n	return nil\n"}}},
	{"fail: over other evidence", "TestCrash$/^fail-collision$", []sourceEdit{
		{"fail.go", "		if there {\n			return t.collide(failed, evidence)\n		}\n", ""},
		{"fail.go", "err := t.place(t.q, t.processing, failed, t.failed())", "err := t.q.Move(t.processing, failed, t.failed())"}}},
	{"fail: its own evidence taken for another's", "TestCrash$/^fail$/^hard-link", []sourceEdit{
		{"fail.go", "	case !same:\n", "	case same || !same:\n"},
		{"claim.go", "	return t.depart(failed, true)\n", "	return nil\n"}}},
	{"migrate: not synced", "TestCrash$/^migrate$", []sourceEdit{
		{"migrate.go", "	return temp, t.sync()", "	return temp, nil"}}},
	{"migrate: over whatever is claimed", "TestLateMigrationIsRefused", []sourceEdit{
		{"migrate.go", "claim.Identity != pin || claim.Links != 1", "claim.Links != 1"}}},
	{"load: descriptor given back at once", "TestHeldClaimKeepsItsInodeNumber", []sourceEdit{
		{"load.go", "	return &Claim{ID: id,", "	_ = file.Close()\n	return &Claim{ID: id,"}}},
	{"a failed sync taken for success", "TestFaultsAreTyped", []sourceEdit{
		{"transfer.go", "	if err := dir.Sync(); err != nil {", "	if err := dir.Sync(); err != nil && false {"}}},
	{"directories not synced when they are made", "TestCrashOpenOrCreate$/^open-or-create$", []sourceEdit{
		{"directory.go", "	return syncAbove(fsys, path, info.UID)", "	_ = info\n	return nil"}}},
}

// Each planted bug makes its test fail. The source is changed in an overlay: what is
// tested is the real code but for that one place.
func TestPlantedBugsAreCaught(t *testing.T) {
	if raceDetector() || os.Getenv("HOLDFAST_REQUIRE_ALL") != "1" {
		t.Skip("builds this package many times over: runs under HOLDFAST_REQUIRE_ALL=1, without the race detector")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		skip(t, "no go command here to build the planted bugs with")
	}
	for _, bug := range plantedBugs {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(goTool, "test", "-vet=off", "-overlay", sourceOverlay(t, bug.edits), "-run", "^"+bug.test, ".")
			cmd.Env = append(os.Environ(), "HOLDFAST_REQUIRE_ALL=") // the size of every day is enough
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("%s passes in spite of it", bug.test)
			}
			name, _, _ := strings.Cut(bug.test, "$")
			if !strings.Contains(string(out), "--- FAIL: "+name) {
				t.Fatalf("it did not fail in %s:\n%s", bug.test, out)
			}
		})
	}
}

// sourceOverlay writes the changed files and the list that the go command reads.
func sourceOverlay(t *testing.T, edits []sourceEdit) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	texts := map[string]string{}
	for _, e := range edits {
		text, ok := texts[e.file]
		if !ok {
			b, err := os.ReadFile(e.file)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s: %q stands %d times in it, want once: the planted bug is out of date", e.file, e.old, n)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		changed := filepath.Join(dir, file)
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, file)] = changed
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}
