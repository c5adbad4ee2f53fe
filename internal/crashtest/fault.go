//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"example.com/holdfast/internal/fsguard"
)

// A Wrapper is an fsguard.FS that passes every operation on to another, numbers
// it, and does to it what the plan says. The numbers are 1, 2, 3… in the order in
// which the operations begin. All methods may be called concurrently.
type Wrapper struct {
	inner fsguard.FS

	mu         sync.Mutex
	plan       Plan
	n          int
	matched    int
	groups     int
	moments    uint64 // how often Moment was asked
	fired      bool
	stopped    bool
	events     []*Event
	violations []string
	open       map[*handle]bool
}

var _ fsguard.FS = (*Wrapper)(nil)

// Wrap puts a plan over a filesystem, simulated or real.
func Wrap(inner fsguard.FS, plan Plan) *Wrapper {
	return &Wrapper{inner: inner, plan: plan, open: map[*handle]bool{}}
}

// Arm gives w another plan and starts numbers, counts and trace anew. What is open
// stays open.
func (w *Wrapper) Arm(plan Plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan, w.n, w.matched, w.fired, w.events = plan, 0, 0, false, nil
}

// Open lists the paths of the descriptions that are open, sorted.
func (w *Wrapper) Open() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for h := range w.open {
		out = append(out, h.path)
	}
	slices.Sort(out)
	return out
}

// A call is one operation on its way through the wrapper.
type call struct {
	op   fsguard.Op
	on   *handle // the description it is on, nil for a call of FS
	also *handle // the target directory of a move or link
	name string  // for the error
	path string  // for the trace
	from string  // the old path, of what has two
	// group is the sync group, 0 to make one if it is a sync.
	group int
	do    func() error
	undo  func() // gives back what do has opened, when do's success is hidden
}

// run numbers the call, does to it what the plan says and records it.
func (w *Wrapper) run(c call) error {
	e, act, fault := w.begin(c)
	if e == nil {
		return w.fail(c, fault)
	}
	var err error
	switch act {
	case stopBefore:
		w.stop()
		err = ErrStopped
	case failBefore:
		c.refuse()
		err = fault
	default:
		if err = c.do(); err == nil && act == failAfter {
			c.giveBack()
			err = fault
		} else if act == stopAfter {
			w.stop()
		}
	}
	return w.end(c, e, err)
}

// begin decides about the call and notes it in the trace. There is no event if the
// process is dead. The error is the one to answer with, if any.
func (w *Wrapper) begin(c call) (*Event, action, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil, 0, ErrStopped
	}
	isSync := syncs(c.op)
	e := &Event{Op: c.op, Path: c.path, From: c.from, Group: c.group}
	if isSync && e.Group == 0 {
		w.groups++
		e.Group = w.groups
	}
	if w.plan.Reads || changes(c.op) {
		w.n++
		e.N = w.n
	}
	w.events = append(w.events, e)
	if c.on != nil && c.on.closed || c.also != nil && c.also.closed {
		w.violate(e, "on a closed description")
	}
	if c.on != nil && c.on.unsound && isSync {
		w.violate(e, "on a description whose sync had failed")
	}
	act := w.plan.decide(e.N, c.op, c.path, &w.matched)
	w.fired = w.fired || act != perform
	return e, act, w.plan.Err
}

func (w *Wrapper) violate(e *Event, what string) {
	w.violations = append(w.violations, fmt.Sprintf("%s %s (operation %d) %s", e.Op, e.Path, e.N, what))
}

// end notes how the call went. A process that has died meanwhile learns nothing.
func (w *Wrapper) end(c call, e *Event, err error) error {
	w.mu.Lock()
	if w.stopped {
		if err == nil && c.undo != nil {
			defer c.undo()
		}
		err = ErrStopped
	}
	e.Err = err
	if c.on != nil {
		if c.op == fsguard.OpClose {
			c.on.closed = true
			delete(w.open, c.on)
		} else if err != nil && e.Group != 0 {
			c.on.unsound = true
		}
	}
	w.mu.Unlock()
	if err != nil {
		return w.fail(c, err)
	}
	return nil
}

// fail names err, unless the inner filesystem has.
func (w *Wrapper) fail(c call, err error) error {
	var named *fsguard.Error
	if errors.As(err, &named) {
		return err
	}
	if c.op == fsguard.OpExchange {
		err = fsguard.ExchangeError(err)
	}
	return &fsguard.Error{Op: c.op, Name: c.name, Err: err}
}

// stop is the death of the process. Only one operation has the plan's number, so it
// comes once.
func (w *Wrapper) stop() {
	w.mu.Lock()
	w.stopped = true
	onStop := w.plan.OnStop
	w.mu.Unlock()
	if onStop != nil {
		onStop()
	}
}

// refuse fails the call as the kernel would.
func (c call) refuse() {
	if c.op == fsguard.OpClose {
		_ = c.do()
	}
	if c.on != nil && syncs(c.op) {
		c.on.failSync()
	}
}

func (c call) giveBack() {
	if c.undo != nil {
		c.undo()
	}
}

// OpenRoot implements fsguard.FS.
func (w *Wrapper) OpenRoot(name string) (fsguard.Dir, error) {
	return w.openDir(call{op: fsguard.OpOpenRoot, name: name, path: name}, ".", func() (fsguard.Dir, error) {
		return w.inner.OpenRoot(name)
	})
}

// Stat implements fsguard.FS.
func (w *Wrapper) Stat(name string) (info fsguard.Info, err error) {
	err = w.run(call{op: fsguard.OpStat, name: name, path: name, do: func() (err error) {
		info, err = w.inner.Stat(name)
		return err
	}})
	return info, err
}

// SyncAll lets the inner filesystem sync the targets together, each as an
// operation of its own, all in one group.
func (w *Wrapper) SyncAll(targets ...fsguard.Syncer) error {
	w.mu.Lock()
	w.groups++
	group := w.groups
	w.mu.Unlock()
	together := make([]fsguard.Syncer, len(targets))
	for i, t := range targets {
		together[i] = t
		if data, ok := t.(fsguard.Data); ok {
			if f, ok := data.File.(*faultFile); ok {
				together[i] = inGroup{f.syncDataIn, group}
			}
		} else if g, ok := t.(interface{ syncIn(group int) error }); ok {
			together[i] = inGroup{g.syncIn, group}
		}
	}
	return w.inner.SyncAll(together...)
}

// inGroup is a target that knows which SyncAll it is part of.
type inGroup struct {
	sync  func(group int) error
	group int
}

func (g inGroup) Sync() error { return g.sync(g.group) }
