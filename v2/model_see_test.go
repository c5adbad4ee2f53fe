//go:build unix

package holdfast

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// What can be seen, on both sides.

// see compares everything that can be seen.
func (m *modelRun) see() {
	st, now, store := m.st(), m.at(), m.base.store.String()
	status := statusOf(m, st, modelQueues, now)
	status.Settled = true
	empty := true
	for _, name := range modelQueues {
		q := m.want.queues[name]
		if got, want := status.Queues[name], m.want.status(name, now); got != want {
			m.Fatalf("%s: status %+v, want %+v", name, got, want)
		}
		empty = empty && len(q.live) == 0 && !m.want.importing(name)

		// The listing, in order of delivery, and what a peek shows.
		var listed []queue.Entry
		sq := st.queue(name)
		stands, err := sq.from(st.reader, 0, 1000)
		if err != nil {
			m.Fatal(err)
		}
		for _, at := range stands {
			for _, e := range st.entries(sq.at(now.millis()), at.slot, now) {
				if e.Seq == at.seq {
					listed = append(listed, e)
				}
			}
		}
		var want []queue.Entry
		for i, w := range q.live {
			e := m.want.entry(store, q, w, now)
			if i < len(listed) {
				e.Seq, e.Object = listed[i].Seq, listed[i].Object
			}
			want = append(want, e)
		}
		if !reflect.DeepEqual(listed, want) {
			m.Fatalf("%s: listed\n%+v\nwant\n%+v", name, listed, want)
		}
		if sq.cursor != q.cursor || sq.turn != q.served {
			m.Fatalf("%s: cursor %q, the turn of %q; want %q and %q", name, sq.cursor, sq.turn, q.cursor, q.served)
		}
		for fair, due := range map[bool][]*ledgerMessage{false: q.due(now), true: q.turns(now)} {
			var got, want []string
			all, err := st.reached(sq, now.millis(), 1000)
			if err != nil {
				m.Fatal(err)
			}
			for p := range all.turns(fair) {
				s, _ := all.find(p.id)
				r, _ := s.front()
				got = append(got, r.gen.String())
			}
			for _, w := range due {
				want = append(want, w.gen)
			}
			if !slices.Equal(got, want) {
				m.Fatalf("%s: due are, fair %v, %v, want %v", name, fair, got, want)
			}
		}
		importing := m.want.importing(name)
		if yes, _ := st.due([]string{name}, now); yes != (!q.paused && !importing && len(q.due(now)) > 0) {
			m.Fatalf("%s: due: %v", name, yes)
		}
	}
	if status.Complete() != empty {
		m.Fatalf("complete: %v, and nothing is live: %v", status.Complete(), empty)
	}
	m.seeImports(st)
	m.seeFailed(st)
	m.seeReceipts(st, store)
	m.seePayloads(st)
}

func (m *modelRun) seeFailed(st *state) {
	n := 0
	for _, f := range st.failed {
		all, err := f.after(st.reader, "", "", 1000)
		if err != nil {
			m.Fatal(err)
		}
		for _, e := range all {
			n++
			w := m.want.failed[ledgerName{f.name, e.name}]
			if w == nil {
				m.Fatalf("failed %q in %q is not expected", e.name, f.name)
			}
			got, want := failedEntryOf(f.name, e), w.entry()
			want.State, want.FailedName, want.Namespace, want.FailedAt = queue.Failed, e.name, f.name, time.UnixMilli(w.failedAt)
			want.Seq, want.Object = got.Seq, got.Object
			if !reflect.DeepEqual(got, want) {
				m.Fatalf("failed\n%+v\nwant\n%+v", got, want)
			}
		}
	}
	if n != len(m.want.failed) {
		m.Fatalf("%d failed messages, want %d", n, len(m.want.failed))
	}
}

// seeReceipts tries every receipt: of those for one ID at most one is good.
func (m *modelRun) seeReceipts(st *state, store string) {
	good := map[[2]string]queue.Receipt{}
	for _, x := range m.receipts {
		_, err := (&draft{st: st}).held(x)
		if _, _, _, wantErr := m.want.proven(store, x); !errors.Is(err, wantErr) {
			m.Fatalf("%s: %v, want %v", x, err, wantErr)
		}
		if err != nil {
			continue
		}
		at := [2]string{x.Queue, x.ID}
		if other, twice := good[at]; twice {
			m.Fatalf("two receipts are good: %s and %s", other, x)
		}
		good[at] = x
	}
}

// seePayloads reads every payload: the bytes are the ones that were enqueued.
func (m *modelRun) seePayloads(st *state) {
	want := m.want.byGeneration()
	n := 0
	st.refs(func(_, _ string, r *ref) bool {
		n++
		w := want[r.gen.String()]
		if w == nil {
			m.Fatalf("generation %s is not expected", r.gen)
		}
		payload, damage, err := m.read(r)
		switch ok := err == nil && damage == "" && string(payload) == w.payload; {
		case ok != (w.fault == faultNone), (damage != "") != (w.fault == faultDamaged):
			m.Fatalf("%s/%s reads as %.50q, %q, %v; want %.50q", w.queue, w.id, payload, damage, err, w.payload)
		}
		return true
	})
	if n != len(want) {
		m.Fatalf("%d references, want %d", n, len(want))
	}
}

// status gives the gauges and counters of a queue.
func (l *ledger) status(name string, now instant) queue.QueueStatus {
	q := l.queues[name]
	s := queue.QueueStatus{Paused: q.paused, FailedNamespace: q.space, Importing: l.importing(name), Counters: q.counted}
	for _, m := range q.live {
		if m.stage == stageLeased {
			s.Processing++
			if m.over(now) {
				s.Overdue++
			}
			continue
		}
		switch q.state(m, now) {
		case queue.Blocked:
			s.Blocked++
		case queue.Scheduled:
			s.Scheduled++
		default:
			s.Ready++
		}
		s.Pending++
	}
	for _, m := range l.failed {
		if m.queue == name {
			s.Failed++
		}
	}
	return s
}

// entry gives what a look at a live message shows, but for its sequence and object.
func (l *ledger) entry(store string, q *ledgerQueue, m *ledgerMessage, now instant) queue.Entry {
	e := m.entry()
	if m.stage == stageLeased {
		e.State, e.Overdue, e.Label, e.Fence = queue.Processing, m.over(now), m.label, m.fence
		e.Receipt = queue.Receipt{Store: store, Queue: q.name, ID: m.id, Generation: m.gen, Attempt: m.attempts}
		if !m.forever {
			e.Deadline = time.UnixMilli(m.deadline.UnixMilli())
		}
		return e
	}
	if e.State = q.state(m, now); m.stage != stageWaiting {
		e.Returned = string(m.stage)
	}
	return e
}

func (m *ledgerMessage) entry() queue.Entry {
	e := queue.Entry{
		Queue: m.queue, ID: m.id, Generation: m.gen, EnqueuedAt: time.UnixMilli(m.enqueued), Key: m.key,
		Attempts: m.attempts, Excused: m.excused, Lapses: m.lapses, LastError: m.lastError, PayloadBytes: int64(len(m.payload)),
	}
	if m.notBefore != 0 {
		e.NotBefore = time.UnixMilli(m.notBefore)
	}
	return e
}
