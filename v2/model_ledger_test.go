//go:build unix

package holdfast

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// A ledger is the model that the core is compared with: section 3 of the design in
// slices and maps, as plain as it can be said. It knows nothing of states, drafts,
// objects or lines. A queue's messages stand in one slice, in order of their places;
// everything is found by looking through it. model_test.go drives both.
type ledger struct {
	fence  uint64
	queues map[string]*ledgerQueue
	failed map[ledgerName]*ledgerMessage

	imports map[token]ledgerImport
}

type ledgerImport struct {
	queue string
	open  bool
}

// A ledgerName is a failed name in its namespace.
type ledgerName struct{ space, name string }

type ledgerQueue struct {
	name, space string
	paused      bool
	cursor      string
	served      string // the key whose turn was last under fair rotation
	places      int    // given out so far
	live        []*ledgerMessage
	counted     queue.Counters
}

type ledgerMessage struct {
	queue, id, gen, payload, key string
	place                        int
	enqueued, notBefore          int64 // Unix milliseconds; notBefore 0: none

	attempts, excused, lapses uint64
	stage                     ledgerStage
	lastError                 string

	// While leased, and after a reaping what it was.
	forever  bool
	deadline time.Time
	boot     string
	bootEnds time.Duration
	holder   token // zero: none
	label    string
	fence    uint64

	failedAt int64
	fault    ledgerFault
	by       token // the open import that brought it; zero: none
}

type ledgerStage string

const (
	stageWaiting     ledgerStage = ""
	stageLeased      ledgerStage = "leased"
	stageReaped      ledgerStage = "reaped"
	stageReleased    ledgerStage = "released"
	stageRetried     ledgerStage = "retried"
	stageReprocessed ledgerStage = "reprocessed"
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
	l := &ledger{queues: map[string]*ledgerQueue{}, failed: map[ledgerName]*ledgerMessage{}, imports: map[token]ledgerImport{}}
	for name, space := range spaces {
		l.queues[name] = &ledgerQueue{name: name, space: space}
	}
	return l
}

func (l *ledger) clone() *ledger {
	c := &ledger{fence: l.fence, queues: map[string]*ledgerQueue{}, failed: map[ledgerName]*ledgerMessage{}, imports: maps.Clone(l.imports)}
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

// of is the generation of id that was claimed once, or the one that never was, or nil.
func (q *ledgerQueue) of(id string, claimed bool) *ledgerMessage {
	for _, m := range q.live {
		if m.id == id && claimed == (m.stage != stageWaiting) {
			return m
		}
	}
	return nil
}

// first is the generation of id that is delivered first, or nil: what was claimed once
// goes before what never was, even when an import brought it later.
func (q *ledgerQueue) first(id string) *ledgerMessage { return cmp.Or(q.of(id, true), q.of(id, false)) }

// newest is the generation of id that was accepted last, or nil.
func (q *ledgerQueue) newest(id string) *ledgerMessage {
	return cmp.Or(q.of(id, false), q.of(id, true))
}

func (q *ledgerQueue) remove(gone *ledgerMessage) {
	q.live = slices.DeleteFunc(q.live, func(m *ledgerMessage) bool { return m == gone })
}

// behind: one generation of an ID is in flight at a time, and the older goes first.
func (q *ledgerQueue) behind(m *ledgerMessage) bool { return q.first(m.id) != m }

func (m *ledgerMessage) scheduled(now instant) bool { return m.notBefore > now.Wall.UnixMilli() }

// candidate: it has its place among the messages of its key. One that is scheduled
// takes it when it is due, one that came back has it.
func (q *ledgerQueue) candidate(m *ledgerMessage, now instant) bool {
	return m.stage != stageLeased && !q.behind(m) && (m.stage != stageWaiting || !m.scheduled(now))
}

// held: a message of the key is leased, or an older one comes first.
func (q *ledgerQueue) held(m *ledgerMessage, now instant) bool {
	if m.key == "" {
		return false
	}
	for _, other := range q.live {
		if other.key == m.key && (other.stage == stageLeased || other.place < m.place && q.candidate(other, now)) {
			return true
		}
	}
	return false
}

// state says what a pending message waits for.
func (q *ledgerQueue) state(m *ledgerMessage, now instant) queue.State {
	switch {
	case q.behind(m):
		return queue.Blocked
	case m.scheduled(now):
		return queue.Scheduled
	case q.held(m, now):
		return queue.Blocked
	}
	return queue.Ready
}

// due gives what a claim may take, in order.
func (q *ledgerQueue) due(now instant) []*ledgerMessage {
	var due []*ledgerMessage
	for _, m := range q.live {
		if m.stage != stageLeased && q.state(m, now) == queue.Ready {
			due = append(due, m)
		}
	}
	return due
}

// turns gives it turn by turn: the next key after the one served last has the next
// one, in the order of the keys' bytes, and those without a key come after the last.
func (q *ledgerQueue) turns(now instant) []*ledgerMessage {
	served := q.served
	later := func(key string) bool { return served != "" && (key == "" || key > served) } // in this round
	before := func(a, b string) bool {
		switch {
		case later(a) != later(b):
			return later(a)
		case (a == "") != (b == ""):
			return b == ""
		}
		return a < b
	}
	var turns []*ledgerMessage
	for due := q.due(now); len(due) > 0; {
		next := 0
		for i, m := range due {
			if before(m.key, due[next].key) {
				next = i
			}
		}
		served = due[next].key
		turns = append(turns, due[next])
		due = slices.Delete(due, next, next+1)
	}
	return turns
}

// enqueue gives the message that is live afterwards; the caller fills in the
// generation of a new one.
func (l *ledger) enqueue(name string, a arrival, now instant) (m *ledgerMessage, kept bool, err error) {
	q := l.queues[name]
	if l.importing(name) {
		return nil, false, ErrImporting
	}
	if old := q.newest(a.id); old != nil {
		switch a.ifExists {
		case queue.Refuse:
			return nil, false, queue.ErrDuplicate
		case queue.Keep:
			return old, true, nil
		}
		if old.stage == stageWaiting { // never claimed: superseded
			q.remove(old)
			q.counted.Superseded++
		}
	}
	m = &ledgerMessage{
		queue: name, id: a.id, payload: string(a.payload), key: a.key, place: q.places,
		enqueued: now.Wall.UnixMilli(), notBefore: a.notBefore,
	}
	q.places++
	q.live = append(q.live, m)
	q.counted.Enqueued++
	return m, false, nil
}

// claim gives what is delivered, and what is set aside under which name. When a
// damaged one has gone, what was behind it may be due: the claim goes on with that, or
// ends where it cannot be read now.
func (l *ledger) claim(name string, t taking, now instant) (delivered []*ledgerMessage, aside []ledgerName, err error) {
	q := l.queues[name]
	if l.importing(name) {
		return nil, nil, ErrImporting
	}
	for again := !q.paused; again && len(delivered) < t.max; {
		due := q.due(now)
		if t.fair {
			due = q.turns(now)
		}
		var whole, hurt []*ledgerMessage
		for _, m := range due {
			if len(delivered)+len(whole) == t.max || hurt != nil {
				break // behind a damaged one an older one may be due than the next one here
			}
			switch m.fault {
			case faultUnreadable:
				if len(delivered)+len(aside) == 0 {
					err = errUnreadable
				}
				return delivered, aside, err
			case faultDamaged:
				hurt = append(hurt, m)
			default:
				whole = append(whole, m)
			}
		}
		for _, m := range hurt {
			aside = append(aside, l.setAside(q, m, now))
		}
		for _, m := range whole {
			if l.lease(q, m, t, now); t.fair {
				q.served = m.key
			}
		}
		delivered, again = append(delivered, whole...), hurt != nil
	}
	return delivered, aside, nil
}

func (l *ledger) load(name, id string, t taking, now instant, dead deaths) (m *ledgerMessage, aside ledgerName, err error) {
	q := l.queues[name]
	if l.importing(name) {
		return nil, aside, ErrImporting
	}
	if m = q.first(id); m == nil {
		return nil, aside, queue.ErrNotFound
	}
	if m.stage == stageLeased && !(m.forever && m.holder.zero()) {
		switch cause, err := m.ended(now, dead); {
		case err != nil:
			return nil, aside, err
		case cause == "":
			return nil, aside, queue.ErrLeased
		}
	}
	for _, other := range q.live {
		if other != m && m.key != "" && other.key == m.key && other.stage == stageLeased {
			return nil, aside, queue.ErrLeased
		}
	}
	switch m.fault {
	case faultUnreadable:
		return nil, aside, errUnreadable
	case faultDamaged:
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
	m.stage, m.fence, m.label, m.holder, m.notBefore = stageLeased, l.fence, t.label, t.holder, 0
	m.attempts++
	m.until(t.lease, now)
}

// until sets when the lease ends. For ever still ends with the boot that a holder
// lives in.
func (m *ledgerMessage) until(lease time.Duration, now instant) {
	m.forever, m.deadline, m.boot, m.bootEnds = lease == queue.NoDeadline, time.Time{}, "", 0
	switch {
	case !m.forever:
		m.deadline, m.boot, m.bootEnds = now.Wall.Add(lease), now.BootID, now.Boot+lease
	case !m.holder.zero():
		m.boot = now.BootID
	}
}

// over: a lease is over when now is at its deadline. Within one boot the boot clock
// decides, after a reboot it is over, and who lacks either goes by wall time.
func (m *ledgerMessage) over(now instant) bool {
	otherBoot := m.boot != "" && now.BootID != "" && m.boot != now.BootID
	switch {
	case m.forever:
		return otherBoot && !m.holder.zero()
	case m.boot != "" && now.BootID != "":
		return otherBoot || now.Boot >= m.bootEnds
	}
	return !now.Wall.Before(m.deadline)
}

// ended says why a lease may be ended now; empty: it may not.
func (m *ledgerMessage) ended(now instant, dead deaths) (queue.ReapCause, error) {
	switch {
	case m.over(now) && m.forever:
		return queue.ByProof, nil
	case m.over(now):
		return queue.ByDeadline, nil
	case m.holder.zero():
		return "", nil
	}
	yes, err := dead(m.holder)
	if err != nil || !yes {
		return "", err
	}
	return queue.ByProof, nil
}
