package sandbox

import (
	"slices"
	"testing"
)

// The lists are whole, sorted, without a name that no kernel of that architecture has, and
// without a call that some devices trap.
func TestAdmittedCalls(t *testing.T) {
	for _, arch := range []struct{ goarch, name string }{{"amd64", "x86_64"}, {"arm64", "aarch64"}} {
		t.Run(arch.goarch, func(t *testing.T) {
			calls := Admitted(arch.goarch)
			if !slices.IsSorted(calls) || len(slices.Compact(slices.Clone(calls))) != len(calls) {
				t.Error("it is not sorted, or has a name twice")
			}
			if known := knownOn(arch.name, calls); !slices.Equal(known, calls) {
				unknown := slices.DeleteFunc(calls, func(call string) bool { return slices.Contains(known, call) })
				t.Errorf("no such calls: %q", unknown)
			}
			for _, call := range []string{
				"openat", "newfstatat", "fstat", "mkdirat", "unlinkat", "renameat", "linkat", "fsync", "fdatasync", "flock", "fcntl",
				"ftruncate", "fallocate", "getdents64", "pread64", "pwrite64", "syncfs", "inotify_init1", "inotify_add_watch",
				"epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "getrandom", "nanosleep", "clock_gettime", "clone", "execve", "waitid",
			} {
				if !slices.Contains(calls, call) {
					t.Errorf("%s is missing", call)
				}
			}
			for _, call := range append(Android, "renameat2", "memfd_create", "copy_file_range", "userfaultfd", "mount", "setuid", "chroot", "reboot") {
				if slices.Contains(calls, call) {
					t.Errorf("%s is admitted, which not every device does", call)
				}
			}
		})
	}
	var besides []string // of the old calls that arm64 never had
	for _, call := range Admitted("amd64") {
		if !slices.Contains(Admitted("arm64"), call) {
			besides = append(besides, call)
		}
	}
	if want := []string{"arch_prctl", "vfork"}; !slices.Equal(besides, want) {
		t.Errorf("amd64 alone has %q, want %q", besides, want)
	}
	if got := len(Admitted("amd64")) - len(besides); got != len(Admitted("arm64")) {
		t.Errorf("of arm64's %d calls amd64 has %d", len(Admitted("arm64")), got)
	}
	if got := Admitted("riscv64"); len(got) != 0 {
		t.Errorf("of riscv64 nothing is known: %q", got)
	}
}
