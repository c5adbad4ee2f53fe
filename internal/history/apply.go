package history

import (
	"reflect"
	"slices"

	"example.com/holdfast/queue"
)

// Apply makes a step and gives what it must answer. What is the store's to choose (a
// generation, a revision) is taken from got; nil: nobody was told what came of it. It
// reports whether got is a right answer. Only if it is, the model may be used on.
func (m *Model) Apply(st Step, got *Answer) (want Answer, ok bool) {
	if got == nil {
		return m.apply(st, &Answer{}), true
	}
	want = m.apply(st, got)
	return want, reflect.DeepEqual(m.blur(want), m.blur(*got))
}

func (m *Model) apply(st Step, got *Answer) Answer {
	switch st.Op {
	case Enqueue:
		return m.enqueue(st, got)
	case Claim:
		return m.claim(st, got)
	case Load:
		return m.load(st, got)
	case Ack, Release, Retry, Extend, Fail, ReplacePayload:
		return m.settle(st, got)
	case Reap:
		return m.reap(st, got)
	case Reprocess, Purge:
		return m.unbury(st)
	case Clear:
		return m.clear(st)
	case Pause:
		m.line(st.Queue).paused = true
	case Resume:
		m.line(st.Queue).paused = false
	case Namespace:
		m.line(st.Queue).space = st.Space
	case Update:
		return m.update(st, got)
	case Advance:
		m.Now += st.Delay.Milliseconds()
	case Die:
		m.dead = append(m.dead, st.Holder)
	default:
		return m.look(st, got)
	}
	return Answer{}
}

func refused(err error) Answer { return Answer{Refused: err.Error()} }

// blur takes out of an answer what cannot be known here.
func (m *Model) blur(a Answer) Answer {
	at := func(times ...*int64) { // there is one, or none
		for _, t := range times {
			if m.Timeless {
				*t = min(*t, 1)
			}
		}
	}
	stamp := func(t *int64) {
		if m.Timeless {
			*t = 0
		}
	}
	number := func(n *uint64) {
		if m.Shared {
			*n = 0
		}
	}
	number(&a.Revision)
	at(&a.Until)
	a.Deliveries = slices.Clone(a.Deliveries)
	for i := range a.Deliveries {
		d := &a.Deliveries[i]
		number(&d.Fence)
		at(&d.Deadline)
		stamp(&d.EnqueuedAt)
	}
	a.Seen = slices.Clone(a.Seen)
	for i := range a.Seen {
		x := &a.Seen[i]
		number(&x.Fence)
		at(&x.NotBefore, &x.Deadline)
		stamp(&x.EnqueuedAt)
		stamp(&x.FailedAt)
	}
	a.Outcomes = slices.Clone(a.Outcomes)
	for i := range a.Outcomes {
		a.Outcomes[i] = m.blur(a.Outcomes[i])
	}
	return a
}

// reach notes a revision that an answer names: it may not be older than one that an
// answer before it named.
func (m *Model) reach(revision uint64) uint64 {
	m.revision = max(m.revision, revision)
	return m.revision
}

// enqueue accepts all the messages or none. The refusal names every one that was
// refused.
func (m *Model) enqueue(st Step, got *Answer) Answer {
	before := m.Clone()
	var want Answer
	var at []int
	for i, id := range st.IDs {
		x := message{id: id, notBefore: st.NotBefore, enqueuedAt: m.Now, how: pending}
		if i < len(st.Keys) {
			x.key = st.Keys[i]
		}
		gen := ""
		if i < len(got.Gens) {
			gen = got.Gens[i]
		}
		as, kept := m.arrive(st.Queue, x, st.IfExists, gen)
		if as == nil {
			at = append(at, i)
			continue
		}
		want.Gens, want.Kept = append(want.Gens, as.gen), append(want.Kept, kept)
	}
	if at != nil {
		*m = *before
		want = refused(queue.ErrDuplicate)
		if len(st.IDs) > 1 {
			want.At = at
		}
		return want
	}
	if slices.Contains(want.Kept, false) {
		want.Revision = m.reach(got.Revision)
	}
	return want
}

// arrive accepts one message and gives the generation that is live by that; nil: it is
// refused.
func (m *Model) arrive(name string, x message, exists queue.IfExists, gen string) (as *message, kept bool) {
	q := m.line(name)
	newest := q.find(x.id, true)
	if newest == nil {
		newest = q.find(x.id, false)
	}
	switch {
	case newest == nil:
	case exists == queue.Refuse:
		return nil, false
	case exists == queue.Keep:
		m.learn(newest, x.id, gen)
		return newest, true
	case newest.how == pending: // Replace
		q.remove(newest)
		q.counters.Superseded++
	}
	m.learn(&x, x.id, gen)
	x.seq = q.next
	q.next++
	q.counters.Enqueued++
	q.live = append(q.live, x)
	return &x, false
}

// update makes the changes in order, all or none.
func (m *Model) update(st Step, got *Answer) Answer {
	before := m.Clone()
	var want Answer
	for i, c := range st.Changes {
		var its Answer
		if i < len(got.Outcomes) {
			its = got.Outcomes[i]
		}
		var out Answer
		if c.Op == Cursor {
			m.line(c.Queue).cursor = c.Cursor
		} else {
			out = m.apply(c, &its)
		}
		if out.Refused != "" {
			*m = *before
			out.At = []int{i}
			return out
		}
		want.Outcomes = append(want.Outcomes, out)
	}
	return want
}
