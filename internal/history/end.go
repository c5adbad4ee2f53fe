package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/holdfast/queue"
)

// held gives the message whose claim is the one that a receipt proves, or the refusal.
func (m *Model) held(text string) (q *line, x *message, no Answer) {
	r, _ := queue.ParseReceipt(text) // Perform has refused what is none
	q = m.line(r.Queue)
	for i := range q.live {
		x := &q.live[i]
		switch {
		case x.gen != r.Generation || x.id != r.ID:
			continue
		case x.attempts == r.Attempt && (x.how == leased || x.how == reaped):
			return q, x, Answer{}
		}
		no = refused(queue.ErrStale)
		no.Current = x.attempts
		return nil, nil, no
	}
	return nil, nil, refused(queue.ErrGone)
}

// settle makes a step that takes a receipt, reap aside.
func (m *Model) settle(st Step, got *Answer) (want Answer) {
	q, x, no := m.held(st.Receipt)
	if x == nil {
		return no
	}
	r, _ := queue.ParseReceipt(st.Receipt)
	// A reaping had counted the claim as lapsed; what the holder says now counts.
	counted := x.lapses
	if x.how == reaped {
		counted--
	}
	switch st.Op {
	case Ack:
		q.remove(x)
		q.counters.Completed++
	case Release:
		x.how, x.lapses, x.notBefore = released, counted, m.later(st.Delay)
		x.excused++
		q.counters.Released++
	case Retry:
		x.lapses = counted
		if st.Cause != "" {
			x.lastError = st.Cause
		}
		if x.attempts-x.excused-x.lapses >= orElse(st.Most, queue.DefaultMaxFailures) {
			want.Failed = m.bury(q, x, r.Queue, got.Failed)
			return want
		}
		x.how, x.notBefore = retried, m.later(st.Delay)
		q.counters.Retried++
		want.Until = x.notBefore
	case Extend:
		if x.how == reaped && q.keyLeased(x) {
			no = refused(queue.ErrStale)
			no.Current = x.attempts
			return no
		}
		x.how, x.lapses, x.deadline = leased, counted, m.later(st.Lease)
		want.Until = x.deadline
	case Fail:
		name := st.As
		if name == "" {
			name = x.id
		}
		if _, taken := m.failedAt(q.space, name); taken {
			return refused(queue.ErrFailedExists)
		}
		if st.Cause != "" {
			x.lastError = st.Cause
		}
		m.buryAs(q, x, r.Queue, name)
		want.Failed = name
	case ReplacePayload:
		x.version = st.Version
	}
	return want
}

func orElse(n, zero uint64) uint64 {
	if n == 0 {
		return zero
	}
	return n
}

// over reports whether a lease has ended, and why.
func (m *Model) over(x *message) (queue.ReapCause, bool) {
	switch {
	case x.how != leased:
		return "", false
	case x.deadline != 0 && m.past(x.deadline):
		return queue.ByDeadline, true
	}
	return queue.ByProof, x.holder != "" && slices.Contains(m.dead, x.holder)
}

func (m *Model) reap(st Step, got *Answer) (want Answer) {
	if st.Receipt != "" {
		_, x, no := m.held(st.Receipt)
		switch {
		case x == nil:
			return no
		case x.how == reaped:
			no = refused(queue.ErrStale)
			no.Current = x.attempts
			return no
		}
		r, _ := queue.ParseReceipt(st.Receipt)
		return Answer{Reaped: []Reaped{m.lapse(r.Queue, x.seq, queue.ByOperator, st, got, 0)}}
	}
	names := st.Queues
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(m.queues))
	}
	limit := int(orElse(uint64(st.N), queue.DefaultReapLimit))
	for _, name := range names {
		for _, x := range slices.Clone(m.line(name).live) {
			if why, over := m.over(&x); over && len(want.Reaped) < limit {
				want.Reaped = append(want.Reaped, m.lapse(name, x.seq, why, st, got, len(want.Reaped)))
			}
		}
	}
	return want
}

// lapse ends a lease without a settlement. It is reaping i of the answer.
func (m *Model) lapse(name string, seq int, why queue.ReapCause, st Step, got *Answer, i int) Reaped {
	q := m.line(name)
	x := &q.live[slices.IndexFunc(q.live, func(y message) bool { return y.seq == seq })]
	x.lapses++
	x.how = reaped
	if why == queue.ByProof {
		x.holder = ""
	}
	q.counters.Reaped++
	out := Reaped{Queue: name, ID: x.id, Attempt: x.attempts, Cause: why, Lapses: x.lapses}
	if x.lapses >= orElse(st.Most, queue.DefaultMaxLapses) {
		text := fmt.Sprintf("lapsed %d times without settlement", x.lapses)
		if x.lastError != "" {
			text += "; last error: " + x.lastError
		}
		x.lastError = text
		told := ""
		if i < len(got.Reaped) {
			told = got.Reaped[i].Failed
		}
		out.Failed = m.bury(q, x, name, told)
	}
	return out
}

// bury moves x to failed under a name that is free: its ID, or ID~generation.
func (m *Model) bury(q *line, x *message, name, told string) string {
	as := x.id
	if _, taken := m.failedAt(q.space, as); taken {
		_, gen, _ := strings.Cut(told, "~")
		m.learn(x, x.id, gen)
		as += "~" + x.gen
	}
	m.buryAs(q, x, name, as)
	return as
}

func (m *Model) buryAs(q *line, x *message, name, as string) {
	i, _ := m.failedAt(q.space, as)
	g := failed{space: q.space, name: as, queue: name, message: *x, at: m.Now}
	m.failed = slices.Insert(m.failed, i, g)
	q.counters.Failed++
	q.remove(x)
}

// unbury makes a Reprocess or a Purge.
func (m *Model) unbury(st Step) Answer {
	i, found := m.failedAt(st.Space, st.IDs[0])
	if !found {
		return refused(queue.ErrNotFailed)
	}
	g := m.failed[i]
	q := m.line(g.queue)
	if st.Op == Purge {
		q.counters.Purged++
	} else {
		if q.find(g.id, false) != nil {
			return refused(queue.ErrInFlight)
		}
		x := g.message
		x.how, x.notBefore, x.excused, x.lapses = reprocessed, 0, x.attempts, 0
		q.insert(x)
		q.counters.Reprocessed++
	}
	m.failed = slices.Delete(m.failed, i, i+1)
	return Answer{}
}

func (m *Model) clear(st Step) Answer {
	q := m.line(st.Queue)
	n := len(q.live)
	q.live = slices.DeleteFunc(q.live, func(x message) bool { return st.Leased || x.how != leased })
	cleared := uint64(n - len(q.live))
	q.counters.Cleared += cleared
	return Answer{Count: cleared}
}
