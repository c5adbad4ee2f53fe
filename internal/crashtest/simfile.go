//go:build unix

package crashtest

import (
	"errors"
	"io"
	"os"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// A simFile is an open file of a simulated process.
type simFile struct{ *desc }

var _ fsguard.File = (*simFile)(nil)

func (f *simFile) ReadAt(p []byte, off int64) (n int, err error) {
	end := false
	err = f.do(fsguard.OpRead, f.name, func() error {
		if off < 0 {
			return syscall.EINVAL
		}
		if off < int64(len(f.n.data)) {
			n = copy(p, f.n.data[off:])
		}
		end = n < len(p)
		return nil
	})
	if err == nil && end {
		err = io.EOF // bare, as io.ReaderAt wants it
	}
	return n, err
}

func (f *simFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.do(fsguard.OpWrite, f.name, func() (err error) {
		if err := f.writable(off); err != nil {
			return err
		}
		n, err = f.p.d.grow(f.n, int(off), p, free)
		return err
	})
	return n, err
}

func (f *simFile) Allocate(size int64) error {
	return f.do(fsguard.OpAllocate, f.name, func() error {
		if err := f.writable(size); err != nil {
			return err
		}
		more := int(size) - len(f.n.data)
		if more <= 0 {
			return nil
		}
		if uint64(more) > f.p.d.freeBytes() {
			return syscall.ENOSPC
		}
		_, err := f.p.d.grow(f.n, len(f.n.data), make([]byte, more), free)
		return err
	})
}

func (f *simFile) writable(off int64) error {
	switch {
	case !f.write:
		return syscall.EBADF
	case off < 0:
		return syscall.EINVAL
	case f.p.d.conf.readOnly:
		return syscall.EROFS
	}
	return nil
}

func (f *simFile) Sync() error {
	return f.do(fsguard.OpSync, f.name, func() error {
		f.n.sync()
		return nil
	})
}

// SyncData is Sync: of what describes a file nothing but its length can be lost here.
func (f *simFile) SyncData() error {
	return f.do(fsguard.OpSyncData, f.name, func() error {
		f.n.sync()
		return nil
	})
}

// Dup answers errors.ErrUnsupported: no descriptor of the operating system stands
// for a simulated description, and no child could inherit it.
func (f *simFile) Dup() (*os.File, error) {
	return nil, f.do(fsguard.OpDup, f.name, func() error { return errors.ErrUnsupported })
}
