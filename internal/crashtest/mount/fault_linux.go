package mount

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Break lets the device end after so many bytes: reads and writes behind are EIO. What it
// has written is there again once it is mended.
func (d *Device) Break(after int64) error { return d.limit(uint64(after)) }

// Mend ends what Break has begun.
func (d *Device) Mend() error { return d.limit(0) }

func (d *Device) limit(size uint64) error {
	info, err := unix.IoctlLoopGetStatus64(int(d.loop.Fd()))
	if err != nil {
		return err
	}
	info.Sizelimit = size
	return unix.IoctlLoopSetStatus64(int(d.loop.Fd()), info)
}

// Shutdown stops the filesystem where it is: whatever is done with it from now on is EIO.
// What it holds in memory never reaches the device.
func (m *Mount) Shutdown() error {
	f, err := os.Open(m.Dir)
	if err != nil {
		return err
	}
	defer f.Close()
	const (
		shutdown   = 0x8004587d // FS_IOC_SHUTDOWN, which is that of xfs
		noLogFlush = 2
	)
	return unix.IoctlSetPointerInt(int(f.Fd()), shutdown, noLogFlush)
}

// Abort makes an ext4 read-only under whoever has files open in it, as it does itself when
// it finds its own structures damaged.
func (m *Mount) Abort() error {
	return unix.Mount("", m.Dir, "", unix.MS_REMOUNT, "abort")
}

// ReadOnly asks for the filesystem to become read-only. It is refused while a file in it is
// open for writing.
func (m *Mount) ReadOnly() error {
	return unix.Mount("", m.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, m.options)
}

// Starve takes from the device what it has not allocated yet, as when a thinly provisioned
// disk has no more to give: to write there is ENOSPC, which a sync meets. What an ext4 lives
// on is allocated first, its structures and its journal: it lives on, and only files have
// nowhere to go.
func (d *Device) Starve() error {
	end, err := d.journalEnd()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(d.image, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, end)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	var is unix.Statfs_t
	if err := unix.Statfs(d.p.dir, &is); err != nil {
		return err
	}
	return d.p.resize(int64(is.Blocks-is.Bfree) * int64(is.Bsize))
}

// Feed ends what Starve has begun.
func (d *Device) Feed() error { return d.p.resize(placeBytes) }

func (p *Place) resize(bytes int64) error {
	return unix.Mount("", p.dir, "", unix.MS_REMOUNT, fmt.Sprintf("size=%d", bytes))
}

// journalEnd tells where the journal of an ext4 that this package has made ends, and with it
// what the filesystem needs to live on.
func (d *Device) journalEnd() (int64, error) {
	// The superblock repeats where the journal lies: its inode's blocks, which are a header
	// and extents of 12 bytes, all little-endian. (ext4(5); fs/ext4/ext4.h,
	// ext4_extents.h.)
	const (
		superblock = 1024
		blockSize  = 0x18 // 1024 << this
		journal    = 0x10c
		magic      = 0xf30a
		most       = 4
	)
	f, err := os.Open(d.image)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var sb [1024]byte
	if _, err := f.ReadAt(sb[:], superblock); err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	blocks := sb[journal:]
	n, depth := le.Uint16(blocks[2:]), le.Uint16(blocks[6:])
	if le.Uint16(blocks) != magic || n == 0 || n > most || depth != 0 {
		return 0, fmt.Errorf("the journal's place is not told as it should be: %x", blocks[:68])
	}
	end := int64(0)
	for i := range int(n) {
		extent := blocks[12+12*i:]
		begin := int64(le.Uint16(extent[6:]))<<32 | int64(le.Uint32(extent[8:]))
		end = max(end, begin+int64(le.Uint16(extent[4:])))
	}
	return end * 1024 << le.Uint32(sb[blockSize:]), nil
}
