//go:build unix && !linux && !darwin

package fsguard

import (
	"errors"
	"fmt"
)

// renameNew has no counterpart on these systems. A look and then a rename would
// replace what came between the two.
func renameNew(int, string, int, string) error {
	return fmt.Errorf("%w: this system cannot move a file without replacing", errors.ErrUnsupported)
}
