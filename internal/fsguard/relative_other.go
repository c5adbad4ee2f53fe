//go:build unix && !linux

package fsguard

import "golang.org/x/sys/unix"

// openProbe opens for reading.
const openProbe = unix.O_RDONLY
