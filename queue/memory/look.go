package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/holdfast/queue"
)

// Peek shows the next n messages (1 to 10,000) that a claim would take, payloads
// included.
func (s *Store) Peek(ctx context.Context, name string, n int) ([]queue.Entry, error) {
	if err := queue.CheckQueue(name); err != nil {
		return nil, err
	}
	if n < 1 || n > queue.MaxClaim {
		return nil, fmt.Errorf("a peek at %d messages: from 1 to %d: %w", n, queue.MaxClaim, queue.ErrInvalid)
	}
	var out []queue.Entry
	err := s.look(ctx, func(st *state, now time.Time) error {
		q := st.queues[name]
		if q == nil || q.paused {
			return nil
		}
		for _, m := range q.ready(now, n) {
			out = append(out, opened(st.entry(q, m, queue.Ready, now), m))
		}
		return nil
	})
	return out, err
}

// Show shows the live generations of one ID, the older first, payloads included. None:
// queue.ErrNotFound.
func (s *Store) Show(ctx context.Context, name, id string) ([]queue.Entry, error) {
	if err := checkNames(name, id); err != nil {
		return nil, err
	}
	var out []queue.Entry
	err := s.look(ctx, func(st *state, now time.Time) error {
		if q := st.queues[name]; q != nil {
			for m, state := range q.survey(now) {
				if m.id == id {
					out = append(out, opened(st.entry(q, m, state, now), m))
				}
			}
		}
		if out == nil {
			return fmt.Errorf("%s/%s: %w", name, id, queue.ErrNotFound)
		}
		return nil
	})
	return out, err
}

// pageLimit is the page of a listing that names none.
const pageLimit = 100

// List shows the live messages of a queue in order of delivery, a page at a time. A
// page mark is the sequence of the last entry.
func (s *Store) List(ctx context.Context, name string, o queue.ListOptions) (queue.Page, error) {
	if err := queue.CheckQueue(name); err != nil {
		return queue.Page{}, err
	}
	var mark uint64
	if o.After != "" {
		var err error
		if mark, err = strconv.ParseUint(o.After, 10, 53); err != nil {
			return queue.Page{}, fmt.Errorf("page mark %q: %w", o.After, queue.ErrInvalid)
		}
	}
	limit, err := checkLimit(o.Limit)
	if err != nil {
		return queue.Page{}, err
	}
	var page queue.Page
	err = s.look(ctx, func(st *state, now time.Time) error {
		page.Revision, page.Settled = st.revision, true
		q := st.queues[name]
		if q == nil {
			return nil
		}
		for m, state := range q.survey(now) {
			if o.After != "" && m.seq <= mark {
				continue
			}
			if len(page.Entries) == limit {
				page.Next = strconv.FormatUint(page.Entries[limit-1].Seq, 10)
				break
			}
			page.Entries = append(page.Entries, st.entry(q, m, state, now))
		}
		return nil
	})
	return page, err
}

func checkLimit(limit int) (int, error) {
	switch {
	case limit == 0:
		return pageLimit, nil
	case limit < 0 || limit > queue.MaxClaim:
		return 0, fmt.Errorf("a page of %d entries: from 1 to %d: %w", limit, queue.MaxClaim, queue.ErrInvalid)
	}
	return limit, nil
}

// ListFailed shows the failed messages of a namespace in order of their names. A page
// mark is the last name.
func (s *Store) ListFailed(ctx context.Context, f queue.FailedOptions, o queue.ListOptions) (queue.Page, error) {
	limit, err := checkLimit(o.Limit)
	if err != nil {
		return queue.Page{}, err
	}
	if f.Queue != "" {
		if err := queue.CheckQueue(f.Queue); err != nil {
			return queue.Page{}, err
		}
	}
	if err := queue.CheckNamespace(f.Namespace); err != nil {
		return queue.Page{}, err
	}
	var page queue.Page
	err = s.look(ctx, func(st *state, _ time.Time) error {
		page.Revision, page.Settled = st.revision, true
		byName := slices.SortedFunc(maps.Keys(st.failed), func(a, b failedName) int { return strings.Compare(a.name, b.name) })
		for _, name := range byName {
			e := st.failed[name]
			if name.space != f.Namespace || name.name <= o.After || f.Queue != "" && e.queue != f.Queue {
				continue
			}
			if len(page.Entries) == limit {
				page.Next = page.Entries[limit-1].FailedName
				break
			}
			page.Entries = append(page.Entries, st.failedEntry(name))
		}
		return nil
	})
	return page, err
}

// ShowFailed shows one failed message, payload included. None: queue.ErrNotFailed.
func (s *Store) ShowFailed(ctx context.Context, name string, f queue.FailedOptions) (queue.Entry, error) {
	if err := checkFailed(f.Namespace, name); err != nil {
		return queue.Entry{}, err
	}
	var out queue.Entry
	err := s.look(ctx, func(st *state, _ time.Time) error {
		e := st.failed[failedName{f.Namespace, name}]
		if e == nil {
			return fmt.Errorf("%q: %w", name, queue.ErrNotFailed)
		}
		out = opened(st.failedEntry(failedName{f.Namespace, name}), e.message)
		return nil
	})
	return out, err
}

// entry is what a look at a live message shows, its payload aside.
func (st *state) entry(q *queueState, m *message, state queue.State, now time.Time) queue.Entry {
	e := queue.Entry{
		Queue: q.name, ID: m.id, Generation: m.generation, State: state, Seq: m.seq,
		EnqueuedAt: m.enqueuedAt, NotBefore: m.notBefore, Key: m.key,
		Attempts: m.attempts, Excused: m.excused, Lapses: m.lapses,
		LastError: m.lastError, PayloadBytes: int64(len(m.payload)),
	}
	switch {
	case m.phase == leased:
		e.Receipt, e.Deadline, e.Overdue = st.receipt(q, m), m.lease.deadline, m.overdue(now)
		e.Label, e.Fence = m.lease.label, m.lease.fence
	case m.cameBack():
		e.Returned = string(m.phase)
	}
	return e
}

func (st *state) failedEntry(name failedName) queue.Entry {
	f := st.failed[name]
	m := f.message
	return queue.Entry{
		Queue: f.queue, ID: m.id, Generation: m.generation, State: queue.Failed, Seq: m.seq,
		EnqueuedAt: m.enqueuedAt, Key: m.key,
		Attempts: m.attempts, Excused: m.excused, Lapses: m.lapses,
		LastError: m.lastError, PayloadBytes: int64(len(m.payload)),
		FailedName: name.name, Namespace: name.space, FailedAt: f.at,
	}
}

// opened adds the payload to a look.
func opened(e queue.Entry, m *message) queue.Entry {
	e.Payload = bytes.Clone(m.payload)
	return e
}
