// Package bootclock tells which boot of the kernel this is and how long ago it was. Where one
// of the two cannot be had, nobody is to go by the other alone.
package bootclock

import (
	"os"
	"strings"
	"sync"
)

// ID names this boot of the kernel; empty where it cannot be read, as in some Android
// sandboxes. It cannot change while the process lives.
var ID = sync.OnceValue(func() string {
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
