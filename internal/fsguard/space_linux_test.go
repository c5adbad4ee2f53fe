//go:build linux

package fsguard

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTypeSpace(t *testing.T) {
	tests := []struct {
		magic uint32
		want  Space
	}{
		{unix.EXT4_SUPER_MAGIC, Space{Type: "ext4"}},
		{unix.F2FS_SUPER_MAGIC, Space{Type: "f2fs"}},
		{unix.BTRFS_SUPER_MAGIC, Space{Type: "btrfs"}}, // above 1<<31
		{unix.TMPFS_MAGIC, Space{Type: "tmpfs"}},
		{unix.FUSE_SUPER_MAGIC, Space{Type: "fuse"}},
		{unix.NFS_SUPER_MAGIC, Space{Type: "nfs", Network: true}},
		{unix.CIFS_SUPER_MAGIC, Space{Type: "cifs", Network: true}},
		{unix.SMB_SUPER_MAGIC, Space{Type: "smb", Network: true}},
		{unix.SMB2_SUPER_MAGIC, Space{Type: "smb2", Network: true}},
		{unix.V9FS_MAGIC, Space{Type: "9p", Network: true}},
		{unix.AFS_SUPER_MAGIC, Space{Type: "afs", Network: true}},
		{unix.CEPH_SUPER_MAGIC, Space{Type: "ceph", Network: true}},
		{unix.NCP_SUPER_MAGIC, Space{Type: "ncp", Network: true}},
		{unix.CODA_SUPER_MAGIC, Space{Type: "coda", Network: true}},
		{unix.OCFS2_SUPER_MAGIC, Space{Type: "ocfs2", Network: true}},
		{0x01161970, Space{Type: "gfs2", Network: true}},
		{0xdead, Space{Type: "0xdead"}},
	}
	for _, tt := range tests {
		if got := typeSpace(tt.magic); got != tt.want {
			t.Errorf("%#x: got %+v, want %+v", tt.magic, got, tt.want)
		}
	}
}

func TestSpaceOfTmpfs(t *testing.T) { each(t, testSpaceOfTmpfs) }

func testSpaceOfTmpfs(t *testing.T, fsys FS) {
	if _, err := os.Stat("/dev/shm"); err != nil {
		skip(t, "no /dev/shm here")
	}
	d := must(fsys.OpenRoot("/dev/shm"))(t)
	defer d.Close()
	if got := must(d.Space())(t).Type; got != "tmpfs" && got != "overlay" {
		t.Errorf("got %q, want tmpfs", got)
	}
}
