//go:build linux

package fsguard

import "golang.org/x/sys/unix"

// renameNew is renameat2 with RENAME_NOREPLACE: since Linux 3.15, EINVAL where the
// filesystem does not know the flag (rename(2)). It is not tried again after EINTR.
func renameNew(fromfd int, oldName string, tofd int, newName string) error {
	return unix.Renameat2(fromfd, oldName, tofd, newName, unix.RENAME_NOREPLACE)
}
