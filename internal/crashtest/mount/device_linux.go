package mount

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Device is an image file with a filesystem in it. While it is mounted, a loop device
// stands over it.
type Device struct {
	Kind Kind

	t     testing.TB
	p     *Place
	image string
	again bool     // a copy
	loop  *os.File // while it is mounted
}

// Format makes an image with an empty filesystem.
func (p *Place) Format(k Kind) *Device {
	p.t.Helper()
	d := &Device{Kind: k, t: p.t, p: p, image: p.name("image")}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(k.Size), f.Close())
	}
	if err != nil {
		p.t.Fatal(err)
	}
	run(p.t, k.Make[0], append(k.Make[1:len(k.Make):len(k.Make)], d.image)...)
	small := d.Copy() // without the zeros that were written to it
	d.Remove()
	d.image = small.image
	if k.Folding {
		m := d.Mount()
		foldCase(p.t, m.Dir)
		m.Unmount()
	}
	return d
}

// Mount mounts the filesystem, with options besides those of its kind.
func (d *Device) Mount(options ...string) *Mount { return d.mount(0, options...) }

// MountReadOnly mounts it so that nobody can write.
func (d *Device) MountReadOnly() *Mount { return d.mount(unix.MS_RDONLY) }

func (d *Device) mount(flags uintptr, options ...string) *Mount {
	d.t.Helper()
	node := d.p.name("loop")
	loop, err := attach(d.image, node)
	if err != nil {
		d.t.Fatalf("a loop device: %v", err)
	}
	// The device goes with its last user: the mount, once this is closed.
	d.loop = loop
	d.t.Cleanup(d.unmounted)
	all := d.Kind.Options
	if d.again && d.Kind.Again != "" {
		options = append(options, d.Kind.Again)
	}
	for _, o := range options {
		if all != "" {
			all += ","
		}
		all += o
	}
	m := d.p.mount(node, d.p.point(), d.Kind.Type, flags, all)
	m.of = d
	return m
}

// unmounted lets the loop device go.
func (d *Device) unmounted() {
	if d == nil || d.loop == nil {
		return
	}
	d.t.Helper()
	if d.Kind.Type == Btrfs.Type {
		if err := forget(d.loop.Name()); err != nil {
			d.t.Errorf("btrfs does not forget the device: %v", err)
		}
	}
	if err := d.loop.Close(); err != nil {
		d.t.Error(err)
	}
	d.loop = nil
}

// Copy gives the device as it is at this instant: what a power cut leaves.
func (d *Device) Copy() *Device {
	d.t.Helper()
	c := &Device{Kind: d.Kind, t: d.t, p: d.p, image: d.p.name("image"), again: true}
	if err := copySparse(c.image, d.image); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// Remove gives the image's memory back. It is not to be mounted.
func (d *Device) Remove() {
	d.t.Helper()
	if err := os.Remove(d.image); err != nil {
		d.t.Error(err)
	}
}

// copySparse copies what a file holds, and neither holes nor zeros.
func copySparse(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	info, err := in.Stat()
	if err == nil {
		err = errors.Join(out.Truncate(info.Size()), copyData(out, in))
	}
	return errors.Join(err, out.Close())
}

func copyData(out, in *os.File) error {
	var buf, zeros [64 << 10]byte
	for at, n := int64(0), 0; ; at += int64(n) {
		var err error
		at, err = unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // no more data
		}
		if err != nil {
			return err
		}
		n, err = in.ReadAt(buf[:], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if data := buf[:n]; !bytes.Equal(data, zeros[:n]) {
			if _, err := out.WriteAt(data, at); err != nil {
				return err
			}
		}
	}
}

// foldCase lets dir, which is empty but for lost+found, fold the case of names: it and
// the directories that are made in it.
func foldCase(t testing.TB, dir string) {
	t.Helper()
	const casefold = 0x40000000 // FS_CASEFOLD_FL, which only an empty directory takes
	if err := os.Remove(filepath.Join(dir, "lost+found")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|casefold)
	}
	if err != nil {
		t.Fatalf("fold case: %v", err)
	}
}

// forget tells btrfs, which knows filesystems by their identity, that the device at path
// is no part of one any more. The next may be a copy of it, older than it was.
func forget(path string) error {
	ctl, err := os.OpenFile("/dev/btrfs-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer ctl.Close()
	const forgetDev = 0x50009405 // BTRFS_IOC_FORGET_DEV
	var args struct {
		fd   int64
		name [4088]byte
	}
	copy(args.name[:len(args.name)-1], path)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, ctl.Fd(), forgetDev, uintptr(unsafe.Pointer(&args)))
	if errno != 0 {
		return errno
	}
	return nil
}
