package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// await waits for a child. When the child has ended it calls ended, and only then gives
// its number back to the system.
func await(pid int, ended func()) (syscall.WaitStatus, error) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	ended()
	return (&process{pid: pid}).await(0)
}
