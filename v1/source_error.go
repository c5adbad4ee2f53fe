//go:build unix

package holdfast

import (
	"errors"
	"path/filepath"
	"syscall"
)

// A SourceError is an error of the system, and the directory of a Source that it is about:
// an importer has two directories and a store, and the error alone names a file in one of
// them.
type SourceError struct {
	Dir string // absolute
	Err error
}

func (e *SourceError) Error() string { return e.Dir + ": " + e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// about names the directory of an error of the system. Others tell it, or need none.
func about(dir string, err error) error {
	var errno syscall.Errno
	var own *Error
	var told *SourceError
	if !errors.As(err, &errno) || errors.As(err, &own) || errors.As(err, &told) {
		return err
	}
	return &SourceError{dir, err}
}

// atFault tells which of the two directories could not be opened.
func atFault(dir string, o *Options) string {
	if o != nil && o.FailedDir != "" {
		alone := *o
		alone.FailedDir = ""
		if s, err := open(dir, &alone); err == nil {
			dir = o.FailedDir
			s.Close() // it was opened to look only
		}
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return dir
}
