//go:build unix

package holdfast

// Locks lists the transfer locks that stand, and what stands beside one that somebody
// takes away: those of transitions that run at this moment, and those that killed processes
// left. A Stale one is worth a look; its age proves nothing.
func (s *Store) Locks() ([]HeldLock, error) {
	found, err := (&Source{s: s}).Survey()
	return found.Locks, err
}

// RemoveLock removes a lock, or a .reclaim, by the file name that Locks or a LockError
// tells: the operator's act, whatever its age, for only you can know that its holder is
// gone. A holder that lives finds out after its transition and answers ErrPathMismatch;
// another may have worked on the same entry by then. ErrNotFound: none stands. On nil it is
// durably gone.
func (s *Store) RemoveLock(file string) (HeldLock, error) {
	return (&Source{s: s}).RemoveLock(file)
}
