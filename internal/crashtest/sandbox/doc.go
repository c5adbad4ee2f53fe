//go:build unix

// Package sandbox puts processes under seccomp filters, to prove which system calls they
// do not make. Only tests import it.
//
// A test puts its own process under a filter by [Kill] or [Refuse]. A whole test binary or
// command is started under one by the command confine below this directory, so that the
// start of Go's runtime is under it too: [Suite], [Confined].
package sandbox
