//go:build linux

package fsguard

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A fsType is one filesystem type as statfs(2) numbers it.
type fsType struct {
	name    string
	network bool
}

// fsTypes are the types by magic number: linux/magic.h through x/sys where it
// has them, else statfs(2) and the filesystem's own header. Network is true for
// what another machine serves and for what several machines share: there a lock
// or a sync may mean less than it says. FUSE does not tell what is behind it, so
// sshfs cannot be told from Android's shared storage; the type "fuse" is local.
var fsTypes = map[uint32]fsType{
	unix.EXT4_SUPER_MAGIC:      {name: "ext4"}, // ext2 and ext3 too
	unix.F2FS_SUPER_MAGIC:      {name: "f2fs"},
	unix.XFS_SUPER_MAGIC:       {name: "xfs"},
	unix.BTRFS_SUPER_MAGIC:     {name: "btrfs"},
	unix.BCACHEFS_SUPER_MAGIC:  {name: "bcachefs"},
	0x2fc12fc1:                 {name: "zfs"},
	unix.TMPFS_MAGIC:           {name: "tmpfs"},
	unix.RAMFS_MAGIC:           {name: "ramfs"},
	unix.OVERLAYFS_SUPER_MAGIC: {name: "overlay"},
	unix.ECRYPTFS_SUPER_MAGIC:  {name: "ecryptfs"},
	unix.REISERFS_SUPER_MAGIC:  {name: "reiserfs"},
	unix.NILFS_SUPER_MAGIC:     {name: "nilfs"},
	unix.JFFS2_SUPER_MAGIC:     {name: "jffs2"},
	0x24051905:                 {name: "ubifs"},
	0x3153464a:                 {name: "jfs"},
	unix.UDF_SUPER_MAGIC:       {name: "udf"},
	unix.ISOFS_SUPER_MAGIC:     {name: "iso9660"},
	unix.SQUASHFS_MAGIC:        {name: "squashfs"},
	unix.MSDOS_SUPER_MAGIC:     {name: "vfat"},
	unix.EXFAT_SUPER_MAGIC:     {name: "exfat"},
	0x7366746e:                 {name: "ntfs3"},
	0x5346544e:                 {name: "ntfs"},
	0x4244:                     {name: "hfs"},
	0x482b:                     {name: "hfsplus"},
	0x5dca2df5:                 {name: "sdcardfs"}, // Android before 11
	unix.FUSE_SUPER_MAGIC:      {name: "fuse"},

	unix.NFS_SUPER_MAGIC:   {"nfs", true},
	unix.CIFS_SUPER_MAGIC:  {"cifs", true},
	unix.SMB_SUPER_MAGIC:   {"smb", true},
	unix.SMB2_SUPER_MAGIC:  {"smb2", true},
	unix.V9FS_MAGIC:        {"9p", true},
	unix.AFS_SUPER_MAGIC:   {"afs", true},
	unix.AFS_FS_MAGIC:      {"afs", true},
	unix.CEPH_SUPER_MAGIC:  {"ceph", true},
	unix.NCP_SUPER_MAGIC:   {"ncp", true},
	unix.CODA_SUPER_MAGIC:  {"coda", true},
	unix.OCFS2_SUPER_MAGIC: {"ocfs2", true},
	0x01161970:             {"gfs2", true},
	0x0bd00bd0:             {"lustre", true},
	0x47504653:             {"gpfs", true},
	0xaad7aaea:             {"panfs", true},
	0x20030528:             {"orangefs", true},
	0x19830326:             {"beegfs", true},
	0xbacbacbc:             {"vmhgfs", true}, // a host's folder in its guest
	0x786f4256:             {"vboxsf", true}, // likewise
}

func fstatfs(fd int) (Space, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return Space{}, err
	}
	space := typeSpace(uint32(st.Type)) // 32 bits hold every magic; f_type may be wider and signed
	space.Free = freeBytes(uint64(st.Bavail), uint64(st.Bsize))
	return space, nil
}

// typeSpace is the type and whether it is a network's.
func typeSpace(magic uint32) Space {
	if t, ok := fsTypes[magic]; ok {
		return Space{Type: t.name, Network: t.network}
	}
	return Space{Type: fmt.Sprintf("0x%x", magic)}
}
