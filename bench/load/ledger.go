//go:build unix

package load

import (
	"fmt"
	"sync"
)

// A Ledger knows which messages were enqueued and which were delivered. It may be used by
// many goroutines.
type Ledger struct {
	mu     sync.Mutex
	sent   []span // the last one is this ledger's own, and grows
	seen   map[uint64]bool
	others bool // messages of other ledgers may be delivered here too
}

// A span is the numbers from first to before end.
type span struct{ First, End uint64 }

// newLedger begins with the number first. With others, messages are taken for true that it
// has not sent: the ledger of all decides.
func newLedger(first uint64, others bool) *Ledger {
	return &Ledger{sent: []span{{first, first}}, seen: map[uint64]bool{}, others: others}
}

// Next makes one more message.
func (l *Ledger) Next() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := &l.sent[len(l.sent)-1]
	own.End++
	return payload(own.End - 1)
}

// See takes down a delivery. An error says that the peer has altered, invented or doubled
// a message.
func (l *Ledger) See(p []byte) error {
	n, err := numberOf(p)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.see(n)
}

func (l *Ledger) see(n uint64) error {
	if !l.others && !l.wasSent(n) {
		return fmt.Errorf("message %d was delivered and never enqueued", n)
	}
	if l.seen[n] {
		return fmt.Errorf("message %d was delivered twice", n)
	}
	l.seen[n] = true
	return nil
}

func (l *Ledger) wasSent(n uint64) bool {
	for _, s := range l.sent {
		if s.First <= n && n < s.End {
			return true
		}
	}
	return false
}

// seenNumbers lists what was delivered.
func (l *Ledger) seenNumbers() []uint64 {
	list := make([]uint64, 0, len(l.seen))
	for n := range l.seen {
		list = append(list, n)
	}
	return list
}

// merge takes over what other processes have enqueued and seen: all that was enqueued
// first, for they get each other's.
func (l *Ledger) merge(answers []answer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range answers {
		l.sent = append([]span{a.Sent}, l.sent...)
	}
	for _, a := range answers {
		for _, n := range a.Seen {
			if err := l.see(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check says whether the peer has lost or doubled a message, when it has so many left,
// pending or claimed.
func (l *Ledger) Check(left int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sent uint64
	for _, s := range l.sent {
		sent += s.End - s.First
	}
	switch missing := int(sent) - len(l.seen); {
	case left < missing:
		return fmt.Errorf("%d messages were enqueued, %d delivered, %d are left: %d were lost", sent, len(l.seen), left, missing-left)
	case left > missing:
		return fmt.Errorf("%d messages were enqueued, %d delivered, %d are left: %d too many", sent, len(l.seen), left, left-missing)
	}
	return nil
}
