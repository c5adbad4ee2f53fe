//go:build unix

package fsguard

import (
	"errors"
	"strings"
)

// ErrName is returned, before any system call, when a name is not exactly one
// path component.
var ErrName = errors.New("is not one path component")

// CheckName returns ErrName unless name is exactly one component: not empty, not
// "." or "..", without a slash or a zero byte. With O_NOFOLLOW on top, no name
// that passes can lead out of its directory.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return ErrName
	}
	return nil
}
