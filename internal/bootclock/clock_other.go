//go:build !linux

package bootclock

import "time"

// Now is unknown here.
func Now() (time.Duration, bool) { return 0, false }
