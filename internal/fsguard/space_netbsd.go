//go:build netbsd

package fsguard

import "golang.org/x/sys/unix"

// fstatfs is fstatvfs here; its counts are in fragments (statvfs(2)).
func fstatfs(fd int) (Space, error) {
	var st unix.Statvfs_t
	if err := retry(func() error { return unix.Fstatvfs(fd, &st) }); err != nil {
		return Space{}, err
	}
	space := typeSpace(st.Fstypename[:], uint64(st.Flag))
	space.Free = freeBytes(uint64(st.Bavail), uint64(st.Frsize))
	return space, nil
}
