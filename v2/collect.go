//go:build unix

package holdfast

import (
	"context"
	"slices"
	"time"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// CollectOptions shape a Collect. The zero value works.
type CollectOptions struct {
	// DryRun only looks: it tells what would be freed, and works on a store that was
	// opened for looking.
	DryRun bool

	// StepEntries is how many objects and temporary files are looked at in one hold of
	// the lock; then others have their turn. Zero: 256. From 1 to 65536.
	StepEntries int

	// Progress is told after each hold of the lock, outside of it: it may use the
	// store. Nil: nobody is told.
	Progress func(CollectReport)
}

const (
	defaultStepEntries = 256
	mostStepEntries    = 1 << 16
)

// A CollectReport says what Collect has freed, and what stays and why.
type CollectReport struct {
	DryRun   bool   `json:"dry_run"`  // nothing was removed: Objects, Bytes, Temps and TempBytes are what would be
	Done     bool   `json:"done"`     // all that was there at the beginning was looked at
	Deferred bool   `json:"deferred"` // it stopped because somebody reads objects by their paths: see ErrDeferred
	Revision uint64 `json:"revision"` // of the state that was looked at last

	Objects   int64 `json:"objects"` // freed
	Bytes     int64 `json:"bytes"`   // of their files
	Temps     int64 `json:"temps"`   // leftover temporary files that were removed
	TempBytes int64 `json:"temp_bytes"`
	Named     int64 `json:"named"` // objects that the state or a run refers to

	// Kept is what nothing refers to and what stays all the same, by its reason.
	Kept []CollectKept `json:"kept"`

	Looked int64 `json:"looked"` // of Total
	Total  int64 `json:"total"`  // objects and temporary files at the beginning

	Holds       int64         `json:"holds"`           // how often the lock was held
	LongestHold time.Duration `json:"longest_hold_ns"` // of these, once the state was read
}

// A CollectKept is one reason for which something stays.
type CollectKept struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
	First  string `json:"first"`           // the first of them, relative to the store
	Error  string `json:"error,omitempty"` // that it met
}

// Why something is kept.
const (
	KeptName       = "not the name of an object"
	KeptKind       = "not a directory with an object's plain files alone"
	KeptTemp       = "a temporary file's name, but no plain file"
	KeptUnreadable = "cannot be read"
	KeptRefused    = "cannot be removed"
	KeptAhead      = "made ahead by this handle"
)

// Collect removes what no committed state can reach: objects that neither the state nor a
// run of it refers to, and temporary files of writers that were cut off. Nothing else calls
// it. It holds the lock for a bounded number of entries at a time and lets others in
// between. What it is not sure of it keeps, and counts in the report.
//
// An error tells why it stopped, and the report what was done until then: ErrStaleLock, a
// *CorruptError that names a run, for then nobody knows what that run refers to, or
// ErrDeferred. Where single entries could not be read or removed it goes on, and answers
// the first of these errors at its end. Nothing of it needs to be durable: whatever a crash
// leaves of a removal, nothing refers to it. It may be called again at any time, and takes
// what is left. It writes no state, and so works on a full disk.
func (s *Store) Collect(ctx context.Context, o CollectOptions) (CollectReport, error) {
	c := &collection{s: s, o: o, report: CollectReport{DryRun: o.DryRun, Kept: []CollectKept{}}}
	if err := c.check(); err != nil {
		return c.report, err
	}
	if err := c.list(); err != nil {
		return c.report, err
	}
	for !c.report.Done {
		if err := s.submit(ctx, c.call()); err != nil {
			return c.report, err
		}
		if c.known && !c.sifted {
			c.sift()
		}
		if c.o.Progress != nil {
			c.o.Progress(c.report.clone())
		}
	}
	return c.report, c.trouble
}

func (r CollectReport) clone() CollectReport {
	r.Kept = slices.Clone(r.Kept)
	return r
}

// check fills in the options and refuses before anything is read.
func (c *collection) check() error {
	if c.o.StepEntries == 0 {
		c.o.StepEntries = defaultStepEntries
	}
	switch {
	case c.o.StepEntries < 1 || c.o.StepEntries > mostStepEntries:
		return invalidf("a collection in steps of %d entries: from 1 to %d", c.o.StepEntries, mostStepEntries)
	case c.s.readOnly && !c.o.DryRun:
		return ErrReadOnly
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.closed {
		return queue.ErrClosed
	}
	return nil
}

// call is one hold of the lock. It goes alone: it rests on the committed state, which
// another call of its commit could not change under it, and its time is nobody else's.
func (c *collection) call() *call {
	return &call{writes: !c.o.DryRun, objects: maxGroupObjects + 1, decide: func(v *view) error {
		began := c.s.clock.Now().Wall
		err := c.hold(v)
		c.report.Holds++
		c.report.LongestHold = max(c.report.LongestHold, c.s.clock.Now().Wall.Sub(began))
		return err
	}}
}

// list notes what there is. It does so without the lock: under it every name is held
// against the state of that moment, and a name that comes later is of the next collection.
func (c *collection) list() error {
	p, err := c.s.repin(true)
	if err != nil {
		return err
	}
	defer p.close()
	temps, err := p.space.ReadDir()
	if err != nil {
		return err
	}
	c.temps = slices.DeleteFunc(temps, func(name string) bool {
		return !isTemp(name)
	})
	names, err := p.objects.ReadDir()
	if err != nil {
		return err
	}
	c.left = make(map[token]struct{}, len(names))
	for _, name := range names {
		t, ok := parseToken(name)
		if !ok {
			c.keep(KeptName, objectsDir+"/"+name, nil)
			c.report.Looked++
			continue
		}
		c.order = append(c.order, t)
		c.left[t] = struct{}{}
	}
	c.report.Total = int64(len(names) + len(c.temps))
	c.marks = map[token][]byte{}
	c.runs = newRunFiles(func() fsguard.Dir { return c.objects })
	return nil
}
