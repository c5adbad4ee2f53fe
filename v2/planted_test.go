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

// An edit changes one place of the source.
type edit struct{ file, old, new string }

// A planted bug is a change of the protocol that a named test must catch.
var plantedBugs = []struct {
	name  string
	test  string // as for go test -run
	edits []edit
}{
	{"parent not synced", "TestCrash$/^ack$", []edit{
		{"commit.go", "if err := parent.Sync(); err != nil {", "if err := error(nil); err != nil {"}}},
	{"synced after the rename", "TestCrash$/^ack$", []edit{
		{"commit.go", "if err := s.fs.SyncAll(w.targets...); err != nil {", "if err := error(nil); err != nil {"},
		{"commit.go", "	if err := parent.Sync(); err != nil {", "	s.fs.SyncAll(w.targets...)\n	if err := parent.Sync(); err != nil {"}}},
	{"object edge not synced", "TestCrash$/^enqueue$", []edit{
		{"commit.go", "w.targets = append(w.targets, w.p.objects)", ""}}},
	{"object directory not synced", "TestCrash$/^enqueue$", []edit{
		{"commit.go", "w.targets = append(w.targets, u.file, u.dir)", "w.targets = append(w.targets, u.file)"}}},
	{"payload not synced", "TestCrash$/^enqueue$", []edit{
		{"commit.go", "w.targets = append(w.targets, u.file, u.dir)", "w.targets = append(w.targets, u.dir)"}}},
	{"state temp not synced", "TestCrash$/^claim$", []edit{
		{"commit.go", "w.targets = append(w.targets, w.file.file)", ""}}},
	{"owner record not written", "TestCrashThenLook$/^ack$", []edit{
		{"lock.go", "	_, err := t.pins.lock.WriteAt(encodeRecord(owner), 0)\n	return err\n", "	return nil\n"}}},
	{"recovery syncs instead of publishing anew", "TestFaultLeft$/^ack$", []edit{
		{"recover.go", "err = s.publish(t, fresh, settlingOnly, parent)", "err = parent.Sync()"}}},
	{"record blanked after uncertainty", "TestUncertaintyIsSeenByEveryProcess", []edit{
		{"lock.go", "	t.keep = true\n", ""}}},
	{"refusal answered before its sync", "TestAnswersWaitForTheSyncTheyRestOn", []edit{
		{"serve.go", "			u.Refused = c.err\n", "			continue\n"}}},
	{"failed sync taken for success", "TestAnswersWaitForTheSyncTheyRestOn", []edit{
		{"commit.go", "	if err := parent.Sync(); err != nil {\n		return", "	if err := parent.Sync(); err != nil && false {\n		return"}}},
	{"settled by ID without the attempt", "TestT04LateWorkerIsRefused", []edit{
		{"settle.go", "case c.attempts != r.Attempt:", "case false:"}}},
	{"settled by ID without the generation", "TestT04LateWorkerIsRefused", []edit{
		{"settle.go", "case s.claimed != nil && s.claimed.gen.String() == r.Generation:", "case s.claimed != nil:"},
		{"settle.go", "case c.attempts != r.Attempt:", "case false:"}}},
	{"descriptors of a failed sync used again", "TestFault$/^ack$", []edit{
		{"commit.go", "	t.pins.spent = true\n	s.forget()", "	s.forget()"}}},
	{"root's edge not synced", "TestCrashCreate$/^create$", []edit{
		{"create.go", "	if err := root.Sync(); err != nil {\n		return err\n	}\n	for", "	for"},
		{"store.go", "if err := p.root.Sync(); err != nil {", "if err := error(nil); err != nil {"}}},
	{"state published before the rest is durable", "TestCrashCreate$/^create$", []edit{
		{"create.go", "	if err := space.Sync(); err != nil {\n		return err\n	}\n	if err := space.WriteFile(stateFile", "	if err := space.WriteFile(stateFile"}}},
	{"an update half made", "TestConformance$/^update$", []edit{
		{"update.go", "	err := v.draft.atomically(func() error {", "	err := func(f func() error) error { return f() }(func() error {"}}},
	{"a reaping that is no lapse", "TestTrial09KilledWithClaims", []edit{
		{"reap.go", "	c.lapses++\n	if why", "	if why"}}},
	{"a stopped holder taken for dead", "TestStoppedHolderLives", []edit{
		{"prove.go", "if err != nil || !free {", "if err != nil || !free && false {"}}},
	{"a holder that cannot be asked taken for dead", "TestProverFaults", []edit{
		{"prove.go", "		return false, lockError(err)\n	}\n	v.locks[h]", "		return err != nil, nil\n	}\n	v.locks[h]"}}},
	{"two of one key out together", "TestConformance$/^keys$", []edit{
		{"line.go", "	if n.leased == 0 && len(n.waiting) > 0 {\n		n.offer", "	if len(n.waiting) > 0 {\n		n.offer"}}},
	{"a retry that leaves the receipt good", "TestConformance$/^matrix$", []edit{
		{"state.go", "return c.returned == leased || c.returned == reaped }", "return c.returned == leased || c.returned == reaped || c.returned == retried }"}}},
	{"a look before the watch stands", "TestArmThenLookThenPark", []edit{
		{"wake.go", "	w.arming <- struct{}{}\n	defer func() { <-w.arming }()\n", ""}}},
	{"a commit that wakes nobody", "TestCommitsWake", []edit{
		{"wake.go", "	for p := range w.waiters {\n		p.tell(commit)", "	for p := range map[*parked]bool{} {\n		p.tell(commit)"}}},
	{"a closed import forgotten", "TestCrashImportRunAgain$/^crash$", []edit{
		{"import.go", "	list[i].open = false\n	d.setImports(list)\n", "	d.setImports(slices.Delete(list, i, i+1))\n"}}},
	{"an import that brings again what it has brought", "TestCrashImportRunAgain$/^crash$", []edit{
		{"import.go", "			return old.claimed.mark == t, d.taken(t, name, m, &old.claimed.ref)\n", ""}}},
	{"a claim from an open import", "TestImport$", []edit{
		{"claim.go", "	if err := d.unlessImporting(name); err != nil {\n		return out, err\n	}\n", ""}}},
	{"an open import taken for complete", "TestWaitForAnImport", []edit{
		{"gauges.go", "		_, g.Importing = st.importInto(name)\n", ""}}},
	{"an error read as not there", "TestFaultResumeOfAWholeStore", []edit{
		{"create.go", "	_, err = space.Lstat(stateFile)\n	if errors.Is(err, fs.ErrNotExist) {", "	_, err = space.Lstat(stateFile)\n	if err != nil {"},
		{"create.go", "case formatFile, lockFile, reserveFile:", "case formatFile, lockFile, reserveFile, stateFile:"}}},
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
			cmd := exec.Command(goTool, "test", "-vet=off", "-overlay", overlay(t, bug.edits), "-run", "^"+bug.test, ".")
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

// overlay writes the changed files and the list that the go command reads.
func overlay(t *testing.T, edits []edit) string {
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
