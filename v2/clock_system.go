//go:build unix

package holdfast

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lockUnsupported are the answers of a filesystem that has no flock.
var lockUnsupported = []error{unix.ENOSYS, unix.ENOTSUP, unix.EOPNOTSUPP, unix.EINVAL, unix.ENOLCK}

// syncUnsupported are the answers of a filesystem that cannot sync a directory.
var syncUnsupported = []error{unix.ENOSYS, unix.ENOTSUP, unix.EOPNOTSUPP, unix.EINVAL}

// systemClock reads the machine's clocks.
type systemClock struct{}

func (systemClock) Now() instant {
	now := instant{Wall: time.Now()}
	if id := bootID(); id != "" {
		if boot, ok := bootClock(); ok {
			now.BootID, now.Boot = id, boot
		}
	}
	return now
}

// bootID names this boot of the kernel; empty where it cannot be read, as in some
// Android sandboxes. It cannot change while the process lives.
var bootID = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	id := strings.TrimSpace(string(text))
	if len(id) != 36 {
		return ""
	}
	return id
})
