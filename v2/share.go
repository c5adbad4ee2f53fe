//go:build unix

package holdfast

import (
	"errors"
	"fmt"

	"example.com/holdfast/internal/fsguard"
)

// The lock of objects/ is between those who must open an object by its path after they
// have let go of the transfer lock, and those who remove objects. Both take it only while
// they hold the transfer lock, or before they read state.json without it, and never wait
// for it: readers share it from the state that names their objects until they have read
// them, a collector has it alone for what it removes in one hold. It protects only reading
// by path. Whoever has an object open reads on after it was removed.

// shareObjects gives objects/, on a description of its own, with its lock shared. ErrBusy:
// a collector has it.
func (p *pins) shareObjects() (fsguard.Dir, error) {
	objects, err := p.objects.OpenDir(".")
	if err != nil {
		return nil, err
	}
	free, err := objects.TryLock(fsguard.Shared)
	if err = lockError(err); err == nil && !free { // only a look without the transfer lock meets this
		err = fmt.Errorf("%s/ is being collected: %w", objectsDir, ErrBusy)
	}
	if err != nil {
		return nil, errors.Join(err, objects.Close())
	}
	return objects, nil
}

// ownObjects takes the lock of objects/ alone, on the pinned descriptor, if nobody shares it.
// Called under the exclusive transfer lock.
func (p *pins) ownObjects() (bool, error) {
	free, err := p.objects.TryLock(fsguard.Exclusive)
	return free, lockError(err)
}
