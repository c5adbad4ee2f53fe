//go:build unix

package fsguard

import (
	"errors"
	"io"
)

// ReadAll reads f from its start to EOF. The size that stat tells is not trusted:
// it only shapes the first buffer. More than limit bytes is ErrTooLong.
func ReadAll(f File, limit int64) ([]byte, error) {
	first := int64(512)
	if info, err := f.Info(); err != nil {
		return nil, err
	} else if info.Size > first {
		first = min(info.Size, limit)
	}
	buf := make([]byte, 0, first+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := f.ReadAt(buf[len(buf):cap(buf)], int64(len(buf)))
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, &Error{Op: OpRead, Name: f.Name(), Err: ErrTooLong}
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, &Error{Op: OpRead, Name: f.Name(), Err: io.ErrNoProgress}
		}
	}
}
