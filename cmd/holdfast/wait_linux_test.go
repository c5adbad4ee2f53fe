package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cliArmed returns when the process watches something for changes: what it waits for was
// not there when it looked, or it would have ended.
func cliArmed(t *testing.T, pid int) {
	t.Helper()
	cliWithin(t, "the process waits", func() bool {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
		for _, fd := range fds {
			if text, err := os.ReadFile(fd); err == nil && strings.Contains(string(text), "inotify wd:") {
				return true
			}
		}
		return false
	})
}
