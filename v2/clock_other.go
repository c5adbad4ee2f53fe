//go:build unix && !linux

package holdfast

import "time"

// bootClock is unknown here: leases go by the wall clock.
func bootClock() (time.Duration, bool) { return 0, false }
