//go:build linux

package holdfast

import (
	"testing"

	"example.com/holdfast/internal/crashtest/mount"
	"example.com/holdfast/internal/crashtest/planted"
)

// powerCutBugs are syncs left out that a real filesystem does not forgive. It does forgive
// others: that of objects/ or of an object's directory alone, for each of the four kinds makes
// the names of a new file durable with the file. Those are found by TestCrash.
var powerCutBugs = []planted.Bug{
	{Name: "power cut: payload not synced", Test: "TestPowerCut$/^ext4-writeback$/^enqueue$", Edits: []planted.Edit{
		{File: "writing.go", Old: "w.targets = append(w.targets, u.file, u.dir)", New: "w.targets = append(w.targets, u.dir)"}}},
	{Name: "power cut: spare not synced", Test: "TestPowerCut$/^xfs$/^ack$", Edits: []planted.Edit{
		{File: "exchange.go", Old: "	targets := []fsguard.Syncer{fsguard.DataOf(w.file.file)}\n", New: "	targets := []fsguard.Syncer{}\n"}}},
	{Name: "power cut: the first state's name not synced", Test: "TestPowerCut$/^btrfs$/^create$", Edits: []planted.Edit{
		{File: "create.go", Old: "	if err := space.WriteFile(stateFile, text); err != nil {\n		return err\n	}\n	return space.Sync()", New: "	if err := space.WriteFile(stateFile, text); err != nil {\n		return err\n	}\n	return nil"}}},
}

func init() { bed.Add(powerCutBugs...) }

// The power cut can fail: each of these bugs is found by it.
func TestPlantedPowerCut(t *testing.T) {
	mount.Need(t)
	bed.Catch(t, powerCutBugs)
}
