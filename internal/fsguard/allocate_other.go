//go:build unix && !linux

package fsguard

import "golang.org/x/sys/unix"

// fallocate has no counterpart that every one of these systems offers.
func fallocate(fd int, size int64) error { return unix.ENOSYS }
