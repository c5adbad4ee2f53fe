//go:build unix

package holdfast

import (
	"io"
	"time"
)

// randReader is where tokens come from.
type randReader = io.Reader

// An instant is one reading of the clocks. Boot is the time since boot, suspend
// included; BootID is empty when either cannot be read.
type instant struct {
	Wall   time.Time
	BootID string
	Boot   time.Duration
}

// millis is the wall clock as the store writes it: a time before 1970 counts as 1970.
func (i instant) millis() int64 { return max(0, i.Wall.UnixMilli()) }

// A clock tells the time. The store reads it once per commit, under the lock; calls that
// wait read it too, at any time.
type clock interface{ Now() instant }
