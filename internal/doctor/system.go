//go:build unix

package doctor

import (
	"os"
	"path/filepath"
	"time"

	"example.com/holdfast/internal/bootclock"
	"example.com/holdfast/internal/fsguard"
)

// System asks the operating system. Trial, Floor and what may be left out are the
// caller's to set.
func System() Machine {
	return Machine{
		FS: fsguard.OS(), UID: uint32(os.Geteuid()), After: time.After, Boot: SystemBoot,
		Resolve: filepath.EvalSymlinks,
		Mounts:  func() ([]byte, error) { return os.ReadFile("/proc/self/mountinfo") },
	}
}

// SystemBoot reads what v2 reads for its leases.
func SystemBoot() Boot {
	_, clock := bootclock.Now()
	return Boot{ID: bootclock.ID(), Clock: clock}
}
