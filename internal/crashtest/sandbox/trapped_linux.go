package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/elastic/go-seccomp-bpf/arch"
)

// badCall is how Go's runtime begins to tell that a filter trapped a call of its process.
const badCall = "SIGSYS: bad system call"

// register matches the number of the call among the registers that the runtime prints.
var register = map[string]*regexp.Regexp{
	"amd64": regexp.MustCompile(`(?m)^rax +0x([0-9a-f]+)$`),
	"arm64": regexp.MustCompile(`(?m)^r8 +0x([0-9a-f]+)$`),
}

// Trapped names the call that a filter trapped, by what the process wrote and how it
// ended. "": none was.
func Trapped(text string, err error) (call string) {
	_, after, found := strings.Cut(text, badCall)
	if !found {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGSYS {
				return "a call"
			}
		}
		return ""
	}
	if r := register[runtime.GOARCH]; r != nil {
		if m := r.FindStringSubmatch(after); m != nil {
			number, err := strconv.ParseUint(m[1], 16, 32)
			if info, unknown := arch.GetInfo(""); err == nil && unknown == nil && info.SyscallNumbers[int(number)] != "" {
				return info.SyscallNumbers[int(number)]
			}
		}
	}
	return "a call"
}

// trapped tells where a call was trapped, or what was printed last.
func (r result) trapped() string {
	_, after, found := strings.Cut(r.text, badCall)
	if !found {
		lines := strings.Split(r.text, "\n")
		return "\n" + strings.Join(lines[max(0, len(lines)-40):], "\n")
	}
	lines := strings.Split(after, "\n")
	return fmt.Sprintf(": %s is not admitted (a test that starts a process has to say so by sandbox.StartsProcess)\n%s", Trapped(r.text, nil), strings.Join(lines[:min(len(lines), 40)], "\n"))
}
