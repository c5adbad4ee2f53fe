//go:build unix

package holdfast

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/holdfast/queue"
)

// An importRecord is an import that the state remembers: for good once it is closed, so
// that going on with it again, after a crash of the importer, brings nothing twice.
type importRecord struct {
	token token
	queue string
	open  bool
}

// An imported is a foreign message whose names, time and payload were admitted.
type imported struct {
	id      string
	payload []byte
	state   ImportedState
	millis  int64 // Unix milliseconds; negative: now
}

// What the texts of an import take at most, beside names. With slotBytes they are more
// than any of what an import brings can take.
const (
	importBytes = 80 // a record, and the first one's feature and field
	markBytes   = 40
	backBytes   = 40 // of one that was claimed
	entryBytes  = 80 // of a failed one, its last error included
)

// importedError is the last error of what had failed before it came here.
const importedError = "imported from a v1 failed directory"

func (st *state) importIndex(t token) (int, bool) {
	return slices.BinarySearchFunc(st.imports, t.String(), func(m importRecord, text string) int { return cmp.Compare(m.token.String(), text) })
}

// importInto gives the open import into a queue.
func (st *state) importInto(name string) (t token, open bool) {
	for i := range st.imports {
		if m := &st.imports[i]; m.open && m.queue == name {
			return m.token, true
		}
	}
	return token{}, false
}

// unlessImporting refuses whatever would change a queue, or its messages, while an
// import into it is open: what came is not whole yet, and may be taken back.
func (d *draft) unlessImporting(name string) error {
	if t, open := d.st.importInto(name); open {
		return &ImportingError{Queue: name, Token: ImportToken(t)}
	}
	return nil
}

// setImports puts another list in place of the state's, which older states share.
func (d *draft) setImports(list []importRecord) {
	d.st.imports = list
	d.dirty = true
}

// openImport opens an import, or says of one that is there already whether it is closed.
func (d *draft) openImport(name string, t token) (closed bool, err error) {
	i, known := d.st.importIndex(t)
	if known {
		m := d.st.imports[i]
		if m.queue != name {
			return false, fmt.Errorf("import %s is into queue %q, not %q: make another token: %w", t, m.queue, name, queue.ErrInvalid)
		}
		return !m.open, nil
	}
	if err := d.unlessImporting(name); err != nil {
		return false, err
	}
	if len(d.st.imports) == maxImports {
		return false, fmt.Errorf("the store remembers %d imports, and takes no more: %w", maxImports, queue.ErrFull)
	}
	grows := int64(len(name) + importBytes)
	if err := d.fits("import into "+name, d.newQueueBytes(name)+grows); err != nil {
		return false, err
	}
	d.bytes += grows
	if d.st.queue(name) == nil {
		d.queue(name) // status shows what is open
	}
	d.setImports(slices.Insert(slices.Clone(d.st.imports), i, importRecord{token: t, queue: name, open: true}))
	return false, nil
}

// opened gives the place of an import that must be open, and closed where it is not.
func (d *draft) opened(t token) (i int, closed bool, err error) {
	i, known := d.st.importIndex(t)
	switch {
	case !known:
		return 0, false, fmt.Errorf("import %s is not open: it was abandoned: %w", t, ErrNotImporting)
	case !d.st.imports[i].open:
		return i, true, fmt.Errorf("import %s is closed: %w", t, ErrNotImporting)
	}
	return i, false, nil
}

// importAll takes every message that this import has not brought yet, or none of them.
func (d *draft) importAll(t token, ms []imported, maxState int64) (added int, err error) {
	i, _, err := d.opened(t)
	if err != nil {
		return 0, err
	}
	name := d.st.imports[i].queue
	err = d.atomically(func() error {
		var refused []queue.Refusal
		for i, m := range ms {
			switch brought, err := d.importOne(t, name, m, maxState); {
			case err != nil:
				refused = append(refused, queue.Refusal{Index: i, Err: err})
			case !brought:
				added++
			}
		}
		if refused != nil {
			return &queue.BatchError{Refused: refused}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return added, nil
}

// importOne takes one message; brought: this import has brought it before.
func (d *draft) importOne(t token, name string, m imported, maxState int64) (brought bool, err error) {
	if err := d.unseal(name, m.id); err != nil {
		return false, fmt.Errorf("%s/%s: %w", name, m.id, err)
	}
	q := d.st.queue(name)
	old, _ := q.find(m.id)
	grows := int64(len(m.id) + slotBytes + markBytes)
	switch m.state {
	case ImportedPending:
		if old != nil && old.pending != nil {
			return broughtBy(t, name, m, old.pending)
		}
	case ImportedClaimed:
		if old != nil && old.claimed != nil {
			return broughtBy(t, name, m, &old.claimed.ref)
		}
		grows += backBytes
	case ImportedFailed:
		e, _, err := d.st.lookFailed(q.failedNS, m.id)
		if err != nil {
			return false, fmt.Errorf("failed %q, for %s/%s: %w", m.id, name, m.id, err)
		}
		if e != nil {
			if e.ref.mark == t {
				return true, nil
			}
			return false, fmt.Errorf("failed %q, from %s/%s: %w", m.id, e.queue, e.id, queue.ErrFailedExists)
		}
		grows += int64(len(m.id)+len(name)+len(q.failedNS)) + entryBytes
	}
	if d.bytes+grows > maxState {
		return false, fmt.Errorf("%s/%s: state.json would pass %d bytes: %w", name, m.id, maxState, queue.ErrFull)
	}
	if m.state != ImportedFailed {
		if err := d.promise(name); err != nil {
			return false, fmt.Errorf("%s/%s: %w", name, m.id, err)
		}
	}
	d.bytes += grows
	d.bring(t, d.queue(name), old, m)
	return false, nil
}

// broughtBy says of a side that is taken that this import took it, or refuses the message.
func broughtBy(t token, name string, m imported, by *ref) (bool, error) {
	if by.mark == t {
		return true, nil
	}
	return false, fmt.Errorf("%s/%s: its %s side is taken, not by this import: %w", name, m.id, m.state, queue.ErrDuplicate)
}

// bring puts a message where it belongs: what was pending into the line, what was
// claimed on the claimed side, come back and forgiven, what had failed among the failed
// ones. It is counted as what would have brought it there.
func (d *draft) bring(t token, q *queueState, old *slot, m imported) {
	if m.millis < 0 {
		m.millis = d.millis
	}
	r := ref{
		gen: d.generation(), seq: q.next, size: int64(len(m.payload)), sum: checksum(m.payload),
		enqueued: m.millis, mark: t,
	}
	var pending *ref
	var claimed *claim
	if old != nil {
		pending, claimed = old.pending, old.claimed
	}
	it := item{queue: q.name, id: m.id, gen: r.gen, payload: m.payload}
	q.next++
	q.counters.Enqueued++
	switch m.state {
	case ImportedPending:
		q.put(m.id, &r, claimed)
	case ImportedClaimed:
		r.attempts, r.excused = 1, 1
		q.counters.Claimed++
		q.counters.Released++
		q.put(m.id, pending, &claim{ref: r, returned: released})
	case ImportedFailed:
		r.attempts, r.lastError = 1, importedError
		q.counters.Claimed++
		q.counters.Failed++
		f := d.space(q.failedNS)
		i, _ := failedIndex(f.entries, m.id)
		f.entries = slices.Insert(f.entries, i, &failedEntry{name: m.id, queue: q.name, id: m.id, ref: r, at: m.millis})
		it.space, it.failed = q.failedNS, m.id
	}
	d.write(it)
}

// closeImport ends an import: its marks go, and its record stays, closed. A closed one
// is closed.
func (d *draft) closeImport(t token) error {
	i, closed, err := d.opened(t)
	switch {
	case closed:
		return nil
	case err != nil:
		return err
	}
	name := d.st.imports[i].queue
	q := d.queue(name)
	for j, s := range q.slots {
		q.slots[j] = s.unmarked(t)
	}
	d.eachFailedOf(t, func(e *failedEntry) *failedEntry {
		c := *e
		c.ref.mark, c.enc = token{}, nil
		return &c
	})
	list := slices.Clone(d.st.imports)
	list[i].open = false
	d.setImports(list)
	return nil
}

// unmarked gives s without the marks of t: s itself where it has none. Nothing of its
// place in the line changes.
func (s *slot) unmarked(t token) *slot {
	next := &slot{id: s.id, pending: s.pending, claimed: s.claimed}
	found := false
	if r := s.pending; r != nil && r.mark == t {
		c := *r
		c.mark, next.pending, found = token{}, &c, true
	}
	if r := s.claimed; r != nil && r.mark == t {
		c := *r
		c.mark, next.claimed, found = token{}, &c, true
	}
	if !found {
		return s
	}
	return next
}

// abandonImport takes back what an open import has brought, and forgets it. One that
// is not known is forgotten. What goes is counted as cleared and as purged: a counter
// never goes back.
func (d *draft) abandonImport(t token) error {
	i, known := d.st.importIndex(t)
	switch {
	case !known:
		return nil
	case !d.st.imports[i].open:
		return fmt.Errorf("import %s is closed, what it brought stays: %w", t, ErrNotImporting)
	}
	q := d.queue(d.st.imports[i].queue)
	var keep []*slot
	for _, s := range q.slots {
		next := &slot{id: s.id, pending: s.pending, claimed: s.claimed}
		if r := s.pending; r != nil && r.mark == t {
			next.pending = nil
			q.counters.Cleared++
		}
		if c := s.claimed; c != nil && c.mark == t {
			next.claimed = nil
			q.counters.Cleared++
		}
		switch {
		case next.pending == s.pending && next.claimed == s.claimed:
			keep = append(keep, s)
		case next.pending != nil || next.claimed != nil:
			keep = append(keep, next)
		}
	}
	q.slots = keep
	q.buildLine()
	d.eachFailedOf(t, func(*failedEntry) *failedEntry {
		q.counters.Purged++
		return nil
	})
	d.setImports(slices.Delete(slices.Clone(d.st.imports), i, i+1))
	return nil
}

// eachFailedOf puts something else in the place of the failed messages that an import
// has brought; nil: they go. While it is open they stand inline.
func (d *draft) eachFailedOf(t token, change func(*failedEntry) *failedEntry) {
	for _, old := range slices.Clone(d.st.failed) {
		if !slices.ContainsFunc(old.entries, func(e *failedEntry) bool { return e.ref.mark == t }) {
			continue
		}
		f := d.space(old.name)
		var entries []*failedEntry
		for _, e := range f.entries {
			if e.ref.mark == t {
				e = change(e)
			}
			if e != nil {
				entries = append(entries, e)
			}
		}
		f.entries = entries
		d.unlessEmpty(f)
	}
}
