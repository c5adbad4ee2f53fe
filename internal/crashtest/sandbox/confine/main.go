//go:build linux

// Confine runs a command under a filter: from its first instruction on, for a filter
// outlives the exec. It is built without cgo, and so is what it runs: a C library makes
// calls of its own.
//
//	confine as-app|as-later-app|as-app-without-links|without-links COMMAND [ARG...]
//	confine make CALL
//
// The second makes one system call, with zeros for arguments: the filters are tried on it.
package main

import (
	"fmt"
	"os"
	"syscall"

	"example.com/holdfast/internal/crashtest/sandbox"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: confine as-app|as-later-app|as-app-without-links|without-links COMMAND [ARG...]\n       confine make CALL")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "confine:", run(os.Args[1], os.Args[2:]))
	os.Exit(1)
}

// run returns only what there is to say about it.
func run(how string, argv []string) error {
	if how == "make" {
		return sandbox.Make(argv[0])
	}
	if err := sandbox.Confine(sandbox.Confinement(how)); err != nil {
		return err
	}
	err := syscall.Exec(argv[0], argv, append(os.Environ(), sandbox.Env+"="+how))
	return fmt.Errorf("%s: %w", argv[0], err)
}
