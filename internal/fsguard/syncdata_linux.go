//go:build linux

package fsguard

import "golang.org/x/sys/unix"

// fdatasync writes the content, and of the inode what it takes to read the content back,
// such as a length that has grown; not an mtime, for which the journal would have to be
// written once more (fdatasync(2)). It flushes the drive's cache as fsync does. EINTR is
// no failure: the pages are still to be written, and the next try writes them.
func fdatasync(d *descriptor) error {
	return d.control(func(fd int) error {
		return retry(func() error { return unix.Fdatasync(fd) })
	})
}
