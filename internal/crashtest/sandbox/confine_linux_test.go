package sandbox

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// notAdmitted are calls outside Android's list: those that are never to be attempted, later
// ones of any kind, and the old ones that x86-64 has and a C library for it still makes.
var notAdmitted = slices.Concat(Android, []string{
	"renameat2", "memfd_create", "copy_file_range", "preadv2", "open", "readlink", "mount", "setuid", "chroot", "reboot", "mseal",
	"stat", "lstat", "access", "rename", "unlink", "mkdir", "link", "symlink", "pipe", "dup2", "fork", "epoll_wait",
})

// The filters are real, and outlive the exec. A call outside Android's list ends the
// process that makes it, and its name is told; one that makes a link is killed by the
// other filter; other calls are made.
func TestConfine(t *testing.T) {
	l := NewLauncher(t)
	made := func(t *testing.T, how Confinement, call string) (trapped, text string, err error) {
		t.Helper()
		out, err := l.Command(t, how, l.path, "make", call).CombinedOutput()
		return Trapped(string(out), err), string(out), err
	}
	for how, calls := range map[Confinement][]string{AsApp: notAdmitted, AsAppWithoutLinks: append(slices.Clone(notAdmitted), Links...)} {
		for _, call := range Known(calls) {
			if trapped, text, err := made(t, how, call); trapped != call {
				t.Errorf("%s under %s: trapped %q, %v\n%s", call, how, trapped, err, text)
			}
		}
	}
	if got := len(Known(notAdmitted)); got < 20 {
		t.Errorf("%d calls were tried", got)
	}
	for _, call := range Known(Links) {
		_, text, err := made(t, WithoutLinks, call)
		if exit := (&exec.ExitError{}); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
			t.Errorf("%s without links: %v, want SIGSYS\n%s", call, err, text)
		}
	}
	for how, call := range map[Confinement]string{AsApp: "linkat", AsLaterApp: "renameat2", AsAppWithoutLinks: "renameat", WithoutLinks: "statx"} {
		if trapped, text, _ := made(t, how, call); trapped != "" || !strings.Contains(text, "confine: "+call+" returned ") {
			t.Errorf("%s under %s: trapped %q, %s", call, how, trapped, text)
		}
	}
	if _, text, err := made(t, "loosely", "getpid"); err == nil || !strings.Contains(text, `no confinement "loosely"`) {
		t.Errorf("an unknown filter: %v %s", err, text)
	}
}
