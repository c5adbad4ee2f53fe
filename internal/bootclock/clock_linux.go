package bootclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time since boot, suspend included (clock_gettime(2), CLOCK_BOOTTIME).
func Now() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
