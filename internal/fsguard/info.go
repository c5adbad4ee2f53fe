//go:build unix

package fsguard

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// infoOf takes an Info from what the kernel filled in. The fields have one name
// on every system but many widths, hence the conversions. A device number may be
// signed (darwin, openbsd): extending its sign keeps different numbers different.
func infoOf(st *unix.Stat_t) Info {
	return Info{
		Identity:   Identity{Dev: uint64(st.Dev), Ino: uint64(st.Ino)},
		Mode:       modeOf(uint32(st.Mode)),
		Links:      uint64(st.Nlink),
		Size:       int64(st.Size),
		UID:        uint32(st.Uid),
		CtimeNanos: st.Ctim.Nano(),
		MtimeNanos: st.Mtim.Nano(),
	}
}

// modeOf translates st_mode (inode(7)).
func modeOf(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	default:
		m |= fs.ModeIrregular
	}
	if mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// fstat asks about an open descriptor.
func fstat(fd int) (Info, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return Info{}, err
	}
	return infoOf(&st), nil
}

// fstatat asks about name in the directory dirfd; flags is 0 to follow a symlink
// or AT_SYMLINK_NOFOLLOW.
func fstatat(dirfd int, name string, flags int) (Info, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(dirfd, name, &st, flags) }); err != nil {
		return Info{}, err
	}
	return infoOf(&st), nil
}

// lstatat is fstatat that never follows.
func lstatat(dirfd int, name string) (Info, error) {
	return fstatat(dirfd, name, unix.AT_SYMLINK_NOFOLLOW)
}
