//go:build unix

package holdfast

import (
	"slices"
	"testing"

	"example.com/holdfast/internal/crashtest/planted"
)

// The planted bugs are changes of the protocol that a named test must catch. They stand
// in lists, by what they are about; what no test catches is in planted_uncaught_test.go, and
// what takes a real filesystem in powercut_planted_test.go.
func TestPlantedBugsAreCaught(t *testing.T) { bed.Catch(t, caughtBugs()) }

func caughtBugs() []planted.Bug {
	return slices.Concat(plantedBugs, commitBugs, exchangeBugs, preparedBugs, lockBugs, filesBugs, stateBugs, runBugs, failedRunBugs, guardBugs, collectBugs, backupBugs, interleavePlants)
}

// bed has the bugs of every test that plants some: they share its build.
var bed planted.Bed

func init() {
	bed.Add(caughtBugs()...)
	bed.Add(planted.Bugs(uncaughtBugs)...)
}

func bug(name, test string, edits ...planted.Edit) planted.Bug {
	return planted.Bug{Name: name, Test: test, Edits: edits}
}

func edit(file, old, new string) planted.Edit { return planted.Edit{File: file, Old: old, New: new} }

var plantedBugs = []planted.Bug{
	{Name: "parent not synced", Test: "TestCrashPlain$/^ack,_plain$", Edits: []planted.Edit{
		{File: "commit.go", Old: "if err := parent.Sync(); err != nil {", New: "if err := error(nil); err != nil {"}}},
	{Name: "synced after the rename", Test: "TestCrashPlain$/^ack,_plain$", Edits: []planted.Edit{
		{File: "writing.go", Old: "if err := s.fs.SyncAll(w.targets...); err != nil {", New: "if err := error(nil); err != nil {"},
		{File: "commit.go", Old: "	if err := parent.Sync(); err != nil {", New: "	s.fs.SyncAll(w.targets...)\n	if err := parent.Sync(); err != nil {"}}},
	{Name: "object edge not synced", Test: "TestCrash$/^enqueue$", Edits: []planted.Edit{
		{File: "writing.go", Old: "w.targets = append(w.targets, w.p.objects)", New: ""}}},
	{Name: "object directory not synced", Test: "TestCrash$/^enqueue$", Edits: []planted.Edit{
		{File: "writing.go", Old: "w.targets = append(w.targets, u.file, u.dir)", New: "w.targets = append(w.targets, u.file)"}}},
	{Name: "payload not synced", Test: "TestCrash$/^enqueue$", Edits: []planted.Edit{
		{File: "writing.go", Old: "w.targets = append(w.targets, u.file, u.dir)", New: "w.targets = append(w.targets, u.dir)"}}},
	{Name: "state temp not synced", Test: "TestCrash$/^recover$", Edits: []planted.Edit{
		{File: "writing.go", Old: "w.targets = append(w.targets, w.file.file)", New: ""}}},
	{Name: "owner record not written", Test: "TestCrashThenLook$/^ack$", Edits: []planted.Edit{
		{File: "lock.go", Old: "	_, err := t.pins.lock.WriteAt(encodeRecord(owner), 0)\n	return err\n", New: "	return nil\n"}}},
	{Name: "recovery syncs instead of publishing anew", Test: "TestCrashPlain$/^ack,_plain$", Edits: []planted.Edit{
		{File: "recover.go", Old: "err = s.publish(t, fresh, settlingOnly, parent)", New: "err = parent.Sync()"}}},
	{Name: "record blanked after uncertainty", Test: "TestUncertaintyIsSeenByEveryProcess", Edits: []planted.Edit{
		{File: "lock.go", Old: "	t.keep = true\n", New: ""}}},
	{Name: "refusal answered before its sync", Test: "TestAnswersWaitForTheSyncTheyRestOn", Edits: []planted.Edit{
		{File: "serve.go", Old: "			u.Refused = c.err\n", New: "			continue\n"}}},
	{Name: "failed sync taken for success", Test: "TestAnswersWaitForTheSyncTheyRestOn", Edits: []planted.Edit{
		{File: "exchange.go", Old: "	if w.names {\n		if err := parent.Sync(); err != nil {", New: "	if w.names {\n		if err := parent.Sync(); err != nil && false {"}}},
	{Name: "settled by ID without the attempt", Test: "TestT04LateWorkerIsRefused", Edits: []planted.Edit{
		{File: "settle.go", Old: "case c.attempts != r.Attempt:", New: "case false:"}}},
	{Name: "settled by ID without the generation", Test: "TestT04LateWorkerIsRefused", Edits: []planted.Edit{
		{File: "settle.go", Old: "case s.claimed != nil && s.claimed.gen.String() == r.Generation:", New: "case s.claimed != nil:"},
		{File: "settle.go", Old: "case c.attempts != r.Attempt:", New: "case false:"}}},
	{Name: "descriptors of a failed sync used again", Test: "TestCrashPlain$/^ack,_plain$", Edits: []planted.Edit{
		{File: "commit.go", Old: "	t.pins.spent = true\n	s.forget()", New: "	s.forget()"}}},
	{Name: "root's edge not synced", Test: "TestCrashCreate$/^create$", Edits: []planted.Edit{
		{File: "create.go", Old: "	if err := root.Sync(); err != nil {\n		return err\n	}\n	for", New: "	for"},
		{File: "store.go", Old: "if err := p.root.Sync(); err != nil {", New: "if err := error(nil); err != nil {"}}},
	{Name: "state published before the rest is durable", Test: "TestCrashCreate$/^create$", Edits: []planted.Edit{
		{File: "create.go", Old: "	if err := space.Sync(); err != nil {\n		return err\n	}\n	if err := space.WriteFile(stateFile", New: "	if err := space.WriteFile(stateFile"}}},
	{Name: "an update half made", Test: "TestConformance$/^update$", Edits: []planted.Edit{
		{File: "update.go", Old: "	err := v.draft.atomically(func() error {", New: "	err := func(f func() error) error { return f() }(func() error {"}}},
	{Name: "a reaping that is no lapse", Test: "TestTrial09KilledWithClaims", Edits: []planted.Edit{
		{File: "reap.go", Old: "	c.lapses++\n	if why", New: "	if why"}}},
	{Name: "a stopped holder taken for dead", Test: "TestStoppedHolderLives", Edits: []planted.Edit{
		{File: "prove.go", Old: "if err != nil || !free {", New: "if err != nil || !free && false {"}}},
	{Name: "a holder that cannot be asked taken for dead", Test: "TestProverFaults", Edits: []planted.Edit{
		{File: "prove.go", Old: "		return false, lockError(err)\n	}\n	if v.locks == nil", New: "		return err != nil, nil\n	}\n	if v.locks == nil"}}},
	{Name: "two of one key out together", Test: "TestConformance$/^keys$", Edits: []planted.Edit{
		{File: "line.go", Old: "	if n.leased == 0 && len(n.waiting) > 0 {\n		n.offer", New: "	if len(n.waiting) > 0 {\n		n.offer"}}},
	{Name: "a retry that leaves the receipt good", Test: "TestConformance$/^matrix$", Edits: []planted.Edit{
		{File: "state.go", Old: "return c.returned == leased || c.returned == reaped }", New: "return c.returned == leased || c.returned == reaped || c.returned == retried }"}}},
	{Name: "a look before the watch stands", Test: "TestArmThenLookThenPark", Edits: []planted.Edit{
		{File: "wake.go", Old: "	w.arming <- struct{}{}\n	defer func() { <-w.arming }()\n", New: ""}}},
	{Name: "a commit that wakes nobody", Test: "TestCommitsWake", Edits: []planted.Edit{
		{File: "wake.go", Old: "	for p := range w.waiters {\n		p.tell(commit)", New: "	for p := range map[*parked]bool{} {\n		p.tell(commit)"}}},
	{Name: "a closed import forgotten", Test: "TestCrashImportRunAgain$/^crash$", Edits: []planted.Edit{
		{File: "import.go", Old: "	list[i].open = false\n	d.setImports(list)\n", New: "	d.setImports(slices.Delete(list, i, i+1))\n"}}},
	{Name: "an import that brings again what it has brought", Test: "TestCrashImportRunAgain$/^crash$", Edits: []planted.Edit{
		{File: "import.go", Old: "			return broughtBy(t, name, m, &old.claimed.ref)\n", New: ""}}},
	{Name: "a claim from an open import", Test: "TestImport$", Edits: []planted.Edit{
		{File: "claim.go", Old: "	if err := d.unlessImporting(name); err != nil {\n		return out, err\n	}\n", New: ""}}},
	{Name: "an open import taken for complete", Test: "TestWaitForAnImport", Edits: []planted.Edit{
		{File: "gauges.go", Old: "		_, g.Importing = st.importInto(name)\n", New: ""}}},
	{Name: "an error read as not there", Test: "TestFaultResumeOfAWholeStore", Edits: []planted.Edit{
		{File: "create.go", Old: "	_, err = space.Lstat(stateFile)\n	if errors.Is(err, fs.ErrNotExist) {", New: "	_, err = space.Lstat(stateFile)\n	if err != nil {"},
		{File: "create.go", Old: "case formatFile, lockFile, reserveFile:", New: "case formatFile, lockFile, reserveFile, stateFile:"}}},
}
