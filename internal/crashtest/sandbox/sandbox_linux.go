package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/testrun"
)

// Links are the calls that make a link. The store makes none, ever.
var Links = []string{"link", "linkat", "symlink", "symlinkat"}

// Android are the calls that an Android app may not make, or not on every device
// (bionic's SYSCALLS.TXT and SECCOMP_BLOCKLIST_APP.TXT).
var Android = []string{
	"openat2", "faccessat2", "fchmodat2", "clone3",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
	"pidfd_open", "pidfd_getfd", "pidfd_send_signal", "statx", "close_range",
}

// Confine puts this process under a filter, and whatever it executes.
func Confine(how Confinement) error {
	switch how {
	case AsApp, AsLaterApp, AsAppWithoutLinks:
		admitted := Admitted(runtime.GOARCH)
		switch how {
		case AsLaterApp:
			admitted = append(admitted, SinceAndroid9...)
		case AsAppWithoutLinks:
			admitted = slices.DeleteFunc(admitted, func(call string) bool { return slices.Contains(Links, call) })
		}
		if known := Known(admitted); len(known) == 0 || len(known) != len(admitted) {
			return fmt.Errorf("of the %d calls that Android admits on %s %d are known here", len(admitted), runtime.GOARCH, len(known))
		}
		return set(seccomp.ActionTrap, seccomp.SyscallGroup{Action: seccomp.ActionAllow, Names: names(admitted)})
	case WithoutLinks:
		return Kill(Known(Links))
	}
	return fmt.Errorf("no confinement %q", how)
}

// Kill ends this process by SIGSYS at the first of the calls, whichever thread makes
// it.
func Kill(calls []string) error { return load(calls, seccomp.ActionKillProcess) }

// Refuse answers each of the calls with errno.
func Refuse(calls []string, errno syscall.Errno) error {
	return load(calls, seccomp.ActionErrno|seccomp.Action(errno))
}

// RefuseRelative answers errno to each of the calls that exist here unless its first
// argument is AT_FDCWD, as the kernel reads it: an int.
func RefuseRelative(calls []string, errno syscall.Errno) error {
	cwd := unix.AT_FDCWD
	group := seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(errno)}
	for _, call := range Known(calls) {
		group.NamesWithCondtions = append(group.NamesWithCondtions, seccomp.NameWithConditions{
			Name:       call,
			Conditions: []seccomp.Condition{{Argument: 0, Operation: seccomp.NotEqual, Value: uint64(cwd)}},
		})
	}
	return set(seccomp.ActionAllow, group)
}

// load makes one exception: see Excepted.
func load(calls []string, action seccomp.Action) error {
	var groups []seccomp.SyscallGroup
	for _, call := range calls {
		act := action
		if Excepted(call) {
			act = seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)
		}
		groups = append(groups, seccomp.SyscallGroup{Names: []string{call}, Action: act})
	}
	return set(seccomp.ActionAllow, groups...)
}

// set puts every thread of this process under a filter, with what is done at all other
// calls.
func set(others seccomp.Action, groups ...seccomp.SyscallGroup) error {
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy:     seccomp.Policy{DefaultAction: others, Syscalls: groups},
	})
}

// Excepted reports whether a filter answers ENOSYS to call whatever it was to do: a
// binary built with cgo (the race detector needs it, and package net brings it in)
// starts its threads through glibc, which tries clone3 and takes ENOSYS for an
// answer. The Go runtime and Android's C library never try.
func Excepted(call string) bool { return call == "clone3" && threadsByGlibc() }

var threadsByGlibc = sync.OnceValue(func() bool {
	maps, err := os.ReadFile("/proc/self/maps")
	return err == nil && strings.Contains(string(maps), "/libc.so")
})

// Known keeps the calls that exist on this architecture.
func Known(calls []string) []string { return knownOn("", calls) }

// knownOn keeps those that exist on an architecture, by the seccomp package's name of it.
func knownOn(name string, calls []string) []string {
	info, err := arch.GetInfo(name)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool {
		_, found := info.SyscallNames[spelt(info, call)]
		return !found
	})
}

// spelt is a call's name as the seccomp package spells it: on arm64 it has newfstatat by
// its other name.
func spelt(info *arch.Info, call string) string {
	if _, found := info.SyscallNames[call]; !found && call == "newfstatat" {
		return "fstatat"
	}
	return call
}

// names are calls as the seccomp package spells them here.
func names(calls []string) []string {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil
	}
	var out []string
	for _, call := range calls {
		out = append(out, spelt(info, call))
	}
	return out
}

// Need leaves the test out where no filter can be set.
func Need(t testing.TB) {
	t.Helper()
	if reason := missing(); reason != "" {
		testrun.Skip(t, reason)
	}
}

// missing says in a sentence why no filter can be set here, or is empty.
func missing() string {
	switch {
	case !seccomp.Supported():
		return "this kernel has no seccomp filters"
	case len(Known(Links)) == 0:
		return "the seccomp package knows no system calls of this architecture"
	}
	return ""
}

// Make makes the named call with zeros for arguments. It returns only if no filter
// kills.
func Make(call string) error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	_, _, errno := syscall.RawSyscall(uintptr(info.SyscallNames[call]), 0, 0, 0)
	return fmt.Errorf("%s returned %v", call, errno)
}
