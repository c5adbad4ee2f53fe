//go:build unix

package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"example.com/holdfast/queue"
)

// Status gives the gauges and counters of queues from one revision, under the
// lock. An unknown queue is empty, and so complete. Where the last owner did not finish, the status
// is unsettled, and never complete.
func (s *Store) Status(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
	for _, name := range o.Queues {
		if err := queue.CheckQueue(name); err != nil {
			return queue.Status{}, err
		}
	}
	var out queue.Status
	err := s.look(ctx, func(v *view) error {
		var err error
		if out, err = v.draft.st.status(o.Queues, v.draft.now); err != nil {
			return err
		}
		out.Revision = v.revision()
		out.Settled, out.Owner = v.settled, v.owner
		if !o.Orphans {
			return nil
		}
		out.Orphans, out.OrphanBytes, err = orphans(v.pins, v.draft.st)
		if isDamage(err) { // what a run that cannot be read names is not known
			out.Orphans, out.OrphanBytes, err = -1, -1, nil
		}
		return err
	})
	return out, err
}

// revision is the one that this look is true of: the draft's if the commit that it
// waits for changes something, else the one on disk.
func (v *view) revision() uint64 {
	if v.draft.dirty {
		return v.draft.st.revision
	}
	return v.draft.base.revision
}

// Peek shows the next n messages that a claim would take, with their payloads. It
// moves nothing. A payload that cannot be delivered shows as its LastError. In a queue
// with an open import they are those that a claim would take if it were closed now.
func (s *Store) Peek(ctx context.Context, name string, n int) ([]queue.Entry, error) {
	if err := queue.CheckQueue(name); err != nil {
		return nil, err
	}
	if n < 1 || n > maxClaim {
		return nil, fmt.Errorf("a peek at %d messages: from 1 to %d: %w", n, maxClaim, queue.ErrInvalid)
	}
	var out []queue.Entry
	err := s.look(ctx, func(v *view) error {
		out = nil
		q := v.draft.st.queue(name)
		if q == nil || q.paused {
			return nil
		}
		q, err := v.draft.st.reached(q, v.draft.millis, n)
		if err != nil {
			return err
		}
		for p := range q.turns(false) {
			if len(out) == n {
				break
			}
			s, _ := q.find(p.id)
			r, back := s.front()
			e := entryOf(name, s.id, r)
			if e.State = queue.Ready; back {
				e.Returned = s.claimed.returned.String()
			}
			e, err := v.open(e, r)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

// open adds the payload to a look at a message.
func (v *view) open(e queue.Entry, r *ref) (queue.Entry, error) {
	payload, damage, err := v.load(r)
	if err != nil {
		return e, err
	}
	e.Payload = payload
	if damage != "" {
		e.LastError = "damaged payload: " + damage
	}
	return e, nil
}

// Show shows the live generations of one ID, the older first, with their payloads.
func (s *Store) Show(ctx context.Context, name, id string) ([]queue.Entry, error) {
	if err := checkNames(name, id); err != nil {
		return nil, err
	}
	var out []queue.Entry
	err := s.look(ctx, func(v *view) error {
		out = nil
		q := v.draft.st.queue(name)
		if q == nil {
			return fmt.Errorf("%s/%s: %w", name, id, queue.ErrNotFound)
		}
		s, err := v.draft.st.look(q, id)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", name, id, err)
		}
		if s == nil {
			return fmt.Errorf("%s/%s: %w", name, id, queue.ErrNotFound)
		}
		for _, e := range v.draft.st.entries(q.at(v.draft.millis), s, v.draft.now) {
			r := s.pending
			if s.claimed != nil && e.Seq == s.claimed.seq {
				r = &s.claimed.ref
			}
			e, err := v.open(e, r)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// pageLimit is the page of a listing that names none.
const pageLimit = 100

// List shows the live messages of a queue in order of their enqueue sequence, a page at
// a time.
func (s *Store) List(ctx context.Context, name string, o queue.ListOptions) (queue.Page, error) {
	if err := queue.CheckQueue(name); err != nil {
		return queue.Page{}, err
	}
	after := uint64(0)
	if o.After != "" {
		n, err := strconv.ParseUint(o.After, 10, 64)
		if err != nil || n >= maxNumber {
			return queue.Page{}, fmt.Errorf("page mark %q: %w", o.After, queue.ErrInvalid)
		}
		after = n + 1
	}
	limit, err := checkLimit(o.Limit)
	if err != nil {
		return queue.Page{}, err
	}
	var page queue.Page
	err = s.look(ctx, func(v *view) error {
		page = queue.Page{Revision: v.revision(), Settled: v.settled}
		q := v.draft.st.queue(name)
		if q == nil {
			return nil
		}
		q = q.at(v.draft.millis)
		stands, err := q.from(v.draft.st.reader, after, limit+1)
		if err != nil {
			return err
		}
		for i, at := range stands {
			if i == limit {
				page.Next = strconv.FormatUint(stands[i-1].seq, 10)
				break
			}
			for _, e := range v.draft.st.entries(q, at.slot, v.draft.now) {
				if e.Seq == at.seq {
					page.Entries = append(page.Entries, e)
				}
			}
		}
		return nil
	})
	return page, err
}

// A stand is where a live generation stands in the order of a queue.
type stand struct {
	seq  uint64
	slot *slot
}

// from gives the live generations of the queue, leased ones too, from a sequence on
// and in its order: the first so many. It reads the runs that may have one of them.
func (q *queueState) from(reader runReader, seq uint64, most int) ([]stand, error) {
	var stands []stand
	last := uint64(math.MaxUint64) // what comes behind it is not among the first
	cut := func() {
		slices.SortFunc(stands, func(a, b stand) int { return cmp.Compare(a.seq, b.seq) })
		if len(stands) >= most {
			stands = stands[:most]
			last = stands[most-1].seq
		}
	}
	add := func(r *ref, s *slot) {
		if r.seq < seq || r.seq > last {
			return
		}
		if stands = append(stands, stand{r.seq, s}); len(stands) == 2*most {
			cut()
		}
	}
	for _, s := range q.slots {
		for _, r := range s.refs() {
			add(r, s)
		}
	}
	cut()
	for _, r := range q.runs {
		if r.first > last {
			break // nor has any run behind it
		}
		if r.last < seq {
			continue
		}
		m, err := reader.members(r)
		if err != nil {
			return nil, err
		}
		for i, s := range m.slots {
			if r.has(i) {
				add(s.pending, s)
			}
		}
		cut()
	}
	return stands, nil
}

func checkLimit(limit int) (int, error) {
	switch {
	case limit == 0:
		return pageLimit, nil
	case limit < 0 || limit > maxClaim:
		return 0, fmt.Errorf("a page of %d entries: from 1 to %d: %w", limit, maxClaim, queue.ErrInvalid)
	}
	return limit, nil
}

// ListFailed shows the failed messages of a namespace in order of their names.
func (s *Store) ListFailed(ctx context.Context, f queue.FailedOptions, o queue.ListOptions) (queue.Page, error) {
	limit, err := checkLimit(o.Limit)
	if err != nil {
		return queue.Page{}, err
	}
	if err := queue.CheckNamespace(f.Namespace); err != nil {
		return queue.Page{}, err
	}
	if f.Queue != "" {
		if err := queue.CheckQueue(f.Queue); err != nil {
			return queue.Page{}, err
		}
	}
	var page queue.Page
	err = s.look(ctx, func(v *view) error {
		page = queue.Page{Revision: v.revision(), Settled: v.settled}
		i, ok := v.draft.st.spaceIndex(f.Namespace)
		if !ok {
			return nil
		}
		list, err := v.draft.st.failed[i].after(v.draft.st.reader, o.After, f.Queue, limit+1)
		if err != nil {
			return err
		}
		for _, e := range list {
			if len(page.Entries) == limit {
				page.Next = page.Entries[limit-1].FailedName
				break
			}
			page.Entries = append(page.Entries, failedEntryOf(f.Namespace, e))
		}
		return nil
	})
	return page, err
}

// ShowFailed shows one failed message, with its payload.
func (s *Store) ShowFailed(ctx context.Context, failedName string, f queue.FailedOptions) (queue.Entry, error) {
	if err := checkFailed(f.Namespace, failedName); err != nil {
		return queue.Entry{}, err
	}
	var out queue.Entry
	err := s.look(ctx, func(v *view) error {
		e, _, err := v.draft.found(f.Namespace, failedName)
		if err != nil {
			return err
		}
		out = failedEntryOf(f.Namespace, e)
		payload, damage, err := v.load(&e.ref)
		if err != nil {
			return err
		}
		if out.Payload = payload; damage != "" && out.LastError == "" {
			out.LastError = "damaged payload: " + damage
		}
		return nil
	})
	return out, err
}
