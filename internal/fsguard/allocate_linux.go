//go:build linux

package fsguard

import "golang.org/x/sys/unix"

// fallocate reserves blocks and extends the length, mode 0 (fallocate(2)). Files
// named _linux build for android too.
func fallocate(fd int, size int64) error { return unix.Fallocate(fd, 0, 0, size) }
