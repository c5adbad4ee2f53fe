//go:build unix

package holdfast

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// What ends a claim, in the ledger, and what is done to the failed ones.

// freeName: the failed name is the ID, or ID~generation when that is taken.
func (l *ledger) freeName(q *ledgerQueue, m *ledgerMessage) ledgerName {
	name := ledgerName{q.space, m.id}
	if l.failed[name] != nil {
		name.name = m.id + "~" + m.gen
	}
	return name
}

func (l *ledger) setAside(q *ledgerQueue, m *ledgerMessage, now instant) ledgerName {
	name := l.freeName(q, m)
	q.counted.Damaged++
	m.lastError = "damaged payload: its checksum is wrong"
	l.bury(q, m, name, now)
	return name
}

func (l *ledger) bury(q *ledgerQueue, m *ledgerMessage, name ledgerName, now instant) {
	q.remove(m)
	q.counted.Failed++
	m.stage, m.notBefore, m.failedAt = stageWaiting, 0, now.Wall.UnixMilli()
	l.failed[name] = m
}

// proven finds the message whose claim x proves; current is its attempt.
func (l *ledger) proven(store string, x queue.Receipt) (q *ledgerQueue, m *ledgerMessage, current uint64, err error) {
	if x.Store != store {
		return nil, nil, 0, queue.ErrInvalidReceipt
	}
	q = l.queues[x.Queue]
	for _, m := range q.live {
		switch {
		case m.id != x.ID || m.gen != x.Generation:
			continue
		case m.attempts != x.Attempt, m.stage != stageLeased && m.stage != stageReaped:
			return nil, nil, m.attempts, queue.ErrStale
		case l.importing(x.Queue):
			return nil, nil, m.attempts, ErrImporting
		}
		return q, m, m.attempts, nil
	}
	return nil, nil, 0, queue.ErrGone
}

func (l *ledger) ack(q *ledgerQueue, m *ledgerMessage) {
	q.remove(m)
	q.counted.Completed++
}

// forgive: the receipt of a reaped claim was used, so it had not lapsed.
func (m *ledgerMessage) forgive() {
	if m.stage == stageReaped {
		m.lapses--
	}
}

// wait sets when a message that came back is due again.
func (m *ledgerMessage) wait(delay time.Duration, now instant) {
	if m.notBefore = 0; delay > 0 {
		m.notBefore = now.Wall.Add(delay).UnixMilli()
	}
}

func (l *ledger) release(q *ledgerQueue, m *ledgerMessage, delay time.Duration, now instant) {
	m.forgive()
	m.stage = stageReleased
	m.excused++
	m.wait(delay, now)
	q.counted.Released++
}

// retry gives where the message went.
func (l *ledger) retry(q *ledgerQueue, m *ledgerMessage, o queue.RetryOptions, now instant) queue.Returned {
	m.forgive()
	if o.Cause != "" {
		m.lastError = o.Cause
	}
	out := queue.Returned{Queue: q.name, ID: m.id, Attempt: m.attempts}
	if m.attempts-m.excused-m.lapses >= o.MaxFailures {
		name := l.freeName(q, m)
		l.bury(q, m, name, now)
		out.FailedName = name.name
		return out
	}
	m.stage = stageRetried
	m.wait(o.Delay, now)
	if m.notBefore != 0 {
		out.NotBefore = time.UnixMilli(m.notBefore)
	}
	q.counted.Retried++
	return out
}

// extend gives the new deadline. A reaped message goes back into processing, unless
// another of its key is there.
func (l *ledger) extend(q *ledgerQueue, m *ledgerMessage, lease time.Duration, now instant) (time.Time, error) {
	if m.stage == stageReaped {
		for _, other := range q.live {
			if m.key != "" && other.key == m.key && other.stage == stageLeased {
				return time.Time{}, queue.ErrStale
			}
		}
	}
	m.forgive()
	m.stage = stageLeased
	m.until(lease, now)
	if m.forever {
		return time.Time{}, nil
	}
	return time.UnixMilli(m.deadline.UnixMilli()), nil
}

func (l *ledger) fail(q *ledgerQueue, m *ledgerMessage, cause, as string, now instant) (string, error) {
	if as == "" {
		as = m.id
	}
	name := ledgerName{q.space, as}
	if l.failed[name] != nil {
		return "", queue.ErrFailedExists
	}
	if cause != "" {
		m.lastError = cause
	}
	l.bury(q, m, name, now)
	return as, nil
}

// reap ends the leases that may be ended, the oldest messages of each queue first.
func (l *ledger) reap(o queue.ReapOptions, now instant, dead deaths) (out []queue.Returned, err error) {
	var trouble error
	for _, name := range slices.Sorted(maps.Keys(l.queues)) {
		q := l.queues[name]
		if o.Queues != nil && !slices.Contains(o.Queues, name) {
			continue
		}
		if l.importing(name) {
			if o.Queues != nil {
				trouble = ErrImporting
			}
			continue
		}
		for _, m := range slices.Clone(q.live) {
			if m.stage != stageLeased || len(out) == o.Limit {
				continue
			}
			cause, err := m.ended(now, dead)
			if err != nil {
				trouble = err
			} else if cause != "" {
				out = append(out, l.lapse(q, m, cause, o.MaxLapses, now))
			}
		}
	}
	if out == nil {
		return nil, trouble
	}
	return out, nil
}

// reapOne ends one claim, which must not have been reaped already.
func (l *ledger) reapOne(q *ledgerQueue, m *ledgerMessage, o queue.ReapOptions, now instant) ([]queue.Returned, error) {
	if m.stage == stageReaped {
		return nil, queue.ErrStale
	}
	return []queue.Returned{l.lapse(q, m, queue.ByOperator, o.MaxLapses, now)}, nil
}

func (l *ledger) lapse(q *ledgerQueue, m *ledgerMessage, cause queue.ReapCause, most uint64, now instant) queue.Returned {
	m.stage = stageReaped
	m.lapses++
	q.counted.Reaped++
	if cause == queue.ByProof {
		m.holder = token{}
	}
	out := queue.Returned{Queue: q.name, ID: m.id, Attempt: m.attempts, Cause: cause, Lapses: m.lapses}
	if m.lapses >= most {
		text := fmt.Sprintf("lapsed %d times without settlement", m.lapses)
		if m.lastError != "" {
			text += "; last error: " + m.lastError
		}
		m.lastError = queue.CutError(text)
		name := l.freeName(q, m)
		l.bury(q, m, name, now)
		out.FailedName = name.name
	}
	return out
}

// reprocess puts a failed message back at its old place, all its attempts excused.
func (l *ledger) reprocess(name ledgerName) error {
	m := l.failed[name]
	if m == nil {
		return queue.ErrNotFailed
	}
	q := l.queues[m.queue]
	if l.importing(m.queue) {
		return ErrImporting
	}
	for _, other := range q.live {
		if other.id == m.id && other.stage != stageWaiting {
			return queue.ErrInFlight
		}
	}
	delete(l.failed, name)
	m.stage, m.excused, m.lapses = stageReprocessed, m.attempts, 0
	q.counted.Reprocessed++
	at := slices.IndexFunc(q.live, func(other *ledgerMessage) bool { return other.place > m.place })
	if at < 0 {
		at = len(q.live)
	}
	q.live = slices.Insert(q.live, at, m)
	return nil
}

func (l *ledger) purge(name ledgerName) error {
	m := l.failed[name]
	if m == nil {
		return queue.ErrNotFailed
	}
	if l.importing(m.queue) {
		return ErrImporting
	}
	delete(l.failed, name)
	l.queues[m.queue].counted.Purged++
	return nil
}

func (l *ledger) clear(name string, leasedToo bool) (n uint64, err error) {
	q := l.queues[name]
	if l.importing(name) {
		return 0, ErrImporting
	}
	q.live = slices.DeleteFunc(q.live, func(m *ledgerMessage) bool {
		if m.stage == stageLeased && !leasedToo {
			return false
		}
		n++
		return true
	})
	q.counted.Cleared += n
	return n, nil
}
