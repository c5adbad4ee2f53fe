//go:build unix

package holdfast

import "example.com/holdfast/queue"

// restoredFence is what a restore adds to the fence: the copied store can hardly have made
// as many claims since, so that a guard that has seen those lets the restored one's pass.
const restoredFence = 1 << 32

// restored gives a copied state as that of a store of its own: at the next revision, by
// another commit, with no claim out. Nothing that it shares with st is changed.
func (st *state) restored(store, commit token, exchange bool) (next *state, returned int64) {
	c := *st
	c.store, c.commit, c.exchange, c.after = store, commit, exchange, token{}
	c.revision++
	c.resolved = nil // of commits that nobody can ask this store about
	if c.fence <= maxNumber-restoredFence {
		c.fence += restoredFence
	}
	c.queues = nil
	for _, q := range st.queues {
		q, n := q.withoutLeases()
		c.queues = append(c.queues, q)
		returned += n
	}
	return &c, returned
}

// withoutLeases gives q as if every claim that is out were released. One that was reaped
// stays so, without the lease that it had: no receipt of it is good here.
func (q *queueState) withoutLeases() (next *queueState, returned int64) {
	c := *q
	c.slots = nil
	for _, s := range q.slots {
		switch {
		case s.claimed == nil || s.claimed.returned != leased && s.claimed.returned != reaped:
		case s.claimed.returned == reaped:
			s = &slot{id: s.id, pending: s.pending, claimed: &claim{ref: s.claimed.ref, returned: reaped}}
		default:
			s = &slot{id: s.id, pending: s.pending, claimed: s.back(released)}
			s.claimed.excused++
			c.counters.Released++
			returned++
		}
		c.slots = append(c.slots, s)
	}
	return &c, returned
}

// sameCounts reports whether nothing but what restored changes differs in the counts.
func sameCounts(a, b *state, returned int64) bool {
	sum := func(st *state) (all queue.Counters, live int64) {
		for _, q := range st.queues {
			for i, n := range counts(&q.counters) {
				*counts(&all)[i] += *n
			}
			live += q.live()
		}
		return all, live
	}
	was, before := sum(a)
	is, after := sum(b)
	was.Released += uint64(returned)
	return was == is && before == after
}
