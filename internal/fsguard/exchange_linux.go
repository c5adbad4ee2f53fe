//go:build linux

package fsguard

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// onAndroid tells programs that run as, or from, an app: init sets ANDROID_ROOT for every
// process of the system, and Go calls a program "linux" that was not built for Android.
var onAndroid = runtime.GOOS == "android" || os.Getenv("ANDROID_ROOT") != ""

// exchange is renameat2 with RENAME_EXCHANGE: since Linux 3.15, EINVAL where the
// filesystem does not know the flag (rename(2)). On Android it is not tried: the sandbox
// of Android 8 kills the process at that call, and a program cannot ask which Android
// this is without a risk of being wrong.
func exchange(afd int, a string, bfd int, b string) error {
	if onAndroid {
		return fmt.Errorf("%w: no names are exchanged on Android", errors.ErrUnsupported)
	}
	return unix.Renameat2(afd, a, bfd, b, unix.RENAME_EXCHANGE)
}
