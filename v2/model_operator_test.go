//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// What an operator does, and several changes in one update.

// modelHolders may be dead, or in a state in which they cannot be asked.
var modelHolders = []token{namedToken("holder 1"), namedToken("holder 2"), namedToken("holder 3")}

// A modelHolder is what is known of a holder.
type modelHolder int

const (
	modelAlive modelHolder = iota
	modelDead
	modelUnasked
)

// fate changes what becomes known of a holder.
func (m *modelRun) fate() {
	m.holders[rapid.SampledFrom(modelHolders).Draw(m.t, "holder")] =
		rapid.SampledFrom([]modelHolder{modelAlive, modelDead, modelUnasked}).Draw(m.t, "fate")
}

func (m *modelRun) asked(holder token) (bool, error) {
	if m.holders[holder] == modelUnasked {
		return false, errUnasked
	}
	return m.holders[holder] == modelDead, nil
}

// ended compares what a reaping says.
func (m *modelRun) ended(got, want []queue.Returned) {
	if !slices.Equal(got, want) {
		m.Fatalf("reaped\n%+v\nwant\n%+v", got, want)
	}
}

func (m *modelRun) reapSome() {
	o := queue.ReapOptions{
		Limit:     rapid.IntRange(1, 3).Draw(m.t, "limit"),
		MaxLapses: rapid.Uint64Range(1, 3).Draw(m.t, "most lapses"),
	}
	if rapid.Bool().Draw(m.t, "some queues") {
		o.Queues = []string{m.queueName(), m.queueName()}
	}
	got, err := m.reapAll(o)
	want, wantErr := m.want.reap(o, m.at(), m.dead)
	m.is(err, wantErr)
	m.ended(got, want)
}

func (m *modelRun) reapOne() {
	o := queue.ReapOptions{MaxLapses: rapid.Uint64Range(1, 3).Draw(m.t, "most lapses")}
	var got []queue.Returned
	m.settle(func(x queue.Receipt) (err error) {
		named := o
		named.Receipt = &x
		got, err = m.reapAll(named)
		return err
	}, func(q *ledgerQueue, w *ledgerMessage) error {
		want, err := m.want.reapOne(q, w, o, m.at())
		m.ended(got, want)
		return err
	})
}

// failedName draws one that is there, mostly.
func (m *modelRun) failedName() ledgerName {
	there := slices.SortedFunc(maps.Keys(m.want.failed), func(a, b ledgerName) int {
		return strings.Compare(a.space+" "+a.name, b.space+" "+b.name)
	})
	if i := rapid.IntRange(-1, len(there)-1).Draw(m.t, "failed"); i >= 0 {
		return there[i]
	}
	return ledgerName{rapid.SampledFrom(modelNamespaces).Draw(m.t, "space"), rapid.SampledFrom(modelNames).Draw(m.t, "name")}
}

func (m *modelRun) reprocessOne() {
	name := m.failedName()
	m.is(m.reprocess(name.space, name.name), m.want.reprocess(name))
}

func (m *modelRun) purgeOne() {
	if rapid.IntRange(0, 1).Draw(m.t, "purge") > 0 {
		return
	}
	name := m.failedName()
	m.is(m.purge(name.space, name.name), m.want.purge(name))
}

func (m *modelRun) clearOne() {
	if rapid.IntRange(0, 2).Draw(m.t, "clear") > 0 {
		return
	}
	name, leasedToo := m.queueName(), rapid.Bool().Draw(m.t, "leased too")
	got, err := m.tryClear(name, leasedToo)
	want, wantErr := m.want.clear(name, leasedToo)
	if m.is(err, wantErr); got != want {
		m.Fatalf("cleared %d, want %d", got, want)
	}
}

func (m *modelRun) pauseOne() {
	q := m.want.queues[m.queueName()]
	paused := !q.paused && rapid.Bool().Draw(m.t, "pause")
	if m.is(m.pause(q.name, paused), m.want.refusal(q.name)); !m.want.importing(q.name) {
		q.paused = paused
	}
}

func (m *modelRun) namespaceOne() {
	q := m.want.queues[m.queueName()]
	space := rapid.SampledFrom(modelNamespaces).Draw(m.t, "space")
	if m.is(m.setNamespace(q.name, space), m.want.refusal(q.name)); !m.want.importing(q.name) {
		q.space = space
	}
}

func (m *modelRun) cursorOne() {
	q := m.want.queues[m.queueName()]
	cursor := rapid.SampledFrom([]string{"", "1", "22"}).Draw(m.t, "cursor")
	if m.is(m.setCursor(q.name, cursor), m.want.refusal(q.name)); !m.want.importing(q.name) {
		q.cursor = cursor
	}
}

// A modelChange is one change of an update: made in the ledger, where the core's
// outcome fills in the generation, it gives what to compare that with, or a refusal.
type modelChange struct {
	change queue.Change
	make   func(out queue.Outcome) (compare func(), err error)
}

// settling gives a change that takes a receipt.
func (m *modelRun) settling(x queue.Receipt, change queue.Change, make func(q *ledgerQueue, w *ledgerMessage, out queue.Outcome) (func(), error)) modelChange {
	return modelChange{change, func(out queue.Outcome) (func(), error) {
		q, w, _, err := m.want.proven(m.base.store.String(), x)
		if err != nil {
			return nil, err
		}
		return make(q, w, out)
	}}
}

// change draws one. Claims name no holder: there is no process file behind a rig.
func (m *modelRun) change() modelChange {
	name := m.queueName()
	kind := rapid.SampledFrom(append([]string{"enqueue", "claim", "cursor", "ack", "release", "retry", "extend", "fail"}, namedKinds...)).Draw(m.t, "change")
	x, ok := queue.Receipt{}, false
	if !slices.Contains([]string{"enqueue", "claim", "cursor", "load", "reprocess", "purge"}, kind) {
		if x, ok = m.receipt(); !ok {
			kind = "enqueue"
		}
		x.Attempt += rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(m.t, "of a claim to come")
	}
	if slices.Contains(namedKinds, kind) {
		return m.namedChange(kind, x)
	}
	switch kind {
	case "enqueue":
		a := m.arrival()
		message := queue.Message{ID: a.id, Payload: a.payload, Key: a.key, IfExists: a.ifExists}
		if a.notBefore != 0 {
			message.NotBefore = time.UnixMilli(a.notBefore)
		}
		return modelChange{queue.EnqueueChange{Queue: name, Message: message}, func(out queue.Outcome) (func(), error) {
			w, kept, err := m.want.enqueue(name, a, m.at())
			if err != nil {
				return nil, err
			}
			if !kept {
				w.gen = out.Enqueued.Generation
			}
			gen := w.gen
			return func() { m.accepted(out.Enqueued, &ledgerMessage{queue: name, id: a.id, gen: gen}, kept) }, nil
		}}
	case "claim":
		t := m.taking()
		t.holder = token{}
		o := queue.ClaimOptions{Max: t.max, Lease: t.lease, Label: t.label, Fair: t.fair, WithoutHolder: true}
		return modelChange{queue.ClaimChange{Queue: name, Options: o}, func(out queue.Outcome) (func(), error) {
			delivered, aside, err := m.want.claim(name, t, m.at())
			if err != nil {
				return nil, err
			}
			then := make([]*ledgerMessage, len(delivered)) // as they are now: more may be done to them
			for i, w := range delivered {
				one := *w
				then[i] = &one
			}
			ids := make([]string, len(aside))
			for i, name := range aside {
				ids[i] = m.want.failed[name].id
			}
			return func() { m.claimed(name, out.Claimed, then, aside, ids) }, nil
		}}
	case "cursor":
		cursor := rapid.SampledFrom([]string{"", "1", "22"}).Draw(m.t, "cursor")
		return modelChange{queue.CursorChange{Queue: name, Cursor: cursor}, func(queue.Outcome) (func(), error) {
			if err := m.want.refusal(name); err != nil {
				return nil, err
			}
			m.want.queues[name].cursor = cursor
			return func() {}, nil
		}}
	case "ack":
		return m.settling(x, queue.AckChange{Receipt: x}, func(q *ledgerQueue, w *ledgerMessage, _ queue.Outcome) (func(), error) {
			m.want.ack(q, w)
			return func() {}, nil
		})
	case "release":
		delay := m.delay()
		return m.settling(x, queue.ReleaseChange{Receipt: x, Options: queue.ReleaseOptions{Delay: delay}}, func(q *ledgerQueue, w *ledgerMessage, _ queue.Outcome) (func(), error) {
			m.want.release(q, w, delay, m.at())
			return func() {}, nil
		})
	case "retry":
		o := m.retryOptions()
		return m.settling(x, queue.RetryChange{Receipt: x, Options: o}, func(q *ledgerQueue, w *ledgerMessage, out queue.Outcome) (func(), error) {
			want := m.want.retry(q, w, o, m.at())
			return func() { m.is(m.returned(out.Returned, nil, want), nil) }, nil
		})
	case "extend":
		lease := m.lease()
		return m.settling(x, queue.ExtendChange{Receipt: x, Lease: lease}, func(q *ledgerQueue, w *ledgerMessage, out queue.Outcome) (func(), error) {
			want, err := m.want.extend(q, w, lease, m.at())
			return func() {
				if !out.Deadline.Equal(want) {
					m.Fatalf("extended until %s, want %s", out.Deadline, want)
				}
			}, err
		})
	}
	as := rapid.SampledFrom([]string{"", "x", "y"}).Draw(m.t, "as")
	return m.settling(x, queue.FailChange{Receipt: x, Options: queue.FailOptions{As: as, Cause: "no"}}, func(q *ledgerQueue, w *ledgerMessage, out queue.Outcome) (func(), error) {
		want, err := m.want.fail(q, w, "no", as, m.at())
		return func() {
			if out.Failed != want {
				m.Fatalf("failed as %q, want %q", out.Failed, want)
			}
		}, err
	})
}

// updateSome makes some changes in one update: all of them, or none.
func (m *modelRun) updateSome() {
	var all []modelChange
	var changes []queue.Change
	for range rapid.IntRange(1, 4).Draw(m.t, "changes") {
		c := m.change()
		all, changes = append(all, c), append(changes, c.change)
	}
	m.open() // the changes are decided at the draft's time
	out, err := m.update(changes...)
	before := m.want.clone()
	if err != nil {
		out = make([]queue.Outcome, len(all))
	}
	var compare []func()
	for i, c := range all {
		check, wantErr := c.make(out[i])
		if wantErr != nil {
			m.want = before
			var refused *queue.UpdateError
			if m.is(err, wantErr); !errors.As(err, &refused) || refused.Index != i {
				m.Fatalf("refused: %v; want change %d refused", err, i)
			}
			return
		}
		compare = append(compare, check)
	}
	if err != nil {
		m.Fatalf("update %s: %v", fmt.Sprintf("%+v", changes), err)
	}
	for _, check := range compare {
		check()
	}
}
