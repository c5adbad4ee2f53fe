//go:build linux

package fsguard

import "golang.org/x/sys/unix"

// openProbe opens without reading: Android lets no app read "/".
const openProbe = unix.O_PATH
