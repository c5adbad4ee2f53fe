//go:build unix

package holdfast

import (
	"errors"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
)

// errUnowned is returned inside when a pending file has other names: it is not ours to
// claim.
var errUnowned = errors.New("has another hard link")

// claim makes sure that the entry is claimed, durably and whole, and reports whether
// there is one. A claim that stands already is the same claim for everybody.
func (t *transfer) claim() (bool, error) {
	if err := t.settled(); err != nil {
		return false, err
	}
	claimed, durable, err := t.standing()
	if claimed && !durable && err == nil {
		// The name may be the work of a transition whose sync failed, or of a migration's.
		err = t.sync()
	}
	if claimed || err != nil {
		return claimed && err == nil, err
	}
	pending, there, err := lstat(t.q, t.pending)
	if err != nil || !there || !pending.Mode.IsRegular() {
		return false, err // a stray is no entry
	}
	if pending.Links > 1 {
		return false, &Error{File: t.pending, What: ErrPathMismatch, Err: errUnowned}
	}
	// The claim: whichever generation has the pending name at this call is the claimed one.
	err = t.place(t.q, t.pending, t.q, t.processing)
	switch {
	case errors.Is(err, fs.ErrExist):
		// Only a consumer without the lock can have been faster. Its claim is as good.
		_, there, err := regular(t.q, t.processing, ErrNotFile)
		if err != nil || !there {
			return false, err
		}
		return true, t.sync()
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := t.sync(); err != nil {
		return false, err
	}
	return t.owned()
}

// owned checks what a fresh claim holds, and retires its source where the route left
// one.
func (t *transfer) owned() (bool, error) {
	explained := uint64(2) // the claim's name and the pending one
	if t.s.opts.ClaimBy == RenameNoReplace {
		explained = 1
	}
	claim, there, err := regular(t.q, t.processing, ErrNotFile)
	if err != nil {
		return false, err
	}
	if !there || claim.Links > explained {
		return false, &Error{File: t.processing, What: ErrPathMismatch, Err: errUnowned}
	}
	if t.s.opts.ClaimBy == RenameNoReplace {
		return true, nil
	}
	return true, t.retire()
}

// settled finishes what an earlier transition of this entry left undone: a retirement, and
// a quarantine that was cut off between its two names.
func (t *transfer) settled() error {
	if err := t.recover(); err != nil {
		return err
	}
	if t.s.fail == nil {
		return nil
	}
	claim, there, err := regular(t.q, t.processing, ErrNotFile)
	if err != nil || !there || claim.Links == 1 {
		return err
	}
	failed, err := t.s.fail.admit()
	if err != nil {
		return err
	}
	defer failed.Close()
	evidence, there, err := lstat(failed, t.failed())
	if err != nil || !there || evidence.Identity != claim.Identity {
		return err
	}
	return t.depart(failed, true)
}

// standing finishes a claim that stands, and reports whether there is one, and whether
// its name was synced on the way.
func (t *transfer) standing() (claimed, durable bool, err error) {
	claim, there, err := regular(t.q, t.processing, ErrNotFile)
	if err != nil || !there {
		return false, false, err
	}
	pending, is, err := lstat(t.q, t.pending)
	if err != nil {
		return false, false, err
	}
	if is && pending.Mode.IsRegular() && pending.Identity == claim.Identity {
		return true, true, t.retire() // cut off between the link and the retirement
	}
	return true, false, nil
}

// same reports whether the claim that stands is the file that pin is.
func (t *transfer) same(pin fsguard.Identity) (bool, error) {
	claim, there, err := regular(t.q, t.processing, ErrNotFile)
	return there && claim.Identity == pin, err
}
