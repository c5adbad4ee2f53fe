//go:build unix

package fsguard

import "io"

// An osFile is one open file description on a plain file.
type osFile struct{ *descriptor }

// ReadAt is pread, again until p is full or the file ends. io.EOF comes bare, as
// io.ReaderAt promises.
func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.file.ReadAt(p, off)
	if err == io.EOF {
		return n, err
	}
	return n, wrap(OpRead, f.name, err)
}

// WriteAt is pwrite, again until all of p is written or an error stops it.
func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.file.WriteAt(p, off)
	return n, wrap(OpWrite, f.name, err)
}

// Sync makes the content and length durable when it returns nil. After an error
// Linux marks the pages clean and a second call would return nil for lost data
// (fsync(2), "EIO"; lwn.net/Articles/752063), so there must be none.
func (f *osFile) Sync() error { return f.sync(OpSync) }

// SyncData is fdatasync where a system has it: see there. What is said of a failed Sync
// holds for it too.
func (f *osFile) SyncData() error { return wrap(OpSyncData, f.name, fdatasync(f.descriptor)) }
