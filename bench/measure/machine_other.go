//go:build unix && !linux

package measure

import (
	"errors"
	"fmt"
	"runtime"
)

func deviceNumber(string) (major, minor uint32, err error) {
	return 0, 0, errors.ErrUnsupported
}

// Machine tells the class of this machine, without its name and without a path.
func Machine(string, *Device) string {
	return fmt.Sprintf("%d cores (%s), %s, %s", runtime.NumCPU(), runtime.GOARCH, runtime.GOOS, runtime.Version())
}

// Filesystem is not told apart here.
func Filesystem(string) string { return "unknown filesystem" }

// Memory is a directory on tmpfs. Empty: there is none.
func Memory() string { return "" }
