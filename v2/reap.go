//go:build unix

package holdfast

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/holdfast/queue"
)

// deaths tells whether a holder is proven dead. An error is no answer. nil: nobody
// is.
type deaths func(holder token) (bool, error)

// ended reports whether a lease is over, and why.
func (d *draft) ended(c *claim, dead deaths) (why queue.ReapCause, yes bool, err error) {
	switch {
	case c.lease.over(d.now) && c.lease.deadline == 0:
		return queue.ByProof, true, nil // its holder lived in another boot
	case c.lease.over(d.now):
		return queue.ByDeadline, true, nil
	case dead == nil || c.lease.holder.zero():
		return "", false, nil
	}
	yes, err = dead(c.lease.holder)
	return queue.ByProof, yes, err
}

// reap ends leases that are over, the oldest messages of each queue first. Holders
// that cannot be asked now spoil nothing: their leases wait for the next reaping, as do
// those of a queue with an open import. That is an error only when nothing else was
// found to end, and in the second case only where the queue was named.
func (d *draft) reap(o queue.ReapOptions, dead deaths) ([]queue.Returned, error) {
	if o.Receipt != nil {
		return d.reapOne(*o.Receipt, o.MaxLapses)
	}
	var out []queue.Returned
	var unknown error
	for _, q := range d.st.queues {
		if len(o.Queues) > 0 && !slices.Contains(o.Queues, q.name) {
			continue
		}
		if err := d.unlessImporting(q.name); err != nil {
			if len(o.Queues) > 0 {
				unknown = err
			}
			continue
		}
		type end struct {
			slot *slot
			why  queue.ReapCause
		}
		var ends []end
		for _, s := range q.slots {
			if s.claimed == nil || s.claimed.returned != leased {
				continue
			}
			why, yes, err := d.ended(s.claimed, dead)
			if err != nil {
				unknown = err
			} else if yes {
				ends = append(ends, end{s, why})
			}
		}
		slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.slot.claimed.seq, b.slot.claimed.seq) })
		for _, e := range ends[:min(len(ends), o.Limit-len(out))] {
			out = append(out, d.lapse(q.name, e.slot, e.why, o.MaxLapses))
		}
		if len(out) == o.Limit {
			break
		}
	}
	if len(out) == 0 && unknown != nil {
		return nil, unknown
	}
	return out, nil
}

// reapOne ends one claim whatever its deadline: the operator's act.
func (d *draft) reapOne(r queue.Receipt, maxLapses uint64) ([]queue.Returned, error) {
	s, err := d.held(r)
	if err != nil {
		return nil, err
	}
	if s.claimed.returned != leased {
		return nil, lost(r, s.claimed.attempts, s.claimed.returned.String(), queue.ErrStale)
	}
	return []queue.Returned{d.lapse(r.Queue, s, queue.ByOperator, maxLapses)}, nil
}

// lapse ends a lease without a settlement: the message comes back, or goes to failed
// when that has happened so many times. A message that kills its workers does not go
// round for ever.
func (d *draft) lapse(queueName string, s *slot, why queue.ReapCause, maxLapses uint64) queue.Returned {
	c := &claim{ref: s.claimed.ref, returned: reaped, lease: s.claimed.lease}
	c.lapses++
	if why == queue.ByProof {
		c.lease.holder = token{} // an Extend is somebody else's, who must not die of this again
	}
	out := queue.Returned{Queue: queueName, ID: s.id, Attempt: c.attempts, Cause: why, Lapses: c.lapses}
	q := d.queue(queueName)
	q.counters.Reaped++
	if c.lapses < maxLapses {
		q.put(s.id, s.pending, c)
		return out
	}
	text := fmt.Sprintf("lapsed %d times without settlement", c.lapses)
	if c.lastError != "" {
		text += "; last error: " + c.lastError
	}
	c.lastError = queue.CutError(text)
	out.FailedName = d.giveUp(queueName, s, c.ref)
	return out
}

// holds gives a function that reports whether a lease names a holder.
func (st *state) holds() func(holder token) bool {
	named := map[token]bool{}
	for _, q := range st.queues {
		for _, s := range q.slots {
			if s.claimed != nil && s.claimed.returned == leased {
				named[s.claimed.lease.holder] = true
			}
		}
	}
	return func(holder token) bool { return named[holder] }
}
