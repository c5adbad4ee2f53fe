//go:build unix

package doctor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"example.com/holdfast/internal/fsguard"
)

// scratchPrefix begins the name of every scratch directory.
const scratchPrefix = ".holdfast-doctor-"

// The names that the doctor's other tests work under.
const (
	KillPrefix = "holdfast-kill-test-" // of the directory of a kill test's store
	PowerName  = "holdfast-power-test"
)

// WithoutScratch is what is seen of a check that would be made in the scratch directory
// where there is none.
const WithoutScratch = "without a scratch directory"

// isLeftover tells the names that a doctor's tests leave when they are killed, or are
// meant to.
func isLeftover(name string) bool {
	return name == PowerName || strings.HasPrefix(name, scratchPrefix) || strings.HasPrefix(name, KillPrefix)
}

// makeScratch makes the scratch directory. That it cannot be made is a finding.
func (e *exam) makeScratch() error {
	e.name = scratchPrefix + strings.ToLower(rand.Text())
	if e.refusal = e.root.Mkdir(e.name); e.refusal != nil {
		return nil
	}
	scratch, err := e.root.OpenDir(e.name)
	if err != nil {
		return errors.Join(err, e.root.RemoveDir(e.name))
	}
	e.scratch = scratch
	return nil
}

// removeScratch removes it with all that the tries left in it.
func (e *exam) removeScratch() error {
	if e.scratch == nil {
		return nil
	}
	err := errors.Join(sweep(e.scratch), e.scratch.Close(), e.root.RemoveDir(e.name))
	if err != nil {
		return fmt.Errorf("the scratch directory %s could not be removed: %w", e.name, err)
	}
	return nil
}

// sweep empties a directory. A symlink is removed and never followed.
func sweep(d fsguard.Dir) error {
	names, err := d.ReadDir()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		info, err := d.Lstat(name)
		switch {
		case err != nil:
		case info.Mode.IsDir():
			err = sweepBelow(d, name)
		default:
			err = d.Remove(name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func sweepBelow(d fsguard.Dir, name string) error {
	below, err := d.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(sweep(below), below.Close(), d.RemoveDir(name))
}
