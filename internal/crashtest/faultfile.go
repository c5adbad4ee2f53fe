//go:build unix

package crashtest

import (
	"errors"
	"io"
	"os"

	"example.com/holdfast/internal/fsguard"
)

// A faultFile is a file under a Wrapper.
type faultFile struct {
	*handle
	file fsguard.File
}

var _ fsguard.File = (*faultFile)(nil)

// ReadAt passes on a read. The end of the file is not an error of the operation.
func (f *faultFile) ReadAt(p []byte, off int64) (n int, err error) {
	var end error
	err = f.run(fsguard.OpRead, func() (err error) {
		n, err = f.file.ReadAt(p, off)
		if errors.Is(err, io.EOF) {
			end, err = err, nil
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, end
}

func (f *faultFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.run(fsguard.OpWrite, func() (err error) {
		n, err = f.file.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *faultFile) Allocate(size int64) error {
	return f.run(fsguard.OpAllocate, func() error { return f.file.Allocate(size) })
}

func (f *faultFile) Sync() error     { return f.syncIn(0) }
func (f *faultFile) SyncData() error { return f.syncDataIn(0) }

func (f *faultFile) syncIn(group int) error {
	return f.syncAs(fsguard.OpSync, group, f.file.Sync)
}

func (f *faultFile) syncDataIn(group int) error {
	return f.syncAs(fsguard.OpSyncData, group, f.file.SyncData)
}

func (f *faultFile) syncAs(op fsguard.Op, group int, do func() error) error {
	return f.w.run(call{op: op, on: f.handle, name: f.Name(), path: f.path, group: group, do: do})
}

// Dup passes on a duplication. The wrapper does not follow the duplicate.
func (f *faultFile) Dup() (dup *os.File, err error) {
	err = f.w.run(call{
		op: fsguard.OpDup, on: f.handle, name: f.Name(), path: f.path,
		do: func() (err error) {
			dup, err = f.file.Dup()
			return err
		},
		undo: func() { _ = dup.Close() },
	})
	if err != nil {
		return nil, err
	}
	return dup, nil
}
