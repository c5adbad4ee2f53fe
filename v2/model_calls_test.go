//go:build unix

package holdfast

import (
	"cmp"
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

func (m *modelRun) queueName() string { return rapid.SampledFrom(m.names).Draw(m.t, "queue") }
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
		key:      rapid.SampledFrom(m.keys).Draw(m.t, "key"),
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
		fair:  rapid.Bool().Draw(m.t, "fair"),
		// None, or one of a few that may be dead.
		holder: rapid.SampledFrom(append([]token{{}}, modelHolders...)).Draw(m.t, "holder"),
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
		if m.is(err, cmp.Or(m.want.refusal(name), queue.ErrDuplicate)); !errors.As(err, &batch) || len(batch.Refused) != len(refused) {
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
	ids := make([]string, len(aside))
	for i, name := range aside {
		ids[i] = m.want.failed[name].id
	}
	m.claimed(name, got, delivered, aside, ids)
}

// claimed compares what a claim gives with the messages as they stand then, and with
// the names and IDs of those that were set aside.
func (m *modelRun) claimed(name string, got queue.Claimed, delivered []*ledgerMessage, aside []ledgerName, ids []string) {
	if len(got.Deliveries) != len(delivered) || len(got.Damaged) != len(aside) {
		m.Fatalf("claimed %+v, want %d messages and %d damaged", got, len(delivered), len(aside))
	}
	for i, d := range got.Deliveries {
		m.delivered(d, delivered[i])
	}
	for i, e := range got.Damaged {
		if e.Queue != name || e.ID != ids[i] || e.FailedName != aside[i].name {
			m.Fatalf("damaged: %+v, want %s as %+v", *e, ids[i], aside[i])
		}
	}
}

// rival draws a message that waits beside a reaped one of its key, if there is one.
func (m *modelRun) rival(name, id string) string {
	var rivals []string
	for _, w := range m.want.queues[name].live {
		for _, other := range m.want.queues[name].live {
			if w.stage == stageReaped && w.key != "" && other.key == w.key && other.id != w.id {
				rivals = append(rivals, other.id)
			}
		}
	}
	if rivals == nil || rapid.Bool().Draw(m.t, "any") {
		return id
	}
	return rapid.SampledFrom(rivals).Draw(m.t, "rival")
}

func (m *modelRun) loadOne() {
	name, id, t := m.queueName(), m.id(), m.taking()
	id = m.rival(name, id)
	d, err := m.load(name, id, t)
	w, aside, wantErr := m.want.load(name, id, t, m.at(), m.dead)
	m.is(err, wantErr)
	var e *queue.DamagedError
	switch {
	case err == nil:
		m.delivered(d, w)
	case errors.As(err, &e) && e.FailedName != aside.name:
		m.Fatalf("damaged: %+v, want %+v", *e, aside)
	}
}

// receipt draws one that was given: often a good one, of a reaped claim or any, else the
// latest most often, or one that nobody was given.
func (m *modelRun) receipt() (x queue.Receipt, ok bool) {
	var good, reaped []queue.Receipt
	for _, x := range m.receipts {
		if _, w, _, err := m.want.proven(m.base.store.String(), x); err == nil {
			if good = append(good, x); w.stage == stageReaped {
				reaped = append(reaped, x)
			}
		}
	}
	among := m.receipts
	switch rapid.IntRange(0, 4).Draw(m.t, "among") {
	case 0, 1:
		among = good
	case 2, 3:
		if among = reaped; reaped == nil {
			among = good
		}
	}
	if among == nil {
		among = m.receipts
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
		// Of one that was claimed at some time: of a generation that never was, the core
		// may say either, for it looks into no run for it.
		if gen := rapid.SampledFrom(m.gens).Draw(m.t, "generation"); slices.ContainsFunc(m.receipts, func(y queue.Receipt) bool { return y.Generation == gen }) {
			x.Generation = gen
		}
	case 4:
		x.Attempt = rapid.Uint64Range(1, 4).Draw(m.t, "attempt")
	}
	return x, true
}

// settle takes one settlement; expect is asked when the receipt is good.
func (m *modelRun) settle(call func(x queue.Receipt) error, expect func(q *ledgerQueue, w *ledgerMessage) error) {
	x, ok := m.receipt()
	if !ok {
		return
	}
	err := call(x)
	q, w, current, wantErr := m.want.proven(m.base.store.String(), x)
	if wantErr == nil {
		current = w.attempts
		wantErr = expect(q, w)
	}
	if errors.Is(wantErr, queue.ErrLost) {
		m.lost(err, x, wantErr, current)
	} else {
		m.is(err, wantErr)
	}
}

func (m *modelRun) delay() time.Duration {
	return rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Minute, time.Hour}).Draw(m.t, "delay")
}

func (m *modelRun) lease() time.Duration {
	return rapid.SampledFrom([]time.Duration{time.Millisecond, time.Minute, time.Hour, queue.NoDeadline}).Draw(m.t, "lease")
}

func (m *modelRun) retryOptions() queue.RetryOptions {
	return queue.RetryOptions{
		Delay:       m.delay(),
		MaxFailures: rapid.SampledFrom([]uint64{1, 2, 3, 20, 20}).Draw(m.t, "most failures"),
		Cause:       rapid.SampledFrom([]string{"", "", "smtp: 450", "\x00"}).Draw(m.t, "cause"),
	}
}

func (m *modelRun) ackOne() {
	m.settle(m.ack, func(q *ledgerQueue, w *ledgerMessage) error { m.want.ack(q, w); return nil })
}

func (m *modelRun) releaseOne() {
	delay := m.delay()
	m.settle(func(x queue.Receipt) error { return m.snooze(x, delay) }, func(q *ledgerQueue, w *ledgerMessage) error {
		m.want.release(q, w, delay, m.at())
		return nil
	})
}

func (m *modelRun) retryOne() {
	o := m.retryOptions()
	var got queue.Returned
	m.settle(func(x queue.Receipt) (err error) {
		got, err = m.retry(x, o)
		return err
	}, func(q *ledgerQueue, w *ledgerMessage) error {
		return m.returned(got, nil, m.want.retry(q, w, o, m.at()))
	})
}

func (m *modelRun) extendOne() {
	lease := m.lease()
	var got time.Time
	m.settle(func(x queue.Receipt) (err error) {
		got, err = m.extend(x, lease)
		return err
	}, func(q *ledgerQueue, w *ledgerMessage) error {
		want, err := m.want.extend(q, w, lease, m.at())
		if !got.Equal(want) {
			m.Fatalf("extended until %s, want %s", got, want)
		}
		return err
	})
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
