//go:build unix

package holdfast

import (
	"cmp"
	"slices"
	"time"
)

// A part is where the payload of one message lies.
type part struct {
	object    token
	off, size int64
	sum       uint32
	queue, id string
}

func comparePlaces(a, b part) int {
	return cmp.Or(slices.Compare(a.object[:], b.object[:]), cmp.Compare(a.off, b.off))
}

// gather goes once through everything that the state and its runs refer to, and reads each
// run once. Damaged runs are left out: their messages cannot be looked at.
func (x *inspection) gather() error {
	r, sound := &x.report, newSoundness()
	for _, m := range x.st.imports {
		if m.open {
			r.OpenImports++
		}
	}
	for _, q := range x.st.queues {
		sound.queue()
		for _, s := range q.slots {
			sound.slot(q, s)
			x.slot(q.name, s)
		}
		for _, run := range q.runs {
			b, err := x.st.reader.members(run)
			whole, err := x.readable(run.name, q.name, err)
			if err != nil {
				return err
			}
			if !whole {
				continue
			}
			for i, s := range b.slots {
				if run.has(i) {
					sound.member(q, s)
					x.slot(q.name, s)
				}
			}
		}
	}
	oldest := int64(-1)
	evidence := func(e *failedEntry) {
		x.part(e.queue, e.id, &e.ref)
		r.Failed++
		if oldest < 0 || e.at < oldest {
			oldest = e.at
		}
	}
	for _, f := range x.st.failed {
		sound.space()
		for _, e := range f.entries {
			sound.ref(&e.ref)
			evidence(e)
		}
		for _, run := range f.runs {
			all, err := x.st.reader.buried(run)
			whole, err := x.readable(run.name, "", err)
			if err != nil {
				return err
			}
			if !whole {
				continue
			}
			for i, e := range all {
				if run.has(i) {
					sound.buried(f, e)
					evidence(e)
				}
			}
		}
	}
	if oldest >= 0 {
		at := time.UnixMilli(oldest).UTC()
		r.OldestFailed = &at
	}
	if err := sound.verdict(); err != nil {
		r.fault("run", stateFile, err.Error())
	}
	x.oneUseEach()
	return nil
}

// oneUseEach notes messages whose payload lies in what is named as a run: an object has one
// file. That no two runs are one the decoder sees to.
func (x *inspection) oneUseEach() {
	runs := map[token]bool{}
	for _, run := range x.st.sealed() {
		runs[run.name] = true
	}
	for _, p := range x.parts {
		if runs[p.object] {
			x.report.Faults = append(x.report.Faults, Fault{
				Code: "run", File: payloadPath(p.object), Queue: p.queue, ID: p.id, Reason: "the payload is said to lie in an object that is named as a run",
			})
		}
	}
}

// readable notes a run that was read, or that is damaged.
func (x *inspection) readable(name token, queueName string, err error) (whole bool, unread error) {
	whole, err = x.report.run(name, queueName, err)
	if whole {
		x.named[name] = true
	} else {
		x.damaged = true
	}
	return whole, err
}

func (x *inspection) slot(name string, s *slot) {
	for _, r := range s.refs() {
		x.part(name, s.id, r)
		x.report.Messages++
	}
	if c := s.claimed; c != nil && c.returned == leased {
		x.report.Processing++
		if c.lease.over(x.now) {
			x.report.Overdue++
		}
	}
}

func (x *inspection) part(name, id string, r *ref) {
	x.parts = append(x.parts, part{r.object, r.off, r.size, r.sum, name, id})
	x.named[r.object] = true
}
