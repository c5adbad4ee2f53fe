//go:build unix

package fsguard

import (
	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// WriteFile replaces name by a new file that holds data. The new content is
// synced before it gets the name, so that no crash can show the name with less;
// which of the two files the name means after a crash is open until Sync. On an
// error before the rename the old file stands; after a crash a temp may be left,
// its name "." + name + digits. A name of more than 235 bytes leaves no room for
// the digits in 255 and fails with ENAMETOOLONG.
//
// renameio.WriteFile is not used: it would take over the permissions of the
// file that is replaced.
func (d *osDir) WriteFile(name string, data []byte) error {
	return wrap(OpWriteFile, name, d.at(name, func(int, string) error {
		temp, err := renameio.NewPendingFile(name,
			renameio.WithRoot(d.root), renameio.WithStaticPermissions(fileMode))
		if err != nil {
			return err
		}
		defer temp.Cleanup()
		if _, err := temp.Write(data); err != nil {
			return err
		}
		return temp.CloseAtomicallyReplace()
	}))
}

// Remove removes what is no directory. The name is gone for every process at
// once, durably only after Sync. (os.Root.Remove would try both kinds.)
func (d *pinned) Remove(name string) error {
	return wrap(OpRemove, name, d.unlink(name, 0))
}

// RemoveDir removes an empty directory and nothing else.
func (d *pinned) RemoveDir(name string) error {
	return wrap(OpRemoveDir, name, d.unlink(name, unix.AT_REMOVEDIR))
}

func (d *pinned) unlink(name string, flags int) error {
	return d.at(name, func(dirfd int, at string) error {
		return retry(func() error { return unix.Unlinkat(dirfd, at, flags) })
	})
}
