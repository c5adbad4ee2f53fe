package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

func deviceNumber(dir string) (major, minor uint32, err error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, 0, err
	}
	return unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), nil
}

// Machine tells the class of this machine, without its name and without a path.
func Machine(dir string, d *Device) string {
	parts := []string{fmt.Sprintf("%d cores (%s)", runtime.NumCPU(), runtime.GOARCH)}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		// What stands behind the first dash is the builder's name for it.
		release, _, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), "-")
		parts = append(parts, "Linux "+release)
	}
	parts = append(parts, Filesystem(dir))
	switch {
	case d == nil:
		parts = append(parts, "no block device")
	case strings.HasPrefix(filepath.Base(filepath.Dir(d.stat)), "vd"):
		parts = append(parts, "a virtual disk")
	case d.Kind != "":
		parts = append(parts, "a disk that is "+d.Kind)
	}
	return strings.Join(append(parts, runtime.Version()), ", ")
}

// Filesystem names the type of the filesystem that dir is on.
func Filesystem(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "unknown filesystem"
	}
	magic := int64(st.Type)
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		// The three of the family share a number.
		return "ext4 (or ext3, ext2)"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return fmt.Sprintf("filesystem %#x", magic)
}

// Memory is a directory on tmpfs, where a sync costs nothing. Empty: there is none.
func Memory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err == nil && info.IsDir() && Filesystem(dir) == "tmpfs" {
		return dir
	}
	return ""
}
