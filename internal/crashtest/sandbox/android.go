//go:build unix

package sandbox

import (
	_ "embed"
	"strings"
)

// The system calls that Android lets an app make, a name a line as the kernel spells it,
// sorted. Facts from the C library's sources, the repository platform/bionic, directory
// libc, where SYSCALLS.TXT less the block-lists plus the allow-lists of common calls and of
// apps make the filter of an app, which seccomp/ had ready-made for a while. Devices old
// and new have to admit a call that is here: it is in each of
//
//   - of the time of Android 8.0, the first with the filter: seccomp/arm64_policy.cpp at
//     06a32206c543, seccomp/x86_64_policy.cpp at 1f90e4357362
//   - of Android 9: seccomp/arm64_app_policy.cpp at 2a26ed41863f,
//     seccomp/x86_64_app_policy.cpp at 6df2dc1675b5
//   - of 2025: SYSCALLS.TXT, the blob 31651cd88, and SECCOMP_ALLOWLIST_COMMON.TXT at
//     34e3b48f68c1 and SECCOMP_ALLOWLIST_APP.TXT at d07808750c27, less
//     SECCOMP_BLOCKLIST_APP.TXT at 6a2be427543f
//
// So what later versions added, memfd_create, copy_file_range, statx, close_range,
// pidfd_open and others, is not here. The sources name no Android version; they are told
// by what was added when.
var (
	//go:embed android_amd64.txt
	androidAMD64 string
	//go:embed android_arm64.txt
	androidARM64 string
)

// Admitted are the calls that Android admits on an architecture, by Go's name of it. None
// means that nothing is known of it.
func Admitted(goarch string) []string {
	return strings.Fields(map[string]string{"amd64": androidAMD64, "arm64": androidARM64}[goarch])
}

// SinceAndroid9 are calls that the second of the sources has and the first has not.
var SinceAndroid9 = []string{"renameat2"}
