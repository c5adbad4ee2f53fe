//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// The calls, each on both sides, and their answers compared.

func (m *modelRun) queueName() string { return rapid.SampledFrom(modelQueues).Draw(m.t, "queue") }
func (m *modelRun) id() string        { return rapid.SampledFrom(modelIDs).Draw(m.t, "id") }

func (m *modelRun) payload() string {
	m.made++
	switch rapid.IntRange(0, 60).Draw(m.t, "payload") {
	case 0:
		return fmt.Sprintf(`"%d%s"`, m.made, strings.Repeat("x", smallPayload))
	case 1:
		return `"the same again"`
	case 2:
		return fmt.Sprintf("\n[ %d , \"\u2028<&>\" ]\t", m.made)
	}
	return fmt.Sprint(m.made)
}

func (m *modelRun) arrival() arrival {
	a := arrival{
		id: m.id(), payload: []byte(m.payload()),
		ifExists: rapid.SampledFrom([]queue.IfExists{queue.Refuse, queue.Keep, queue.Replace, queue.Replace}).Draw(m.t, "if exists"),
		key:      rapid.SampledFrom([]string{"", "", `chat "42"`}).Draw(m.t, "key"),
	}
	if wait := rapid.SampledFrom([]time.Duration{0, 0, 0, -time.Minute, time.Minute, time.Hour}).Draw(m.t, "wait"); wait != 0 {
		a.notBefore = m.at().Wall.Add(wait).UnixMilli()
	}
	return a
}

func (m *modelRun) taking() taking {
	return taking{
		max:   rapid.IntRange(1, 3).Draw(m.t, "n"),
		lease: rapid.SampledFrom([]time.Duration{time.Millisecond, time.Minute, time.Minute, time.Hour, queue.NoDeadline}).Draw(m.t, "lease"),
		label: rapid.SampledFrom([]string{"", "worker <1>"}).Draw(m.t, "label"),
	}
}

// accepted compares the answer to an enqueue.
func (m *modelRun) accepted(e queue.Enqueued, w *ledgerMessage, kept bool) {
	if !kept {
		if slices.Contains(m.gens, e.Generation) {
			m.Fatalf("generation %s was given before", e.Generation)
		}
		m.gens = append(m.gens, e.Generation)
		w.gen = e.Generation
	}
	want := queue.Enqueued{Queue: w.queue, ID: w.id, Generation: w.gen, Revision: m.base.revision + 1, Kept: kept}
	if g, ok := parseGeneration(w.gen); kept && ok && g.commit != m.d.st.commit {
		want.Revision = m.base.revision
	}
	if e != want {
		m.Fatalf("enqueue answers %+v, want %+v", e, want)
	}
}

func (m *modelRun) enqueueOne() {
	name, a := m.queueName(), m.arrival()
	e, err := m.enqueue(name, a)
	w, kept, wantErr := m.want.enqueue(name, a, m.at())
	if m.is(err, wantErr); err == nil {
		m.accepted(e, w, kept)
	}
}

func (m *modelRun) enqueueBatch() {
	name := m.queueName()
	as := make([]arrival, rapid.IntRange(1, 4).Draw(m.t, "messages"))
	for i := range as {
		as[i] = m.arrival()
	}
	es, err := m.enqueueAll(name, as...)
	before := m.want.clone()
	var refused []int
	ws, kept := make([]*ledgerMessage, len(as)), make([]bool, len(as))
	for i, a := range as {
		var wantErr error
		if ws[i], kept[i], wantErr = m.want.enqueue(name, a, m.at()); wantErr != nil {
			refused = append(refused, i)
		}
	}
	if refused != nil {
		m.want = before
		var batch *queue.BatchError
		if m.is(err, queue.ErrDuplicate); !errors.As(err, &batch) || len(batch.Refused) != len(refused) {
			m.Fatalf("got %v, want the refusals %v", err, refused)
		}
		for i, x := range batch.Refused {
			if x.Index != refused[i] {
				m.Fatalf("got %v, want the refusals %v", err, refused)
			}
		}
		return
	}
	m.is(err, nil)
	for i, e := range es {
		m.accepted(e, ws[i], kept[i])
	}
}

// delivered compares one delivery with the message as it stands now.
func (m *modelRun) delivered(d queue.Delivery, w *ledgerMessage) {
	want := queue.Delivery{
		Receipt: queue.Receipt{Store: m.base.store.String(), Queue: w.queue, ID: w.id, Generation: w.gen, Attempt: w.attempts},
		Payload: d.Payload, Key: w.key, Fence: w.fence, EnqueuedAt: time.UnixMilli(w.enqueued), LastError: w.lastError,
		Failures: w.attempts - 1 - w.excused - w.lapses, Lapses: w.lapses,
	}
	if !w.forever {
		want.Deadline = time.UnixMilli(w.deadline.UnixMilli())
	}
	if !reflect.DeepEqual(d, want) || string(d.Payload) != w.payload {
		m.Fatalf("delivered %+v, want %+v", d, want)
	}
	if d.Fence <= m.fence {
		m.Fatalf("fence %d after fence %d", d.Fence, m.fence)
	}
	m.fence = d.Fence
	m.receipts = append(m.receipts, d.Receipt)
}

func (m *modelRun) claimSome() {
	name, t := m.queueName(), m.taking()
	got, err := m.claim(name, t)
	delivered, aside, wantErr := m.want.claim(name, t, m.at())
	m.is(err, wantErr)
	if len(got.Deliveries) != len(delivered) || len(got.Damaged) != len(aside) {
		m.Fatalf("claimed %+v, want %d messages and %d damaged", got, len(delivered), len(aside))
	}
	for i, d := range got.Deliveries {
		m.delivered(d, delivered[i])
	}
	for i, e := range got.Damaged {
		if w := m.want.failed[aside[i]]; e.Queue != name || e.ID != w.id || e.FailedName != aside[i].name {
			m.Fatalf("damaged: %+v, want %+v", *e, aside[i])
		}
	}
}

func (m *modelRun) loadOne() {
	name, id, t := m.queueName(), m.id(), m.taking()
	d, err := m.load(name, id, t)
	w, aside, wantErr := m.want.load(name, id, t, m.at())
	m.is(err, wantErr)
	var e *queue.DamagedError
	switch {
	case err == nil:
		m.delivered(d, w)
	case errors.As(err, &e) && e.FailedName != aside.name:
		m.Fatalf("damaged: %+v, want %+v", *e, aside)
	}
}

// receipt draws one that was given: often a good one, else the latest most often, or
// one that nobody was given.
func (m *modelRun) receipt() (x queue.Receipt, ok bool) {
	among := m.receipts
	if rapid.Bool().Draw(m.t, "good") {
		among = nil
		for _, x := range m.receipts {
			if _, _, _, err := m.want.held(m.base.store.String(), x); err == nil {
				among = append(among, x)
			}
		}
	}
	if len(among) == 0 {
		return x, false
	}
	x = among[len(among)-1-rapid.IntRange(0, len(among)-1).Draw(m.t, "receipt, from the last")]
	switch rapid.IntRange(0, 25).Draw(m.t, "change") {
	case 0:
		x.Store = namedToken("another store").String()
	case 1:
		x.Queue = m.queueName()
	case 2:
		x.ID = m.id()
	case 3:
		x.Generation = rapid.SampledFrom(m.gens).Draw(m.t, "generation")
	case 4:
		x.Attempt = rapid.Uint64Range(1, 4).Draw(m.t, "attempt")
	}
	return x, true
}

// settle takes one settlement; do is told whether the receipt is good.
func (m *modelRun) settle(call func(x queue.Receipt) error, expect func(q *ledgerQueue, w *ledgerMessage) error) {
	x, ok := m.receipt()
	if !ok {
		return
	}
	err := call(x)
	q, w, current, wantErr := m.want.held(m.base.store.String(), x)
	switch {
	case wantErr == nil:
		m.is(err, expect(q, w))
	case errors.Is(wantErr, queue.ErrLost):
		m.lost(err, x, wantErr, current)
	default:
		m.is(err, wantErr)
	}
}

func (m *modelRun) ackOne() {
	m.settle(m.ack, func(q *ledgerQueue, w *ledgerMessage) error { m.want.ack(q, w); return nil })
}

func (m *modelRun) releaseOne() {
	m.settle(m.release, func(q *ledgerQueue, w *ledgerMessage) error { m.want.release(q, w); return nil })
}

func (m *modelRun) failOne() {
	as := rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(m.t, "as")
	var name string
	m.settle(func(x queue.Receipt) (err error) {
		name, err = m.fail(x, "no\n", as)
		return err
	}, func(q *ledgerQueue, w *ledgerMessage) error {
		want, err := m.want.fail(q, w, "no\n", as, m.at())
		if name != want {
			m.Fatalf("failed as %q, want %q", name, want)
		}
		return err
	})
}

func (m *modelRun) replaceOne() {
	payload := m.payload()
	m.settle(func(x queue.Receipt) error { return m.replacePayload(x, payload) }, func(_ *ledgerQueue, w *ledgerMessage) error {
		w.payload, w.fault = payload, faultNone
		return nil
	})
}

func (m *modelRun) purgeOne() {
	name := ledgerName{rapid.SampledFrom([]string{"", "aside"}).Draw(m.t, "space"), rapid.SampledFrom(modelNames).Draw(m.t, "name")}
	if rapid.Bool().Draw(m.t, "one that is there") {
		for there := range m.want.failed { // the least, so that a run can be repeated
			if m.want.failed[name] == nil || there.space+" "+there.name < name.space+" "+name.name {
				name = there
			}
		}
	}
	m.is(m.purge(name.space, name.name), m.want.purge(name))
}

func (m *modelRun) clearOne() {
	if rapid.IntRange(0, 2).Draw(m.t, "clear") > 0 {
		return
	}
	name, leasedToo := m.queueName(), rapid.Bool().Draw(m.t, "leased too")
	if got, want := m.clear(name, leasedToo), m.want.clear(name, leasedToo); got != want {
		m.Fatalf("cleared %d, want %d", got, want)
	}
}

func (m *modelRun) pauseOne() {
	q := m.want.queues[m.queueName()]
	q.paused = !q.paused && rapid.Bool().Draw(m.t, "pause")
	m.pause(q.name, q.paused)
}

func (m *modelRun) reapOne() {
	for _, name := range modelQueues {
		q := m.want.queues[name]
		for _, w := range q.live {
			if w.stage == stageLeased && rapid.Bool().Draw(m.t, "reap") {
				m.reap(name, w.id)
				m.want.reap(q, w)
				return
			}
		}
	}
}
