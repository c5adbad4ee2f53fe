//go:build unix

package holdfast

import (
	"time"

	"example.com/holdfast/queue"
)

// status gives the gauges and counters of the named queues, or of all. An unknown
// queue is empty. Settled, Owner and the orphans are the caller's to fill in.
func (st *state) status(names []string, now instant) (queue.Status, error) {
	out := queue.Status{Revision: st.revision, Queues: map[string]queue.QueueStatus{}, Orphans: -1, OrphanBytes: -1}
	if len(names) == 0 {
		for _, q := range st.queues {
			names = append(names, q.name)
		}
	}
	failed := st.failedOf()
	for _, name := range names {
		var g queue.QueueStatus
		if q := st.queue(name); q != nil {
			var err error
			if g, err = q.gauges(st.reader, now); err != nil {
				return queue.Status{}, err
			}
		}
		_, g.Importing = st.importInto(name)
		g.Failed = failed[name]
		out.Queues[name] = g
	}
	return out, nil
}

// failedOf counts the failed messages by the queue that they came from.
func (st *state) failedOf() map[string]uint64 {
	n := map[string]uint64{}
	for _, f := range st.failed {
		for _, e := range f.entries {
			n[e.queue]++
		}
		for _, r := range f.runs {
			for _, s := range r.queues {
				n[s.name] += s.count
			}
		}
	}
	return n
}

func (q *queueState) gauges(reader runReader, now instant) (queue.QueueStatus, error) {
	q = q.at(now.millis())
	g := queue.QueueStatus{Paused: q.paused, FailedNamespace: q.failedNS, Counters: q.counters}
	for _, s := range q.slots {
		if c := s.claimed; c != nil && c.returned == leased {
			g.Processing++
			if c.lease.over(now) {
				g.Overdue++
			}
		}
		if s.pending != nil && s.claimed != nil {
			g.Pending++
			g.Blocked++
		}
		r, _ := s.front()
		if r == nil {
			continue
		}
		g.Pending++
		switch q.waits(r, now.millis()) {
		case queue.Scheduled:
			g.Scheduled++
		case queue.Blocked:
			g.Blocked++
		default:
			g.Ready++
		}
	}
	for _, r := range q.runs {
		scheduled, err := r.scheduled(reader, now.millis())
		if err != nil {
			return queue.QueueStatus{}, err
		}
		live := uint64(r.live())
		g.Pending += live
		g.Scheduled += scheduled
		g.Ready += live - scheduled
	}
	return g, nil
}

// scheduled counts the members of a run that are not due yet. It is read only where
// its reference does not tell.
func (r *run) scheduled(reader runReader, millis int64) (uint64, error) {
	switch {
	case r.to <= millis:
		return 0, nil
	case r.from > millis:
		return uint64(r.live()), nil
	}
	m, err := reader.members(r)
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	for i, s := range m.slots {
		if r.has(i) && !s.pending.ready(millis) {
			n++
		}
	}
	return n, nil
}

// waits says what the front of a slot waits for; the line of q is as of that time.
func (q *queueState) waits(r *ref, millis int64) queue.State {
	switch {
	case !r.ready(millis):
		return queue.Scheduled
	case r.key != "" && !q.line.isHead(r.seq):
		return queue.Blocked
	}
	return queue.Ready
}

// putOff reports whether the front of a slot is not due yet, or held back by nothing
// but a message of its key that is not; the line of q is as of that time.
func (q *queueState) putOff(r *ref, millis int64) bool {
	switch q.waits(r, millis) {
	case queue.Scheduled:
		return true
	case queue.Blocked:
		i, _ := q.line.findLane(r.key)
		n := q.line.lanes[i]
		return n.leased == 0 && n.waiting[0].at > millis
	}
	return false
}

// entries gives the live generations of one slot, the older first; the line of q is
// as of now.
func (st *state) entries(q *queueState, s *slot, now instant) []queue.Entry {
	var out []queue.Entry
	millis := now.millis()
	if c := s.claimed; c != nil {
		e := entryOf(q.name, s.id, &c.ref)
		if c.returned == leased {
			e.State = queue.Processing
			e.Receipt = receiptOf(st.store, q.name, s.id, c)
			e.Overdue = c.lease.over(now)
			e.Label, e.Fence = c.lease.label, c.lease.fence
			if c.lease.deadline != 0 {
				e.Deadline = time.UnixMilli(c.lease.deadline)
			}
		} else {
			e.State = q.waits(&c.ref, millis)
			e.Returned = c.returned.String()
		}
		out = append(out, e)
	}
	if r := s.pending; r != nil {
		e := entryOf(q.name, s.id, r)
		if e.State = queue.Blocked; s.claimed == nil {
			e.State = q.waits(r, millis)
		}
		out = append(out, e)
	}
	return out
}

func entryOf(queueName, id string, r *ref) queue.Entry {
	e := queue.Entry{
		Queue: queueName, ID: id, Generation: r.gen.String(), Seq: r.seq,
		EnqueuedAt: time.UnixMilli(r.enqueued), Key: r.key,
		Attempts: r.attempts, Excused: r.excused, Lapses: r.lapses,
		LastError: r.lastError, PayloadBytes: r.size, Object: r.object.String(),
	}
	if r.notBefore != 0 {
		e.NotBefore = time.UnixMilli(r.notBefore)
	}
	return e
}

func failedEntryOf(space string, f *failedEntry) queue.Entry {
	e := entryOf(f.queue, f.id, &f.ref)
	e.State, e.FailedName, e.Namespace, e.FailedAt = queue.Failed, f.name, space, time.UnixMilli(f.at)
	return e
}
