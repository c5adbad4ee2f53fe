//go:build unix

package holdfast

import (
	"errors"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// A ledger is the model that the core is compared with: section 3 of the design in
// slices and maps, as plain as it can be said. It knows nothing of states, drafts,
// objects or sequences. A queue's messages stand in one slice, in order of their
// places; everything is found by looking through it. model_test.go drives both.
type ledger struct {
	fence  uint64
	queues map[string]*ledgerQueue
	failed map[ledgerName]*ledgerMessage
}

// A ledgerName is a failed name in its namespace.
type ledgerName struct{ space, name string }

type ledgerQueue struct {
	name, space string
	paused      bool
	live        []*ledgerMessage
	counted     queue.Counters
}

type ledgerMessage struct {
	queue, id, gen, payload, key string
	enqueued, notBefore          int64 // Unix milliseconds; notBefore 0: none

	attempts, excused, lapses uint64
	stage                     ledgerStage
	lastError                 string

	// While leased.
	forever  bool
	deadline time.Time
	boot     string
	bootEnds time.Duration
	label    string
	fence    uint64

	failedAt int64
	fault    ledgerFault
}

type ledgerStage string

const (
	stageWaiting  ledgerStage = ""
	stageLeased   ledgerStage = "leased"
	stageReaped   ledgerStage = "reaped"
	stageReleased ledgerStage = "released"
)

// A ledgerFault is what is wrong with a payload on the disk.
type ledgerFault int

const (
	faultNone ledgerFault = iota
	faultDamaged
	faultUnreadable
)

var errUnreadable = errors.New("input/output error")

func newLedger(spaces map[string]string) *ledger {
	l := &ledger{queues: map[string]*ledgerQueue{}, failed: map[ledgerName]*ledgerMessage{}}
	for name, space := range spaces {
		l.queues[name] = &ledgerQueue{name: name, space: space}
	}
	return l
}

func (l *ledger) clone() *ledger {
	c := &ledger{fence: l.fence, queues: map[string]*ledgerQueue{}, failed: map[ledgerName]*ledgerMessage{}}
	for name, q := range l.queues {
		copied := *q
		copied.live = nil
		for _, m := range q.live {
			one := *m
			copied.live = append(copied.live, &one)
		}
		c.queues[name] = &copied
	}
	for name, m := range l.failed {
		one := *m
		c.failed[name] = &one
	}
	return c
}

// byGeneration gives every message, the failed ones included.
func (l *ledger) byGeneration() map[string]*ledgerMessage {
	all := map[string]*ledgerMessage{}
	for _, q := range l.queues {
		for _, m := range q.live {
			all[m.gen] = m
		}
	}
	for _, m := range l.failed {
		all[m.gen] = m
	}
	return all
}

// first is the generation of id that is delivered first, or nil.
func (q *ledgerQueue) first(id string) *ledgerMessage {
	for _, m := range q.live {
		if m.id == id {
			return m
		}
	}
	return nil
}

// newest is the generation of id that was enqueued last, or nil.
func (q *ledgerQueue) newest(id string) *ledgerMessage {
	var newest *ledgerMessage
	for _, m := range q.live {
		if m.id == id {
			newest = m
		}
	}
	return newest
}

func (q *ledgerQueue) remove(gone *ledgerMessage) {
	q.live = slices.DeleteFunc(q.live, func(m *ledgerMessage) bool { return m == gone })
}

// blocked: one generation of an ID is in flight at a time, and the older goes first.
func (q *ledgerQueue) blocked(m *ledgerMessage) bool { return q.first(m.id) != m }

func (m *ledgerMessage) scheduled(now instant) bool { return m.notBefore > now.Wall.UnixMilli() }

// over: a lease is over when now is at its deadline. Within one boot the boot clock
// decides, after a reboot it is over, and who lacks either goes by wall time.
func (m *ledgerMessage) over(now instant) bool {
	switch {
	case m.forever:
		return false
	case m.boot != "" && now.BootID != "":
		return m.boot != now.BootID || now.Boot >= m.bootEnds
	}
	return !now.Wall.Before(m.deadline)
}

// due gives what a claim may take, in order.
func (q *ledgerQueue) due(now instant) []*ledgerMessage {
	var due []*ledgerMessage
	for _, m := range q.live {
		if m.stage != stageLeased && !m.scheduled(now) && !q.blocked(m) {
			due = append(due, m)
		}
	}
	return due
}

// enqueue gives the message that is live afterwards; the caller fills in the
// generation of a new one.
func (l *ledger) enqueue(name string, a arrival, now instant) (m *ledgerMessage, kept bool, err error) {
	q := l.queues[name]
	if old := q.newest(a.id); old != nil {
		switch a.ifExists {
		case queue.Refuse:
			return nil, false, queue.ErrDuplicate
		case queue.Keep:
			return old, true, nil
		}
		if old.attempts == 0 { // never claimed: superseded
			q.remove(old)
			q.counted.Superseded++
		}
	}
	m = &ledgerMessage{
		queue: name, id: a.id, payload: string(a.payload), key: a.key,
		enqueued: now.Wall.UnixMilli(), notBefore: a.notBefore,
	}
	q.live = append(q.live, m)
	q.counted.Enqueued++
	return m, false, nil
}

// claim gives what is delivered, and what is set aside under which name.
func (l *ledger) claim(name string, t taking, now instant) (delivered []*ledgerMessage, aside []ledgerName, err error) {
	q := l.queues[name]
	if q.paused {
		return nil, nil, nil
	}
	var hurt []*ledgerMessage
	for _, m := range q.due(now) {
		if len(delivered) == t.max {
			break
		}
		switch m.fault {
		case faultUnreadable:
			return nil, nil, errUnreadable
		case faultDamaged:
			hurt = append(hurt, m)
		default:
			delivered = append(delivered, m)
		}
	}
	for _, m := range hurt {
		aside = append(aside, l.setAside(q, m, now))
	}
	for _, m := range delivered {
		l.lease(q, m, t, now)
	}
	return delivered, aside, nil
}

func (l *ledger) load(name, id string, t taking, now instant) (m *ledgerMessage, aside ledgerName, err error) {
	q := l.queues[name]
	switch m = q.first(id); {
	case m == nil:
		return nil, aside, queue.ErrNotFound
	case m.stage == stageLeased && !m.forever && !m.over(now):
		return nil, aside, queue.ErrLeased
	case m.fault == faultUnreadable:
		return nil, aside, errUnreadable
	case m.fault == faultDamaged:
		return m, l.setAside(q, m, now), queue.ErrDamaged
	}
	if m.stage == stageLeased { // taken over: a lapse
		m.lapses++
		q.counted.Reaped++
	}
	l.lease(q, m, t, now)
	return m, aside, nil
}

func (l *ledger) lease(q *ledgerQueue, m *ledgerMessage, t taking, now instant) {
	l.fence++
	q.counted.Claimed++
	m.stage, m.fence, m.label, m.notBefore = stageLeased, l.fence, t.label, 0
	m.attempts++
	if m.forever = t.lease == queue.NoDeadline; !m.forever {
		m.deadline, m.boot, m.bootEnds = now.Wall.Add(t.lease), now.BootID, now.Boot+t.lease
	}
}

// setAside: the failed name is the ID, or ID~generation when that is taken.
func (l *ledger) setAside(q *ledgerQueue, m *ledgerMessage, now instant) ledgerName {
	name := ledgerName{q.space, m.id}
	if l.failed[name] != nil {
		name.name = m.id + "~" + m.gen
	}
	q.counted.Damaged++
	l.bury(q, m, name, "damaged payload: its checksum is wrong", now)
	return name
}

func (l *ledger) bury(q *ledgerQueue, m *ledgerMessage, name ledgerName, why string, now instant) {
	q.remove(m)
	q.counted.Failed++
	m.lastError, m.notBefore, m.failedAt = why, 0, now.Wall.UnixMilli()
	l.failed[name] = m
}

// held finds the message whose claim x proves; current is its attempt.
func (l *ledger) held(store string, x queue.Receipt) (q *ledgerQueue, m *ledgerMessage, current uint64, err error) {
	if x.Store != store {
		return nil, nil, 0, queue.ErrInvalidReceipt
	}
	q = l.queues[x.Queue]
	for _, m := range q.live {
		switch {
		case m.id != x.ID || m.gen != x.Generation:
			continue
		case m.attempts != x.Attempt, m.stage != stageLeased && m.stage != stageReaped:
			return nil, nil, m.attempts, queue.ErrStale
		}
		return q, m, m.attempts, nil
	}
	return nil, nil, 0, queue.ErrGone
}

func (l *ledger) ack(q *ledgerQueue, m *ledgerMessage) {
	q.remove(m)
	q.counted.Completed++
}

// release excuses the attempt; if it had lapsed, it has not.
func (l *ledger) release(q *ledgerQueue, m *ledgerMessage) {
	if m.stage == stageReaped {
		m.lapses--
	}
	m.stage = stageReleased
	m.excused++
	q.counted.Released++
}

func (l *ledger) reap(q *ledgerQueue, m *ledgerMessage) {
	m.stage = stageReaped
	m.lapses++
	q.counted.Reaped++
}

func (l *ledger) fail(q *ledgerQueue, m *ledgerMessage, cause, as string, now instant) (string, error) {
	if as == "" {
		as = m.id
	}
	name := ledgerName{q.space, as}
	if l.failed[name] != nil {
		return "", queue.ErrFailedExists
	}
	l.bury(q, m, name, cause, now)
	return as, nil
}

func (l *ledger) purge(name ledgerName) error {
	m := l.failed[name]
	if m == nil {
		return queue.ErrNotFailed
	}
	delete(l.failed, name)
	l.queues[m.queue].counted.Purged++
	return nil
}

func (l *ledger) clear(name string, leasedToo bool) (n uint64) {
	q := l.queues[name]
	q.live = slices.DeleteFunc(q.live, func(m *ledgerMessage) bool {
		if m.stage == stageLeased && !leasedToo {
			return false
		}
		n++
		return true
	})
	q.counted.Cleared += n
	return n
}
