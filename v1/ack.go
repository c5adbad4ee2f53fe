//go:build unix

package holdfast

import "context"

// Ack ends the claim c: its work is done. On nil the entry is durably gone. A claim that
// is gone already, by this call's earlier try or by another consumer of the same claim,
// is acknowledged, unless a newer entry waits under its ID: then, and when another claim
// stands in its place, the answer is ErrPathMismatch and nothing was changed. An error
// that wraps ErrUncertain is finished by calling again with the same Claim, whatever
// waits or is claimed under its ID by then.
func (s *Store) Ack(ctx context.Context, c *Claim) error {
	return c.settling(func() error {
		return s.transfer(ctx, c.ID, func(t *transfer) error { return t.ack(c) })
	})
}

// AckID ends whatever claim of id stands, as the npm package does: for a program that
// lost its Claim with its last process. It cannot tell a newer claim from its own.
func (s *Store) AckID(ctx context.Context, id string) error {
	return s.transfer(ctx, id, func(t *transfer) error { return t.ack(nil) })
}

// ack ends the claim that stands, if it is the one that c names; nil: whichever.
func (t *transfer) ack(c *Claim) error {
	if err := t.settled(); err != nil {
		return err
	}
	claimed, _, err := t.standing()
	if err != nil {
		return err
	}
	marker, marked, err := regular(t.q, t.delivered, ErrNotFile)
	if err != nil {
		return err
	}
	// An earlier try may have ended this very claim and then failed. What stands or waits
	// under its ID by now is newer.
	ended := c != nil && (c.isEnded() || marked && marker.Identity == c.identity())
	if claimed && !ended {
		if err := t.belongs(c); err != nil {
			return err
		}
		// Over a marker of an earlier entry, if one was left. From here the entry is no
		// longer claimed: it is delivered, whatever happens.
		if err := t.q.Rename(t.processing, t.delivered); err != nil {
			return err
		}
		marked, ended = true, true
		c.end()
		if err := t.sync(); err != nil {
			return err
		}
	}
	if marked {
		if err := t.q.Remove(t.delivered); err != nil {
			return err
		}
	}
	// Without a claim an earlier try may have failed at this very sync.
	if err := t.sync(); err != nil {
		return err
	}
	if ended {
		return nil
	}
	if _, there, err := regular(t.q, t.pending, ErrNotFile); err != nil || there {
		if err == nil {
			err = &Error{File: t.pending, What: ErrPathMismatch, Why: "no claim to acknowledge, and a newer entry waits; load it first"}
		}
		return err
	}
	return nil
}

// belongs says that the claim that stands is another than c, or nil.
func (t *transfer) belongs(c *Claim) error {
	if c == nil {
		return nil
	}
	same, err := t.same(c.identity())
	if err == nil && !same {
		err = &Error{File: t.processing, What: ErrPathMismatch, Why: "is a newer claim of this ID, not the one that was loaded; it was left alone"}
	}
	return err
}
