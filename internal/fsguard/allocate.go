//go:build unix

package fsguard

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// zeroChunk is how many zeros the fallback writes at once.
const zeroChunk = 64 << 10

// Allocate asks fallocate(2) to reserve blocks for the first size bytes. Where it
// cannot, zeros are written from the file's end up to size, which reserves the
// same blocks except on a filesystem that copies on write or compresses. Content
// is never touched. On an error the file may be longer than it was. Nothing is
// durable until Sync.
func (f *osFile) Allocate(size int64) error {
	if size < 0 {
		return wrap(OpAllocate, f.name, unix.EINVAL)
	}
	if size == 0 {
		return nil
	}
	err := f.control(func(fd int) error {
		return retry(func() error { return fallocate(fd, size) })
	})
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		err = f.zeroFill(size)
	}
	return wrap(OpAllocate, f.name, err)
}

// zeroFill writes zeros from the end of the file up to size.
func (f *osFile) zeroFill(size int64) error {
	end, err := f.end()
	if err != nil {
		return err
	}
	zeros := make([]byte, max(0, min(zeroChunk, size-end)))
	for end < size {
		n, err := f.file.WriteAt(zeros[:min(int64(len(zeros)), size-end)], end)
		if err != nil {
			return err
		}
		end += int64(n)
	}
	return nil
}

// end finds where the file ends. Writing at a size that stat made up would
// destroy content (Android's shared storage has been seen to say 0), so it is
// only where the search begins.
func (f *osFile) end() (int64, error) {
	info, err := f.Info()
	if err != nil {
		return 0, err
	}
	return endFrom(f.file, info.Size)
}

// endFrom reads on from at until there is nothing more.
func endFrom(r io.ReaderAt, at int64) (int64, error) {
	buf := make([]byte, 4<<10)
	for {
		n, err := r.ReadAt(buf, at)
		at += int64(n)
		if err == io.EOF {
			return at, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
