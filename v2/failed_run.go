//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Evidence that nobody looks at is not written by every commit either: the older failed
// messages of a namespace are sealed as runs too. One is looked up by its name, through
// the filter; purged or reprocessed it is marked as gone in the reference, by a commit
// that writes no run. Nothing comes back inline.

// A failedRun is a block of failed messages of one namespace that left state.json. The
// members are of no open import. It is immutable, as a run is.
type failedRun struct {
	sealedObject

	// The smallest and the largest name, gone ones included: these never change, so that
	// taking a member out cannot make the reference longer but for its marks.
	first, last string

	queues []queueShare // of the members that are still in it, by queue name
}

// A queueShare is how many of a run's members came from one queue.
type queueShare struct {
	name  string
	count uint64
}

// compareFailed is the order of failed messages within a namespace and a run.
func compareFailed(a, b *failedEntry) int { return strings.Compare(a.name, b.name) }

// tally works out what a reference says of the members, which stand in all.
func (r *failedRun) tally(all []*failedEntry) {
	r.first, r.last, r.queues = all[0].name, all[len(all)-1].name, nil
	n := map[string]uint64{}
	for i, e := range all {
		if r.has(i) {
			n[e.queue]++
		}
	}
	for name, count := range n {
		r.queues = append(r.queues, queueShare{name, count})
	}
	slices.SortFunc(r.queues, func(a, b queueShare) int { return strings.Compare(a.name, b.name) })
}

// from counts the members of one queue that are still in the run.
func (r *failedRun) from(queueName string) uint64 {
	for _, s := range r.queues {
		if s.name == queueName {
			return s.count
		}
	}
	return 0
}

// without gives r without one member, or nil when none is left.
func (r *failedRun) without(all []*failedEntry, name string) *failedRun {
	next := *r
	next.sealedObject = r.leave(func(i int) bool { return all[i].name == name })
	if next.live() == 0 {
		return nil
	}
	next.tally(all)
	return &next
}

// goneRoom is more than the marks of members that left can add to a run's reference.
func (r *failedRun) goneRoom() int64 {
	if r.gone != nil {
		return 0
	}
	return int64(len(`,"x":""`) + 2*((r.count+7)/8))
}

// setRun puts next in the place of the run that is named so, or takes that away. The
// list of a published state stays as it is. Runs stand in the order of their tokens.
func (f *failedSpace) setRun(name token, next *failedRun) {
	list := slices.DeleteFunc(slices.Clone(f.runs), func(r *failedRun) bool { return r.name == name })
	if next != nil {
		list = append(list, next)
	}
	slices.SortFunc(list, func(a, b *failedRun) int { return slices.Compare(a.name[:], b.name[:]) })
	f.runs = list
}

// live counts the failed messages of the namespace.
func (f *failedSpace) live() int64 {
	n := int64(len(f.entries))
	for _, r := range f.runs {
		n += int64(r.live())
	}
	return n
}

// sealed gives the failed message of a name that lies in a run, and the run; or nil. A
// run that cannot be read is an error only where none of the others has the name.
func (f *failedSpace) sealed(reader runReader, name string) (e *failedEntry, in *failedRun, err error) {
	for _, r := range f.runs {
		e, unread := r.find(reader, name)
		if e != nil {
			return e, r, nil
		}
		if err == nil {
			err = unread
		}
	}
	return nil, nil, err
}

// find gives the member of a name that is still in the run, or nil.
func (r *failedRun) find(reader runReader, name string) (*failedEntry, error) {
	if name < r.first || name > r.last {
		return nil, nil
	}
	if may, err := reader.mayHold(&r.sealedObject, name); !may || err != nil {
		return nil, lostRun(err, waysOfFailed)
	}
	all, err := reader.buried(r)
	if err != nil {
		return nil, err
	}
	if i, ok := failedIndex(all, name); ok && r.has(i) {
		return all[i], nil
	}
	return nil, nil
}

// lookFailed gives the named failed message, inline or sealed, or nil; in is the run
// that it lies in, nil: it stands inline.
func (st *state) lookFailed(space, name string) (e *failedEntry, in *failedRun, err error) {
	i, ok := st.spaceIndex(space)
	if !ok {
		return nil, nil, nil
	}
	if e := st.failedEntry(space, name); e != nil {
		return e, nil, nil
	}
	return st.failed[i].sealed(st.reader, name)
}

// after gives the first failed messages whose names come behind one, in order of their
// names: of one queue, or of all (""). Of the runs it reads those that may have one of
// them.
func (f *failedSpace) after(reader runReader, name, queueName string, most int) ([]*failedEntry, error) {
	var page []*failedEntry
	pick := func(list []*failedEntry, has func(int) bool) {
		i, found := failedIndex(list, name)
		if found {
			i++
		}
		for n := 0; i < len(list) && n < most; i++ {
			if has(i) && (queueName == "" || list[i].queue == queueName) {
				page = append(page, list[i])
				n++
			}
		}
		slices.SortFunc(page, compareFailed)
		page = page[:min(most, len(page))]
	}
	pick(f.entries, func(int) bool { return true })
	runs := slices.SortedFunc(slices.Values(f.runs), func(a, b *failedRun) int { return strings.Compare(a.first, b.first) })
	for _, r := range runs {
		if len(page) == most && r.first > page[most-1].name {
			break
		}
		if r.last <= name || queueName != "" && r.from(queueName) == 0 {
			continue
		}
		all, err := reader.buried(r)
		if err != nil {
			return nil, err
		}
		pick(all, r.has)
	}
	return page, nil
}

// eachSealed calls yield with every failed message in the namespace's runs, until it says no.
func (f *failedSpace) eachSealed(reader runReader, yield func(e *failedEntry) bool) error {
	for _, r := range f.runs {
		all, err := reader.buried(r)
		if err != nil {
			return err
		}
		for i, e := range all {
			if r.has(i) && !yield(e) {
				return nil
			}
		}
	}
	return nil
}

// takeOut takes evidence that lookFailed has found out of its namespace, for good or to
// stand inline in its queue. It is refused, and nothing has changed, where what a run
// brings cannot stand beside what is inline.
func (d *draft) takeOut(space string, e *failedEntry, in *failedRun) error {
	if in == nil {
		d.unbury(space, e.name)
		return nil
	}
	if err := d.st.clashes(&e.ref); err != nil {
		return &CorruptError{File: runPath(in.name), Offset: -1, Reason: err.Error()}
	}
	all, err := d.st.reader.buried(in)
	if err != nil {
		return err
	}
	f := d.space(space)
	f.setRun(in.name, in.without(all, e.name))
	d.bytes += in.goneRoom()
	d.unlessEmpty(f)
	return nil
}

// purgeLost takes the runs of a namespace out that reader finds damaged, with all that is
// still in them. What the references say of that is all that is known of it.
func (d *draft) purgeLost(space string, reader runReader) (purged uint64, err error) {
	i, ok := d.st.spaceIndex(space)
	if !ok {
		return 0, nil
	}
	var gone []*failedRun
	for _, r := range d.st.failed[i].runs {
		_, err := reader.buried(r)
		switch {
		case err == nil:
			continue
		case !errors.Is(err, ErrCorrupt):
			return 0, err
		}
		for _, s := range r.queues {
			if err := d.unlessImporting(s.name); err != nil {
				return 0, err
			}
		}
		gone = append(gone, r)
	}
	if len(gone) == 0 {
		return 0, nil
	}
	f := d.space(space)
	for _, r := range gone {
		f.setRun(r.name, nil)
		for _, s := range r.queues {
			d.queue(s.name).counters.Purged += s.count
			purged += s.count
		}
	}
	d.unlessEmpty(f)
	return purged, nil
}

// clashes says why a reference that comes out of a run cannot stand inline, or nil.
func (st *state) clashes(r *ref) error {
	var err error
	st.inlineRefs(func(_, _ string, other *ref) bool {
		switch {
		case other.gen == r.gen:
			err = fmt.Errorf("generation %s is in %s too", r.gen, stateFile)
		case other.object == r.object && other.off < r.off+r.size && r.off < other.off+other.size:
			err = fmt.Errorf("bytes %d to %d of object %s are named in %s too", r.off, r.off+r.size, r.object, stateFile)
		}
		return err == nil
	})
	return err
}
