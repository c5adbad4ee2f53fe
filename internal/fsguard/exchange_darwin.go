//go:build darwin

package fsguard

import "golang.org/x/sys/unix"

// exchange is renameatx_np with RENAME_SWAP: since macOS 10.12, ENOTSUP where the
// filesystem cannot (rename(2) there).
func exchange(afd int, a string, bfd int, b string) error {
	return unix.RenameatxNp(afd, a, bfd, b, unix.RENAME_SWAP)
}
