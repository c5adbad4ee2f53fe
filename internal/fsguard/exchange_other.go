//go:build unix && !linux && !darwin

package fsguard

import (
	"errors"
	"fmt"
)

// exchange has no counterpart on these systems. Of three renames a reader and a crash
// would see the middle.
func exchange(int, string, int, string) error {
	return fmt.Errorf("%w: this system cannot exchange two names", errors.ErrUnsupported)
}
