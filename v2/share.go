//go:build unix

package holdfast

import (
	"errors"
	"fmt"

	"example.com/holdfast/internal/fsguard"
)

// The lock of objects/ is between those who must open an object by its path after they
// have let go of the transfer lock, and those who remove objects. Both take it only while
// they hold the transfer lock, and never wait for it: readers share it from the state that
// names their objects until they have read them, a collector has it alone for what it
// removes in one hold. It protects only reading by path. Whoever has an object open reads on
// after it was removed.

// shareObjects gives objects/ with its lock shared. Called under the transfer lock, or before
// state.json is read without it. Close it when nothing is opened by path any more.
func (p *pins) shareObjects() (fsguard.Dir, error) {
	d, err := openDir(p.space, objectsDir)
	if err != nil {
		return nil, err
	}
	info, err := d.Info()
	if err := same(objectsDir, info, err, p.objectsID); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	shared, err := d.TryLock(fsguard.Shared)
	if err == nil && !shared { // no collector of ours: it would hold the transfer lock
		err = fmt.Errorf("%s/: its lock is held by another program: %w", objectsDir, ErrDeferred)
	}
	if err != nil {
		return nil, errors.Join(lockError(err), d.Close())
	}
	return d, nil
}

// ownObjects takes the lock of objects/ alone, on the pinned descriptor, if nobody shares it.
// Called under the exclusive transfer lock.
func (p *pins) ownObjects() (bool, error) {
	free, err := p.objects.TryLock(fsguard.Exclusive)
	return free, lockError(err)
}
