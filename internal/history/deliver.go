package history

import (
	"fmt"
	"slices"

	"example.com/holdfast/queue"
)

// states says where each message of a queue stands.
func (m *Model) states(q *line) []queue.State {
	out := make([]queue.State, len(q.live))
	for i := range q.live {
		out[i] = m.state(q, i)
	}
	return out
}

func (m *Model) state(q *line, i int) queue.State {
	x := q.live[i]
	switch {
	case x.how == leased:
		return queue.Processing
	case q.behind(x):
		return queue.Blocked
	case !m.due(x):
		return queue.Scheduled
	case x.key == "":
		return queue.Ready
	}
	for j, y := range q.live {
		if y.key == x.key && (y.how == leased || j < i && m.inLane(q, y)) {
			return queue.Blocked
		}
	}
	return queue.Ready
}

// behind reports whether an older generation of the ID of x is in flight.
func (q *line) behind(x message) bool { return x.how == pending && q.find(x.id, false) != nil }

// inLane reports whether y, which is not leased, holds the later ones of its key: it
// came back, or it is due for the first time.
func (m *Model) inLane(q *line, y message) bool {
	return y.how != pending || m.due(y) && !q.behind(y)
}

func (m *Model) due(x message) bool { return x.notBefore == 0 || m.past(x.notBefore) }

// ready gives the sequences of the messages that a claim may take, in its order.
func (m *Model) ready(q *line, fair bool) []int {
	if q.paused {
		return nil
	}
	byKey := map[string][]int{}
	var keys []string // in their order, and then those without
	var order []int
	for i, state := range m.states(q) {
		if state == queue.Ready {
			x := q.live[i]
			order = append(order, x.seq)
			byKey[x.key] = append(byKey[x.key], x.seq)
			keys = append(keys, x.key)
		}
	}
	if !fair {
		return order
	}
	n := len(order)
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return key == "" })
	turn := 0
	for turn < len(keys) && q.turn != "" && keys[turn] <= q.turn {
		turn++
	}
	keys = append(keys, "")
	for order = nil; len(order) < n; turn++ {
		key := keys[turn%len(keys)]
		if mine := byKey[key]; len(mine) > 0 {
			order = append(order, mine[0])
			byKey[key] = mine[1:]
		}
	}
	return order
}

func (m *Model) claim(st Step, got *Answer) (want Answer) {
	q := m.line(st.Queue)
	for i, seq := range m.ready(q, st.Fair) {
		if i == max(1, st.N) {
			break
		}
		x := &q.live[slices.IndexFunc(q.live, func(y message) bool { return y.seq == seq })]
		if st.Fair {
			q.turn = x.key
		}
		want.Deliveries = append(want.Deliveries, m.take(q, x, st, got, i))
	}
	return want
}

func (m *Model) load(st Step, got *Answer) (want Answer) {
	q := m.line(st.Queue)
	x := q.find(st.IDs[0], false)
	if x == nil {
		x = q.find(st.IDs[0], true)
	}
	if x == nil {
		return refused(queue.ErrNotFound)
	}
	if _, over := m.over(x); x.how == leased && !over && (x.deadline != 0 || x.holder != "") {
		return refused(queue.ErrLeased)
	}
	if q.keyLeased(x) {
		return refused(queue.ErrLeased)
	}
	want.Deliveries = []Delivered{m.take(q, x, st, got, 0)}
	return want
}

// keyLeased reports whether another message of the key of x is leased.
func (q *line) keyLeased(x *message) bool {
	return slices.ContainsFunc(q.live, func(y message) bool {
		return y.seq != x.seq && y.key == x.key && y.key != "" && y.how == leased
	})
}

// take leases x. It is delivery i of the answer.
func (m *Model) take(q *line, x *message, st Step, got *Answer, i int) Delivered {
	if x.how == leased { // taken over
		x.lapses++
		q.counters.Reaped++
	}
	failures := x.attempts - x.excused - x.lapses
	x.how = leased
	x.attempts++
	x.notBefore = 0
	x.deadline, x.holder = m.later(st.Lease), st.Holder
	m.fence++
	x.fence = m.fence
	q.counters.Claimed++
	receipt := ""
	if i < len(got.Deliveries) {
		receipt = got.Deliveries[i].Receipt
	}
	return Delivered{
		Receipt: m.receipt(st.Queue, x, receipt), Version: x.version, Key: x.key, Fence: x.fence,
		Deadline: x.deadline, EnqueuedAt: x.enqueuedAt, LastError: x.lastError,
		Failures: failures, Lapses: x.lapses,
	}
}

// receipt gives the text of the receipt of x, which is the text got if that is right.
func (m *Model) receipt(name string, x *message, got string) string {
	if r, err := queue.ParseReceipt(got); err == nil {
		m.learn(x, r.ID, r.Generation)
		if m.store == "" {
			m.store = r.Store
		}
	}
	return fmt.Sprintf("%s:%s:%s:%s:%d", m.store, name, x.id, x.gen, x.attempts)
}
