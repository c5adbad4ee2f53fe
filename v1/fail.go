//go:build unix

package holdfast

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
)

// Fail sets the claim c aside: it moves to the failed directory under its ID. On nil it
// is durably there and no longer in the queue. An entry of that ID in the failed directory
// is never replaced: ErrAlreadyExists, and both stay. An error that wraps ErrUncertain
// is finished by calling again. Else as Ack.
func (s *Store) Fail(ctx context.Context, c *Claim) error {
	return c.settling(func() error {
		return s.transfer(ctx, c.ID, func(t *transfer) error { return t.quarantine(c) })
	})
}

// FailID sets aside whatever claim of id stands, and claims its pending entry first if
// none does, as the npm package does. ErrNotFound: there is neither.
func (s *Store) FailID(ctx context.Context, id string) error {
	return s.transfer(ctx, id, func(t *transfer) error { return t.quarantine(nil) })
}

func (t *transfer) quarantine(c *Claim) error {
	if t.s.fail == nil {
		return ErrNoFailedDir
	}
	failed, err := t.s.fail.admit()
	if err != nil {
		return err
	}
	defer failed.Close()
	if err := t.recover(); err != nil {
		return err
	}
	claimed, durable, err := t.standing()
	if err != nil {
		return err
	}
	evidence, there, err := regular(failed, t.failed(), ErrNotFile)
	if err != nil {
		return err
	}
	// An earlier try may have set this very claim aside and then failed. What stands or
	// waits under its ID by now is newer.
	aside := there && c != nil && evidence.Identity == c.identity()
	if aside {
		half, err := t.same(c.identity())
		if err != nil {
			return err
		}
		aside = !half
	}
	switch {
	case aside:
		return t.departed(failed, evidence)
	case claimed:
		if err := t.belongs(c); err != nil {
			return err
		}
		if c == nil && !durable {
			// An earlier claim's sync may have failed. Lost with the power after the failed
			// name became durable, it would leave the entry in both directories.
			if err := t.sync(); err != nil {
				return err
			}
		}
		if there {
			return t.collide(failed, evidence)
		}
	case there && c == nil:
		if err := t.departed(failed, evidence); err != nil {
			return err
		}
		if _, waits, err := regular(t.q, t.pending, ErrNotFile); err != nil || waits {
			return cmp.Or(err, t.collision())
		}
		return nil
	case c != nil:
		return &Error{File: t.processing, What: ErrNotFound, Why: "the claim was settled by another consumer"}
	default:
		if claimed, err := t.claim(); err != nil {
			return err
		} else if !claimed {
			return &Error{File: t.pending, What: ErrNotFound}
		}
	}
	return t.publish(failed)
}

// publish puts the claim under its failed name and takes it out of the queue.
func (t *transfer) publish(failed fsguard.Dir) error {
	err := t.place(t.q, t.processing, failed, t.failed())
	if errors.Is(err, fs.ErrExist) {
		evidence, _, err := regular(failed, t.failed(), ErrNotFile)
		if err != nil {
			return err
		}
		return t.collide(failed, evidence)
	}
	if err != nil {
		return err
	}
	return t.depart(failed, t.s.opts.ClaimBy == HardLink)
}

// collide finishes an interrupted publication of this very claim, or says that the evidence
// that stands is another file.
func (t *transfer) collide(failed fsguard.Dir, evidence fsguard.Info) error {
	same, err := t.same(evidence.Identity)
	switch {
	case err != nil:
		return err
	case !same:
		return t.collision()
	}
	return t.depart(failed, true)
}

func (t *transfer) collision() error {
	return &Error{File: t.s.opts.FailedDir + "/" + t.failed(), What: ErrAlreadyExists,
		Why: "other evidence of this ID; it and the claim were left as they are"}
}

// depart takes the claim's name away, if it still has it, once its failed name is durable.
// Never before: power could be lost between the two.
func (t *transfer) depart(failed fsguard.Dir, named bool) error {
	if err := syncDir(failed, t.s.fail.path); err != nil {
		return err
	}
	if named {
		if err := t.q.Remove(t.processing); err != nil {
			return err
		}
	}
	return t.sync()
}

// departed answers for evidence that stands while nothing is claimed: an earlier try may
// have failed at one of the two syncs.
func (t *transfer) departed(failed fsguard.Dir, evidence fsguard.Info) error {
	if err := syncDir(failed, t.s.fail.path); err != nil {
		return err
	}
	if err := t.sync(); err != nil {
		return err
	}
	now, there, err := regular(failed, t.failed(), ErrNotFile)
	if err != nil {
		return err
	}
	if !there || now.Identity != evidence.Identity {
		return &Error{File: t.s.opts.FailedDir + "/" + t.failed(), What: ErrPathMismatch, Why: "changed while it was looked at"}
	}
	return nil
}
