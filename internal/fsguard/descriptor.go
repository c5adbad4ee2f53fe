//go:build unix

package fsguard

import (
	"io/fs"
	"os"
	"sync/atomic"
)

// A descriptor is what a pinned directory and an open file share: one open file
// description and the name that it was opened by.
//
// The description is in blocking mode and not in the runtime's poller, which
// takes no directory and is given no file. So a call on it may wait in the kernel
// and Close never waits for one: the number stays in use until the last call on
// it has returned, then it is closed. No call can therefore reach another file
// that reused the number.
type descriptor struct {
	file   *os.File
	name   string
	closed atomic.Bool
}

// newDescriptor takes over fd, which must be in blocking mode: os.NewFile would
// hand another to the poller.
func newDescriptor(fd int, name string) *descriptor {
	return &descriptor{file: os.NewFile(uintptr(fd), name), name: name}
}

func (d *descriptor) Name() string { return d.name }

// Info is fstat.
func (d *descriptor) Info() (info Info, err error) {
	err = d.control(func(fd int) error {
		info, err = fstat(fd)
		return err
	})
	return info, wrap(OpInfo, d.name, err)
}

// Close gives up the descriptor and with it the lock. It does not interrupt a
// Lock that waits: see there.
func (d *descriptor) Close() error {
	d.closed.Store(true)
	return wrap(OpClose, d.name, d.file.Close())
}

// control calls f with the descriptor number, which stays open meanwhile. Other
// calls on the descriptor may run at the same time. (os.File.Fd would give the
// number without keeping it open.)
func (d *descriptor) control(f func(fd int) error) error {
	conn, err := d.file.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if err := conn.Control(func(fd uintptr) { ferr = f(int(fd)) }); err != nil {
		return fs.ErrClosed // Control's only reason to fail
	}
	return ferr
}

// sync is fsync, and F_FULLFSYNC on darwin, where fsync leaves the data in the
// drive's cache (fsync(2) there). os retries EINTR.
func (d *descriptor) sync(op Op) error {
	err := d.file.Sync()
	if err == nil && op == OpSyncDir {
		// An XFS that has shut down has lost what was still to be logged of a directory, and
		// answers nil to its sync. To a look at it, it answers EIO.
		_, err = d.file.Stat()
	}
	return wrap(op, d.name, err)
}
