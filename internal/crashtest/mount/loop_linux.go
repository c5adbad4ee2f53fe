package mount

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const loopMajor = 7

// attach puts a loop device over image, and makes a node for it: the system's own may be
// missing where there is no udev. The device is detached when its last user has gone.
func attach(image, node string) (*os.File, error) {
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the device holds it
	ctl, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer ctl.Close()
	for {
		n, err := unix.IoctlRetInt(int(ctl.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no free one: %w", err)
		}
		if err := unix.Mknod(node, unix.S_IFBLK|0o600, int(unix.Mkdev(loopMajor, uint32(n)))); err != nil {
			return nil, err
		}
		loop, err := os.OpenFile(node, os.O_RDWR, 0)
		if err == nil {
			config := &unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
			if err = unix.IoctlLoopConfigure(int(loop.Fd()), config); err == nil {
				return loop, nil
			}
			err = errors.Join(err, loop.Close())
		}
		// Somebody else was first, or has just removed it.
		if err := errors.Join(err, os.Remove(node)); !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENXIO) {
			return nil, err
		}
	}
}
