//go:build unix

package holdfast

import (
	"errors"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// The changes of an update that name a message, or a failed one.

// namedKinds are the kinds that namedChange draws.
var namedKinds = []string{"load", "replace payload", "reap", "reprocess", "purge"}

// namedChange gives a change of that kind. x is the receipt that it takes, if it does.
func (m *modelRun) namedChange(kind string, x queue.Receipt) modelChange {
	switch kind {
	case "load":
		return m.loadChange()
	case "replace payload":
		payload := m.payload()
		return m.settling(x, queue.ReplacePayloadChange{Receipt: x, Payload: []byte(payload)}, func(_ *ledgerQueue, w *ledgerMessage, _ queue.Outcome) (func(), error) {
			w.payload, w.fault = payload, faultNone
			return func() {}, nil
		})
	case "reap":
		o := queue.ReapOptions{MaxLapses: rapid.Uint64Range(1, 3).Draw(m.t, "most lapses")}
		return m.settling(x, queue.ReapChange{Receipt: x, MaxLapses: o.MaxLapses}, func(q *ledgerQueue, w *ledgerMessage, out queue.Outcome) (func(), error) {
			want, err := m.want.reapOne(q, w, o, m.at())
			return func() { m.ended([]queue.Returned{out.Returned}, want) }, err
		})
	case "reprocess":
		name := m.failedName()
		return modelChange{queue.ReprocessChange{FailedName: name.name, Options: queue.ReprocessOptions{Namespace: name.space}}, func(queue.Outcome) (func(), error) {
			return func() {}, m.want.reprocess(name)
		}}
	}
	name := m.failedName()
	return modelChange{queue.PurgeChange{FailedName: name.name, Options: queue.PurgeOptions{Namespace: name.space}}, func(queue.Outcome) (func(), error) {
		return func() {}, m.want.purge(name)
	}}
}

// loadChange gives a load, which names no holder. Damage refuses nothing.
func (m *modelRun) loadChange() modelChange {
	name, t := m.queueName(), m.taking()
	id := m.rival(name, m.id())
	t.holder = token{}
	o := queue.LoadOptions{Lease: t.lease, Label: t.label, WithoutHolder: true}
	return modelChange{queue.LoadChange{Queue: name, ID: id, Options: o}, func(out queue.Outcome) (func(), error) {
		w, aside, err := m.want.load(name, id, t, m.at(), m.dead)
		if errors.Is(err, queue.ErrDamaged) {
			return func() {
				if c := out.Claimed; len(c.Deliveries) != 0 || len(c.Damaged) != 1 || c.Damaged[0].FailedName != aside.name {
					m.Fatalf("loaded %+v, want the damage, kept as %+v", c, aside)
				}
			}, nil
		}
		if err != nil {
			return nil, err
		}
		then := *w // as it is now: more may be done to it
		return func() {
			if len(out.Claimed.Deliveries) != 1 || len(out.Claimed.Damaged) != 0 {
				m.Fatalf("loaded %+v, want one delivery", out.Claimed)
			}
			m.delivered(out.Claimed.Deliveries[0], &then)
		}, nil
	}}
}
