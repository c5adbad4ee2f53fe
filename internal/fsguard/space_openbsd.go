//go:build openbsd

package fsguard

import "golang.org/x/sys/unix"

func fstatfs(fd int) (Space, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return Space{}, err
	}
	space := typeSpace(st.F_fstypename[:], uint64(st.F_flags))
	space.Free = freeBytes(available(st.F_bavail), uint64(st.F_bsize))
	return space, nil
}
