package history

import (
	"slices"

	"example.com/holdfast/queue"
)

// look makes a step that changes nothing.
func (m *Model) look(st Step, got *Answer) (want Answer) {
	q := m.line(st.Queue)
	switch st.Op {
	case Status:
		want.Revision, want.Gauges, want.Complete = m.reach(got.Revision), map[string]queue.QueueStatus{}, true
		for _, name := range st.Queues {
			g := m.gauges(name)
			want.Gauges[name] = g
			want.Complete = want.Complete && g.Pending == 0 && g.Processing == 0
		}
	case Cursor:
		want.Cursor = q.cursor
	case List:
		want.Revision, want.Seen = m.reach(got.Revision), m.sights(st, got, func(message) bool { return true })
	case ListFailed:
		want.Revision, want.Seen = m.reach(got.Revision), m.failedSights(st, got)
	case Peek:
		next := m.ready(q, false)
		next = next[:min(st.N, len(next))]
		want.Seen = m.sights(st, got, func(x message) bool { return slices.Contains(next, x.seq) })
	case Show:
		want.Seen = m.sights(st, got, func(x message) bool { return x.id == st.IDs[0] })
		if want.Seen == nil {
			return refused(queue.ErrNotFound)
		}
	}
	return want
}

func (m *Model) gauges(name string) queue.QueueStatus {
	q := m.line(name)
	g := queue.QueueStatus{Paused: q.paused, FailedNamespace: q.space, Counters: q.counters}
	for i, state := range m.states(q) {
		switch state {
		case queue.Processing:
			g.Processing++
			if x := q.live[i]; x.deadline != 0 && m.past(x.deadline) {
				g.Overdue++
			}
			continue
		case queue.Ready:
			g.Ready++
		case queue.Scheduled:
			g.Scheduled++
		case queue.Blocked:
			g.Blocked++
		}
		g.Pending++
	}
	for _, x := range m.failed {
		if x.queue == name {
			g.Failed++
		}
	}
	return g
}

// sights shows the messages of a queue that are asked for.
func (m *Model) sights(st Step, got *Answer, asked func(x message) bool) (out []Sight) {
	q := m.line(st.Queue)
	for i, state := range m.states(q) {
		x := &q.live[i]
		if !asked(*x) {
			continue
		}
		if n := len(out); n < len(got.Seen) {
			m.learn(x, got.Seen[n].ID, got.Seen[n].Gen)
		}
		s := m.sight(st, st.Queue, x)
		s.State = state
		switch x.how {
		case pending:
		case leased:
			told := ""
			if n := len(out); n < len(got.Seen) {
				told = got.Seen[n].Receipt
			}
			s.Receipt, s.Fence, s.Deadline = m.receipt(st.Queue, x, told), x.fence, x.deadline
			s.Overdue = x.deadline != 0 && m.past(x.deadline)
		default:
			s.Returned = string(x.how)
		}
		s.NotBefore = x.notBefore
		out = append(out, s)
	}
	return out
}

func (m *Model) sight(st Step, name string, x *message) Sight {
	s := Sight{
		Queue: name, ID: x.id, Gen: x.gen, Key: x.key, EnqueuedAt: x.enqueuedAt,
		Attempts: x.attempts, Excused: x.excused, Lapses: x.lapses, LastError: x.lastError,
	}
	if st.Op == Peek || st.Op == Show {
		s.Version = x.version
	}
	return s
}

// failedSights shows the failed messages of a namespace that came from a queue, or all.
func (m *Model) failedSights(st Step, got *Answer) (out []Sight) {
	for i := range m.failed {
		g := &m.failed[i]
		if g.space != st.Space || st.Queue != "" && g.queue != st.Queue {
			continue
		}
		if n := len(out); n < len(got.Seen) {
			m.learn(&g.message, got.Seen[n].ID, got.Seen[n].Gen)
		}
		s := m.sight(st, g.queue, &g.message)
		s.State, s.Failed, s.Space, s.FailedAt = queue.Failed, g.name, g.space, g.at
		out = append(out, s)
	}
	return out
}
