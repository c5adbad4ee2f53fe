//go:build linux

package holdfast

import (
	"testing"

	"example.com/holdfast/internal/crashtest/mount"
	"example.com/holdfast/internal/crashtest/planted"
)

// powerCutBugs are syncs left out that a real filesystem does not forgive, and one answered
// nil that a filesystem which has failed did not do. It does forgive
// others: that of objects/ or of an object's directory alone, for each of the four kinds makes
// the names of a new file durable with the file. Those are found by TestCrash.
var powerCutBugs = []planted.Bug{
	{Name: "power cut: parent not synced", Test: "TestPowerCut$/^ext4$/^ack$", Edits: []planted.Edit{
		{File: "commit.go", Old: "if err := parent.Sync(); err != nil {", New: "if err := error(nil); err != nil {"}}},
	{Name: "power cut: payload not synced", Test: "TestPowerCut$/^ext4-writeback$/^enqueue$", Edits: []planted.Edit{
		{File: "writing.go", Old: "w.targets = append(w.targets, u.file, u.dir)", New: "w.targets = append(w.targets, u.dir)"}}},
	{Name: "power cut: spare not synced", Test: "TestPowerCut$/^xfs$/^ack$", Edits: []planted.Edit{
		{File: "spare.go", Old: "w.targets = append(w.targets, fsguard.DataOf(file))", New: ""}}},
	{Name: "power cut: the first state's name not synced", Test: "TestPowerCut$/^btrfs$/^create$", Edits: []planted.Edit{
		{File: "create.go", Old: "	if err := space.WriteFile(stateFile, text); err != nil {\n		return err\n	}\n	return space.Sync()", New: "	if err := space.WriteFile(stateFile, text); err != nil {\n		return err\n	}\n	return nil"}}},
	{Name: "filesystem: no look at a directory after its sync", Test: "TestFilesystemFaults$/^xfs$", Edits: []planted.Edit{
		{File: "../internal/fsguard/descriptor.go", Old: "	if err == nil && op == OpSyncDir {", New: "	if err == nil && op == OpSyncDir && false {"}}},
}

func init() { bed.Add(powerCutBugs...) }

// The power cut can fail: each of these bugs is found by it.
func TestPlantedPowerCut(t *testing.T) {
	mount.Need(t)
	bed.Catch(t, powerCutBugs)
}
