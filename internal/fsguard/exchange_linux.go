//go:build linux

package fsguard

import "golang.org/x/sys/unix"

// exchange is renameat2 with RENAME_EXCHANGE: since Linux 3.15, EINVAL where the
// filesystem does not know the flag (rename(2)).
func exchange(afd int, a string, bfd int, b string) error {
	return unix.Renameat2(afd, a, bfd, b, unix.RENAME_EXCHANGE)
}
