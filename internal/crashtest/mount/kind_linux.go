package mount

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
	"example.com/holdfast/internal/crashtest/testrun"
)

// A Kind is a kind of filesystem: how one is made, and how it is mounted so that it writes
// as little as it can without being asked.
type Kind struct {
	Name    string   // for a subtest
	Type    string   // as mount(2) and /proc/filesystems call it
	Size    int64    // of the image
	Make    []string // the command that makes it, the image's name to be added; empty: it needs no device
	Options string

	// Again are options more for a second one with the same identity: a copy.
	Again string

	// Needs is a file that is there where the kernel has what this kind is about.
	Needs string

	// Optional says that a run that leaves nothing out may leave this out: few kernels have it.
	Optional bool

	// Folding makes directories directly in it that tell no case.
	Folding bool
}

const mib = 1 << 20

// ext4 writes no inode tables of its own accord, and keeps no blocks back for root.
var makeExt4 = []string{"mkfs.ext4", "-q", "-F", "-m0", "-E", "lazy_itable_init=0,packed_meta_blocks=1"}

// The kinds that there are. The intervals are so long that no test reaches their end.
var (
	Ext4      = Kind{Name: "ext4", Type: "ext4", Size: 64 * mib, Make: makeExt4, Options: "data=ordered,commit=300"}
	Writeback = Kind{Name: "ext4-writeback", Type: "ext4", Size: 64 * mib, Make: makeExt4, Options: "data=writeback,commit=300"}
	XFS       = Kind{Name: "xfs", Type: "xfs", Size: 300 * mib, Make: []string{"mkfs.xfs", "-q", "-f"}, Again: "nouuid"}
	Btrfs     = Kind{Name: "btrfs", Type: "btrfs", Size: 128 * mib, Make: []string{"mkfs.btrfs", "-q", "-f"}, Options: "commit=300"}
	F2FS      = Kind{Name: "f2fs", Type: "f2fs", Size: 64 * mib, Make: []string{"mkfs.f2fs", "-q", "-f"}, Optional: true}
	Tmpfs     = Kind{Name: "tmpfs", Type: "tmpfs", Options: "size=64m,mode=755"}
	Folding   = Kind{Name: "ext4-casefold", Type: "ext4", Size: 64 * mib, Make: slices.Concat(makeExt4, []string{"-O", "casefold"}),
		Needs: "/sys/fs/ext4/features/casefold", Optional: true, Folding: true}

	// Overlay has its upper directory on an ext4.
	Overlay = Kind{Name: "overlay", Type: "overlay"}
)

// Sized gives the same kind in another size.
func (k Kind) Sized(size int64) Kind {
	k.Size = size
	return k
}

// Need leaves the test out where this process may not mount.
func Need(t testing.TB) {
	t.Helper()
	sandbox.StartsProcess(t)
	if os.Geteuid() != 0 {
		testrun.Skip(t, "mounts filesystems: needs root and loop devices")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		testrun.Skip(t, "no loop devices here: "+err.Error())
	}
}

// NeedKind leaves the test out where this kernel has no such filesystem, which is a failure
// where nothing may be left out, unless the kind is optional.
func NeedKind(t testing.TB, k Kind) {
	t.Helper()
	if missing := lacks(t, k); missing != "" {
		skip := testrun.Skip
		if k.Optional {
			skip = func(t testing.TB, reason string) { t.Skip(reason) }
		}
		skip(t, missing)
	}
	if len(k.Make) > 0 {
		NeedTool(t, k.Make[0])
	}
}

// lacks says what this kernel lacks of a kind, once it was asked to load it.
func lacks(t testing.TB, k Kind) string {
	t.Helper()
	if !known(t, k.Type) {
		if modprobe, err := exec.LookPath("modprobe"); err == nil {
			_ = exec.CommandContext(t.Context(), modprobe, k.Type).Run() // the kernel tells what came of it
		}
		if !known(t, k.Type) {
			return "this kernel has no " + k.Type
		}
	}
	if k.Needs != "" {
		if _, err := os.Stat(k.Needs); err != nil {
			return fmt.Sprintf("this kernel's %s cannot do it: %v", k.Type, err)
		}
	}
	return ""
}

// known reports whether the kernel has a type of filesystem now.
func known(t testing.TB, kind string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(lastWords(text), kind)
}

// NeedTool leaves the test out where a command is missing.
func NeedTool(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		testrun.Skip(t, "no "+name+" here")
	}
}

func lastWords(text []byte) (words []string) {
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) > 0 {
			words = append(words, string(fields[len(fields)-1]))
		}
	}
	return words
}
