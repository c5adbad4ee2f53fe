//go:build linux

package holdfast

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/sandbox"
)

func init() { roles["whole life, refused"] = wholeLifeRefused }

// hardLinkCalls make hard links, and renames that replace nothing.
var hardLinkCalls = []string{"link", "linkat", "renameat2"}

// Where hard links are refused, by whatever errno, the store lives its whole life: it does
// not ask for one. (That it makes no such call at all is TestForbiddenCallsAreNotMade's.)
func TestHardLinksRefused(t *testing.T) {
	t.Parallel()
	sandbox.Need(t)
	errnos := []syscall.Errno{unix.EACCES, unix.EPERM, unix.EXDEV, unix.ENOTSUP, unix.EOPNOTSUPP, unix.ENOSYS}
	errnos = slices.Compact(errnos) // the middle two are one number
	if raceDetector() {
		errnos = errnos[:1] // a process that makes no link makes none, whatever the answer
	}
	for _, errno := range errnos {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			lines, err := start(t, "whole life, refused", strconv.Itoa(int(errno)), dir).Rest()
			if err != nil || !slices.Equal(lines, []string{"done"}) {
				t.Fatalf("under the filter: %v (signal %v) %q", err, killedBy(err), lines)
			}
			mustVerify(t, dir)
		})
	}
}

// wholeLifeRefused takes an errno and a directory for a store.
func wholeLifeRefused(args []string) error {
	errno, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	calls := sandbox.Known(hardLinkCalls)
	if err := sandbox.Refuse(calls, syscall.Errno(errno)); err != nil {
		return err
	}
	for _, call := range calls { // the filter is real
		want := call + " returned " + syscall.Errno(errno).Error()
		if err := sandbox.Make(call); !strings.HasPrefix(err.Error(), want) {
			return fmt.Errorf("got %w, want %s", err, want)
		}
	}
	if err := wholeLife(context.Background(), args[1]); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}
