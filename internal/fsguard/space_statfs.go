//go:build darwin || freebsd || dragonfly

package fsguard

import "golang.org/x/sys/unix"

func fstatfs(fd int) (Space, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return Space{}, err
	}
	space := typeSpace(st.Fstypename[:], uint64(st.Flags))
	space.Free = freeBytes(available(int64(st.Bavail)), uint64(st.Bsize))
	return space, nil
}
