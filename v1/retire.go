//go:build unix

package holdfast

import (
	"errors"
	"io/fs"
	"path"

	"example.com/holdfast/internal/fsguard"
)

// After a claim by link the pending name still means the claimed file, or already a
// newer one: producers replace it without the lock. Retirement takes whatever is there into
// a record, compares it with the claim by device and inode, and puts a newer one back
// unless a still newer one came. Each step can be told from what it leaves:
//
//	.fs-safe-retirements/                     may stay for ever
//	.fs-safe-retirements/ID.json/             empty: nothing was taken, or it was dealt with
//	.fs-safe-retirements/ID.json/entry        taken, not dealt with: recover does so

// recover finishes the retirement that an earlier transition began, if there is one. It
// comes before every other step.
func (t *transfer) recover() error {
	root, err := openIn(t.q, retirementsDir)
	if root == nil || err != nil {
		return err
	}
	defer root.Close()
	record, err := openIn(root, t.pending)
	if record == nil || err != nil {
		return err
	}
	defer record.Close()
	return t.finish(root, record)
}

// openIn opens the directory name in dir; nil if there is nothing.
func openIn(dir fsguard.Dir, name string) (fsguard.Dir, error) {
	sub, err := dir.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if notPlain(err) {
		return nil, &Error{File: path.Join(dir.Name(), name), What: ErrPathMismatch, Why: "a retirement record is a directory", Err: err}
	}
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// finish deals with what is in the record and takes the record away.
func (t *transfer) finish(root, record fsguard.Dir) error {
	inside, err := record.ReadDir()
	switch {
	case err != nil:
		return err
	case len(inside) == 0:
		return t.unrecord(root)
	case len(inside) != 1 || inside[0] != retiredEntry:
		return t.ambiguous("holds something else than one entry")
	}
	taken, there, err := lstat(record, retiredEntry)
	if err != nil {
		return err
	}
	if there && !taken.Mode.IsRegular() {
		return t.ambiguous("holds what is no plain file")
	}
	claim, claimed, err := regular(t.q, t.processing, ErrPathMismatch)
	if err != nil {
		return err
	}
	if !there || !claimed {
		return t.ambiguous("stands beside no claim")
	}
	if taken.Identity != claim.Identity {
		gone, err := t.restore(record, taken, claim)
		if err != nil {
			return err
		}
		if gone {
			return errors.Join(syncDir(record, retirementsDir+"/"+t.pending), t.unrecord(root))
		}
	}
	// The taken file is the claim itself, or has its pending name back, or was superseded
	// by a newer one under that name: the entry may go.
	if err := record.Remove(retiredEntry); err != nil {
		return err
	}
	if err := syncDir(record, retirementsDir+"/"+t.pending); err != nil {
		return err
	}
	return t.unrecord(root)
}

func (t *transfer) ambiguous(why string) error {
	return &Error{File: path.Join(retirementsDir, t.pending), What: ErrPathMismatch,
		Why: "the retirement record " + why + "; docs/format-v1.md tells what may be in it"}
}

// restore gives a newer generation, which the retirement took, its pending name back,
// unless a still newer one has it. It reports whether the entry is gone with that.
func (t *transfer) restore(record fsguard.Dir, taken, claim fsguard.Info) (gone bool, err error) {
	for range 2 {
		there, is, err := regular(t.q, t.pending, ErrPathMismatch)
		switch {
		case err != nil:
			return false, err
		case is && there.Identity == taken.Identity:
			return false, t.sync() // restored by an earlier try, perhaps not durably
		case is && there.Identity == claim.Identity && there.Links == 2:
			// A loss of power undid the rename that had put the taken one in the place of the
			// claim's own name, and not the move into the record. Its producer was never
			// answered: it is the temporary file again that it was.
			if err := record.Move(retiredEntry, t.q, tempName(t.s.opts.TempPrefix)); err != nil {
				return false, err
			}
			return true, t.sync()
		case is && there.Links > 1:
			return false, &Error{File: t.pending, What: ErrPathMismatch, Why: "the newer entry has several links: which one it is cannot be told"}
		case is:
			// Superseded. But the producer may not have synced its rename yet: were the
			// entry dropped first, a loss of power could take both.
			return false, t.sync()
		}
		err = t.place(record, retiredEntry, t.q, t.pending)
		if errors.Is(err, fs.ErrExist) {
			continue // a producer was faster: look again
		}
		if err != nil {
			return false, err
		}
		return t.s.opts.ClaimBy == RenameNoReplace, t.sync()
	}
	return false, &Error{File: t.pending, What: ErrPathMismatch, Why: "appears and vanishes; is there a consumer that takes no lock?"}
}

// unrecord removes the empty record.
func (t *transfer) unrecord(root fsguard.Dir) error {
	if err := root.RemoveDir(t.pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(root, retirementsDir)
}

// retire takes the pending name's file away from it. The caller made a claim.
func (t *transfer) retire() error {
	if err := t.recover(); err != nil {
		return err
	}
	if err := t.q.Mkdir(retirementsDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Another process may have made the directory and not synced it.
	if err := t.sync(); err != nil {
		return err
	}
	root, err := t.q.OpenDir(retirementsDir)
	if notPlain(err) {
		return &Error{File: retirementsDir, What: ErrPathMismatch, Why: "not a directory", Err: err}
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir(t.pending); err != nil {
		return err
	}
	if err := syncDir(root, retirementsDir); err != nil {
		return err
	}
	record, err := root.OpenDir(t.pending)
	if err != nil {
		return err
	}
	defer record.Close()
	err = t.q.Move(t.pending, record, retiredEntry)
	if errors.Is(err, fs.ErrNotExist) {
		return t.unrecord(root)
	}
	if err != nil {
		return err
	}
	if err := syncDir(record, retirementsDir+"/"+t.pending); err != nil {
		return err
	}
	if err := t.sync(); err != nil {
		return err
	}
	return t.finish(root, record)
}
