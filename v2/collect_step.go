//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A collection is one Collect at work. Between two holds of the lock it belongs to its
// caller, inside one to run.
type collection struct {
	s      *Store
	o      CollectOptions
	report CollectReport

	temps  []string           // listed, and not looked at yet
	order  []token            // so are these objects
	left   map[token]struct{} // of them, those that nothing was seen to refer to
	known  bool               // what is left was looked for once in the whole state
	sifted bool               // and order has no others

	objects fsguard.Dir      // during a hold
	runs    *runFiles        // reads runs for marks
	marks   map[token][]byte // the runs whose members were taken off left: who was gone then

	trouble  error // the first error about a single entry
	troubles int
}

// Bounds of one hold, beside its entries.
const (
	maxRemovedBytes = 64 << 20 // a filesystem takes its time to free what is large
	maxTroubles     = 64       // entries that meet an error, before it is taken for everybody's
)

// maxMarkedBytes is how much of runs one hold reads. Tests read less.
var maxMarkedBytes int64 = 4 << 20

// hold is what is done in one hold of the lock.
func (c *collection) hold(v *view) error {
	if !v.settled { // a dry run; whoever writes was refused before
		return &StaleLockError{Owner: *v.owner}
	}
	// The committed state, never one in the making: what that drops is still named by what
	// stands on the disk.
	st := v.draft.base
	c.report.Revision = st.revision
	c.objects = v.pins.objects
	marked, err := c.markRuns(st)
	if err != nil || !marked {
		return err
	}
	st.inlineRefs(func(_, _ string, r *ref) bool {
		c.named(r.object)
		return true
	})
	if !c.known {
		c.known = true // what is named is sifted out before the next hold
		return nil
	}
	if c.o.DryRun {
		return c.step(v.pins)
	}
	return c.removing(v.pins, func() error { return c.step(v.pins) })
}

// removing lets do remove objects. Before anything goes that older states may refer to, the
// rename of this one is made durable, through a newly opened descriptor: who committed it
// has done so, but that is not known of who put it there by hand. And nobody may be reading
// by path.
func (c *collection) removing(p *pins, do func() error) (err error) {
	free, err := p.ownObjects()
	if err != nil {
		p.spent = true // whether it is held is not known: closing the descriptors lets it go
		return err
	}
	if !free {
		c.report.Deferred = true
		return fmt.Errorf("%s/: %w", objectsDir, ErrDeferred)
	}
	defer func() {
		if e := p.objects.Unlock(); e != nil {
			p.spent = true // closing the descriptors lets the lock go
		}
	}()
	parent, err := p.space.OpenDir(".")
	if err != nil {
		return err
	}
	defer parent.Close() // only synced
	if err := parent.Sync(); err != nil {
		p.doubted = true
		return syncError(err)
	}
	return do()
}

// sift takes what is named off the list, outside of the lock.
func (c *collection) sift() {
	c.sifted = true
	before := len(c.order)
	c.order = slices.DeleteFunc(c.order, func(t token) bool { _, orphan := c.left[t]; return !orphan })
	c.report.Looked += int64(before - len(c.order))
}

// step looks at the next entries, as many as one hold may.
func (c *collection) step(p *pins) error {
	before := c.report.Bytes + c.report.TempBytes
	for n := 0; n < c.o.StepEntries && c.report.Bytes+c.report.TempBytes-before < maxRemovedBytes; {
		var err error
		switch {
		case len(c.temps) > 0:
			name := c.temps[0]
			c.temps = c.temps[1:]
			n++
			err = c.temp(p, name)
		case len(c.order) > 0:
			t := c.order[0]
			c.order = c.order[1:]
			if _, orphan := c.left[t]; orphan {
				delete(c.left, t)
				n++
				err = c.orphan(p, t)
			}
		default:
			c.report.Done = true
			return nil
		}
		c.report.Looked++
		if err != nil {
			return err
		}
	}
	c.report.Done = len(c.temps) == 0 && len(c.order) == 0
	return nil
}

// named takes an object off those that may go.
func (c *collection) named(object token) {
	if _, ok := c.left[object]; ok {
		delete(c.left, object)
		c.report.Named++
	}
}

// keep counts something that stays. An error is told at the end; one that every further
// entry would meet too is returned at once.
func (c *collection) keep(reason, name string, err error) error {
	at := -1
	for i := range c.report.Kept {
		if c.report.Kept[i].Reason == reason {
			at = i
		}
	}
	if at < 0 {
		at = len(c.report.Kept)
		c.report.Kept = append(c.report.Kept, CollectKept{Reason: reason, First: name})
	}
	k := &c.report.Kept[at]
	k.Count++
	if err == nil {
		return nil
	}
	if k.Error == "" {
		k.Error = err.Error()
	}
	if c.trouble == nil {
		c.trouble = err
	}
	if c.troubles++; c.troubles == maxTroubles || everywhere(err) {
		return c.trouble
	}
	return nil
}

// everywhere reports whether err is about the process or the filesystem, not about the one
// entry that met it.
func everywhere(err error) bool {
	return isAny(err, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EROFS)
}

// otherKind reports whether err says that something is not of the kind that it must be.
func otherKind(err error) bool {
	return errors.Is(err, fsguard.ErrSymlink) || errors.Is(err, fsguard.ErrNotPlain) || errors.Is(err, fsguard.ErrLinked)
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func invalidf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, queue.ErrInvalid)...)
}
