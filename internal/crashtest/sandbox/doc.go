//go:build unix

// Package sandbox puts the running test process under a seccomp filter, to prove
// which system calls it does not make. Only tests import it.
package sandbox
