//go:build unix && !linux

package main

import "syscall"

// await waits for a child and then calls ended. Between the two the child's number is
// free already: Go's syscall package has no wait here that leaves the child in place.
func await(pid int, ended func()) (syscall.WaitStatus, error) {
	status, err := (&process{pid: pid}).await(0)
	ended()
	return status, err
}
