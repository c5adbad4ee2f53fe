package holdfast

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootClock is the time since boot, suspend included (clock_gettime(2),
// CLOCK_BOOTTIME).
func bootClock() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
