package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"example.com/holdfast/queue"
)

// Reap ends leases that are past their deadline, the oldest messages of each queue
// first, and returns their messages, or moves them to failed at the cap of lapses. One
// named claim is ended whatever its deadline; refusals are then queue.ErrStale, also of
// a claim that came back already, and queue.ErrGone. Nothing over is an empty result.
func (s *Store) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	o, err := o.Checked()
	if err != nil {
		return nil, err
	}
	var out []queue.Returned
	err = s.change(ctx, func(d *draft) (err error) {
		if o.Receipt != nil {
			out, err = d.reapOne(*o.Receipt, o.MaxLapses)
		} else {
			out = d.reapOver(o)
		}
		return err
	})
	return out, err
}

// reapOne ends one named claim: the operator's act.
func (d *draft) reapOne(r queue.Receipt, maxLapses uint64) ([]queue.Returned, error) {
	q, m, err := d.held(r)
	if err != nil {
		return nil, err
	}
	if m.phase == reaped {
		return nil, lost(r, m.attempts, string(reaped), queue.ErrStale)
	}
	return []queue.Returned{d.lapse(q, m, queue.ByOperator, maxLapses)}, nil
}

// reapOver ends leases that are over, in the queues asked for, each once.
func (d *draft) reapOver(o queue.ReapOptions) []queue.Returned {
	names := slices.Sorted(maps.Keys(d.st.queues))
	if len(o.Queues) > 0 {
		names = slices.Compact(slices.Sorted(slices.Values(o.Queues)))
	}
	var out []queue.Returned
	for _, name := range names {
		q := d.st.queues[name]
		if q == nil {
			continue
		}
		for _, m := range slices.Clone(q.line) {
			if len(out) == o.Limit {
				return out
			}
			if m.overdue(d.now) { // so a queue that is named twice has nothing more
				out = append(out, d.lapse(d.queue(name), m, queue.ByDeadline, o.MaxLapses))
			}
		}
	}
	return out
}

// lapse ends a lease without settlement.
func (d *draft) lapse(q *queueState, m *message, cause queue.ReapCause, maxLapses uint64) queue.Returned {
	c := *m
	c.lapses++
	c.phase = reaped
	q.counters.Reaped++
	out := queue.Returned{Queue: q.name, ID: c.id, Attempt: c.attempts, Cause: cause, Lapses: c.lapses}
	if c.lapses < maxLapses {
		d.replace(q, &c)
		return out
	}
	reason := fmt.Sprintf("lapsed %d times without settlement", c.lapses)
	if c.lastError != "" {
		reason += "; last error: " + c.lastError
	}
	c.lastError = queue.CutError(reason)
	out.FailedName = d.buryFree(q, &c)
	return out
}
