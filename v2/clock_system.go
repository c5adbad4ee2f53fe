//go:build unix

package holdfast

import (
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/bootclock"
)

// lockUnsupported are the answers of a filesystem that has no flock.
var lockUnsupported = []error{unix.ENOSYS, unix.ENOTSUP, unix.EOPNOTSUPP, unix.EINVAL, unix.ENOLCK}

// syncUnsupported are the answers of a filesystem that cannot sync a directory.
var syncUnsupported = []error{unix.ENOSYS, unix.ENOTSUP, unix.EOPNOTSUPP, unix.EINVAL}

// systemClock reads the machine's clocks.
type systemClock struct{}

func (systemClock) Now() instant {
	now := instant{Wall: time.Now()}
	if id := bootclock.ID(); id != "" {
		if boot, ok := bootclock.Now(); ok {
			now.BootID, now.Boot = id, boot
		}
	}
	return now
}
