//go:build unix

package holdfast

import (
	"context"
	"errors"

	"example.com/holdfast/internal/fsguard"
)

// migrate gives c its migrated payload, if there is one.
func (s *Store) migrate(ctx context.Context, c *Claim, o *LoadOptions) error {
	if o == nil || o.Migrate == nil {
		return nil
	}
	payload, err := o.Migrate(ctx, c.ID, c.Payload)
	if err != nil || payload == nil {
		return err
	}
	text, err := layout(c.ID+processingSuffix, payload, s.opts.MaxEntryBytes)
	if err != nil {
		// In words alone: nothing is wrong with the entry itself.
		return &Error{File: c.ID + processingSuffix, What: ErrMigration, Why: err.Error()}
	}
	return s.transfer(ctx, c.ID, func(t *transfer) error {
		file, err := t.replaceClaim(c.identity(), text)
		if file == nil {
			return err
		}
		// The file is at the claim's name, whatever the sync said.
		c.mu.Lock()
		old := c.file
		c.file, c.Payload = file, text
		info, ierr := file.Info()
		c.fileID = info.Identity
		c.mu.Unlock()
		return errors.Join(err, ierr, old.Close())
	})
}

// replaceClaim writes text over the claim if that is still the file pin is. A file that
// comes back stands at the claim's name; with an error beside it, perhaps not durably.
func (t *transfer) replaceClaim(pin fsguard.Identity, text []byte) (fsguard.File, error) {
	current := func() error {
		claim, there, err := regular(t.q, t.processing, ErrPathMismatch)
		if err == nil && (!there || claim.Identity != pin || claim.Links != 1) {
			err = &Error{File: t.processing, What: ErrPathMismatch, Why: "is no longer the claim that was read; it was left alone"}
		}
		return err
	}
	if err := current(); err != nil {
		return nil, err
	}
	temp, err := writeTemp(t.q, t.s.opts.TempPrefix, text)
	if err != nil {
		return nil, err
	}
	err = current()
	if err == nil {
		err = t.q.Rename(temp.Name(), t.processing)
	}
	if err != nil {
		return nil, errors.Join(err, removeIf(t.q, temp.Name(), temp), temp.Close())
	}
	return temp, t.sync()
}
