//go:build unix

package crashtest

import (
	"math"

	"example.com/holdfast/internal/fsguard"
)

// SetSpace sets what Space answers. Free bounds what can still be written from
// now on; zero leaves the room as it is.
func (d *Disk) SetSpace(s fsguard.Space) {
	d.mu.Lock()
	d.conf.space = s
	d.mu.Unlock()
	if s.Free > 0 {
		d.SetFree(s.Free)
	}
}

// SetFree leaves room for that many bytes more. What does not fit is ENOSPC, and
// with no byte free so are Create and Mkdir. A file's bytes come back when no
// name and no descriptor holds it.
func (d *Disk) SetFree(bytes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conf.capacity = d.used + min(bytes, math.MaxInt64-d.used)
}

// SetTime sets the wall clock, which stands still at 0 otherwise: a file's mtime is
// when it was made or last written, a directory's when a name in it last changed.
func (d *Disk) SetTime(nanos int64) { d.set(func(c *conf) { c.now = nanos }) }

// SetReadOnly makes every change EROFS, opening for writing included. Locks and
// syncs go on working, as on a read-only mount.
func (d *Disk) SetReadOnly(on bool) { d.set(func(c *conf) { c.readOnly = on }) }

// SetLockError makes Lock and TryLock answer err, such as ENOSYS or ENOLCK; nil
// makes them work again.
func (d *Disk) SetLockError(err error) { d.set(func(c *conf) { c.lockErr = err }) }

// SetSyncDirError makes every directory sync answer err, such as EINVAL, and do
// nothing.
func (d *Disk) SetSyncDirError(err error) { d.set(func(c *conf) { c.dirErr = err }) }

// SetSizeLies makes Info.Size of every file 0, as some filesystems do.
func (d *Disk) SetSizeLies(on bool) { d.set(func(c *conf) { c.sizeLies = on }) }

// SetForgiving makes a later sync cover again what a failed one did not make
// durable. The default is the harsher truth: it does not.
func (d *Disk) SetForgiving(on bool) { d.set(func(c *conf) { c.forgiving = on }) }

// SetLinkError makes every Link answer err, such as EACCES, and do nothing.
func (d *Disk) SetLinkError(err error) { d.set(func(c *conf) { c.linkErr = err }) }

// SetMoveNewError makes every MoveNew answer err, such as ENOSYS or EINVAL, and do
// nothing.
func (d *Disk) SetMoveNewError(err error) { d.set(func(c *conf) { c.moveNewErr = err }) }

// SetExchangeError makes every Exchange answer err as fsguard.ExchangeError has it, such
// as EINVAL or ENOSYS, and do nothing.
func (d *Disk) SetExchangeError(err error) { d.set(func(c *conf) { c.exchangeErr = err }) }

// SetLinksAreSymlinks makes Link answer nil and do what proot does for apps on
// Android: the file moves to the name ".l2s." + name in its directory, and both
// names become symlinks to that.
func (d *Disk) SetLinksAreSymlinks(on bool) { d.set(func(c *conf) { c.linksAreSymlinks = on }) }

func (d *Disk) set(change func(*conf)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.conf)
}
