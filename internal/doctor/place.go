//go:build unix

package doctor

import (
	"fmt"
	"slices"
)

// placeTests look at the directory and what it is on. They change nothing.
var placeTests = []test{
	{Check: Check{
		Name: "filesystem", Needed: true,
		Tried: "ask its type (statfs)",
		For:   "locks and syncs mean what they say only on some",
	}, run: (*exam).filesystem},
	{Check: Check{
		Name: "mount_options", Needed: false,
		Tried: "read them from /proc/self/mountinfo",
		For:   "a sync must reach the device, through its cache",
	}, run: (*exam).mountOptions},
	{Check: Check{
		Name: "free_space", Needed: true,
		Tried: "ask for it (statfs)",
		For:   "enqueue stops below the floor",
	}, run: (*exam).freeSpace},
	{Check: Check{
		Name: "owner", Needed: true,
		Tried: "ask whose the directory is, and who may write it",
		For:   "nobody else may put files into a store",
	}, run: (*exam).owner},
}

// kinds are the filesystems that there is something to say about.
var kinds = []struct {
	types  []string
	weight Weight
	seen   string
}{
	{[]string{"tmpfs", "ramfs"}, Warning, "it is in memory: nothing in it survives a reboot"},
	{[]string{"fuse", "sdcardfs"}, Warning, "a program or a layer stands behind it, and a sync is what that makes of it; in Termux, stay below $HOME"},
	{[]string{"vfat", "exfat"}, Warning, "it has no journal: after a loss of power a file that was being replaced may be gone"},
}

func (e *exam) filesystem() finding {
	if e.spaceErr != nil {
		return refused(e.spaceErr)
	}
	if e.space.Network {
		return told(e.space.Type + " is a network filesystem: a store refuses it").weighing(Unfit)
	}
	for _, k := range kinds {
		if slices.Contains(k.types, e.space.Type) {
			return told(e.space.Type + ": " + k.seen).weighing(k.weight)
		}
	}
	return told(e.space.Type)
}

func (e *exam) freeSpace() finding {
	switch {
	case e.spaceErr != nil:
		return notTried("the filesystem does not tell")
	case e.space.Free < e.Floor:
		return told(fmt.Sprintf("%s are free, and the floor is %s: free some", bytesText(e.space.Free), bytesText(e.Floor))).weighing(Unfit)
	}
	return told(fmt.Sprintf("%s are free, the floor is %s", bytesText(e.space.Free), bytesText(e.Floor)))
}

// owner asks what the store asks of its root. Of a parent only that a store's directory
// can be made in it matters, which the scratch directory shows.
func (e *exam) owner() finding {
	if !e.report.Exists {
		return told("a store's directory would be made in it, and be yours alone")
	}
	info, err := e.root.Info()
	if err != nil {
		return refused(err)
	}
	seen, weight := "yours, and nobody else writes it", Fit
	switch perm := info.Mode.Perm(); {
	case info.UID != e.UID:
		seen, weight = fmt.Sprintf("it belongs to user %d, and you are %d", info.UID, e.UID), Unfit
	case perm&0o022 != 0:
		seen, weight = fmt.Sprintf("its mode is %04o: others may write it", perm), Unfit
	}
	if weight == Unfit && e.AllowUnsafeRoot {
		seen, weight = seen+"; accepted, as was asked", Warning
	}
	return told(seen).weighing(weight)
}
