//go:build darwin

package fsguard

import "golang.org/x/sys/unix"

// renameNew is renameatx_np with RENAME_EXCL: since macOS 10.12, ENOTSUP where the
// filesystem cannot (rename(2) there). It is not tried again after EINTR.
func renameNew(fromfd int, oldName string, tofd int, newName string) error {
	return unix.RenameatxNp(fromfd, oldName, tofd, newName, unix.RENAME_EXCL)
}
