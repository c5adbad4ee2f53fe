//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package fsguard

import (
	"strings"

	"golang.org/x/sys/unix"
)

// typeSpace is the type by name and whether it is a network's: these systems mark
// what is stored locally with MNT_LOCAL (statfs(2), on netbsd statvfs(2)). A FUSE
// mount is taken for local, as on Linux, whatever its server says.
func typeSpace(name []byte, flags uint64) Space {
	kind := unix.ByteSliceToString(name)
	fuse := strings.Contains(kind, "fuse")
	return Space{Type: kind, Network: !fuse && flags&unix.MNT_LOCAL == 0}
}

// available is a block count that may be negative when only the superuser's
// reserve is left.
func available(blocks int64) uint64 { return uint64(max(0, blocks)) }
