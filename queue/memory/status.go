package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// Status gives the gauges and counters of queues in one snapshot, which is always
// settled. An unknown queue is empty, and so complete.
func (s *Store) Status(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
	for _, name := range o.Queues {
		if err := queue.CheckQueue(name); err != nil {
			return queue.Status{}, err
		}
	}
	var out queue.Status
	err := s.look(ctx, func(st *state, now time.Time) error {
		out = st.status(o.Queues, now)
		if o.Orphans { // there are no objects, and so none that nothing refers to
			out.Orphans, out.OrphanBytes = 0, 0
		}
		return nil
	})
	return out, err
}

// named gives the queues of these names, or all of the store when there is no name.
func (st *state) named(names []string) []string {
	if len(names) == 0 {
		return slices.Sorted(maps.Keys(st.queues))
	}
	return names
}

func (st *state) status(names []string, now time.Time) queue.Status {
	out := queue.Status{Revision: st.revision, Settled: true, Queues: map[string]queue.QueueStatus{}, Orphans: -1, OrphanBytes: -1}
	for _, name := range st.named(names) {
		var g queue.QueueStatus
		if q := st.queues[name]; q != nil {
			g = q.gauges(now)
		}
		out.Queues[name] = g
	}
	for _, f := range st.failed {
		if g, asked := out.Queues[f.queue]; asked {
			g.Failed++
			out.Queues[f.queue] = g
		}
	}
	return out
}

func (q *queueState) gauges(now time.Time) queue.QueueStatus {
	g := queue.QueueStatus{Paused: q.paused, FailedNamespace: q.failedNS, Counters: q.counters}
	for m, state := range q.survey(now) {
		switch state {
		case queue.Ready:
			g.Ready++
		case queue.Scheduled:
			g.Scheduled++
		case queue.Blocked:
			g.Blocked++
		case queue.Processing:
			g.Processing++
		}
		if m.overdue(now) {
			g.Overdue++
		}
	}
	g.Pending = g.Ready + g.Scheduled + g.Blocked
	return g
}
