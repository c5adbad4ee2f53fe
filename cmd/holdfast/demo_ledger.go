//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.com/holdfast/queue"
)

// A ledger is the demo's own book, kept outside the store: what was sent, what
// each claim was given, and which acks are known to have happened.
type ledger struct {
	mu      sync.Mutex
	sent    map[string]string // ID: hash of the payload
	acked   map[string]int
	open    map[string]openClaim // claimed, and no ack seen
	altered []string
	said    []string // what workers said that is no step: their errors
}

type openClaim struct {
	worker  string
	receipt queue.Receipt
}

func newLedger() *ledger {
	return &ledger{sent: map[string]string{}, acked: map[string]int{}, open: map[string]openClaim{}}
}

// note books one line of a worker and reports whether the worker has stalled.
func (l *ledger) note(worker, text string) (stalled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := strings.Fields(text)
	switch {
	case len(f) == 5 && f[0] == "claimed":
		r, err := queue.ParseReceipt(f[4])
		if err != nil || l.sent[f[1]] != f[3] {
			l.altered = append(l.altered, f[1])
		}
		l.open[f[1]] = openClaim{worker, r}
	case len(f) == 2 && f[0] == "acked":
		l.ack(f[1])
	case len(f) == 2 && f[0] == "stalled":
		return true
	default:
		l.said = append(l.said, worker+": "+text)
	}
	return false
}

func (l *ledger) ack(id string) {
	l.acked[id]++
	delete(l.open, id)
}

// words gives what the workers said beside their steps.
func (l *ledger) words() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.said)
}

// settled counts the messages of which an ack is known.
func (l *ledger) settled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// openOf gives the claims of a worker that no ack was seen of.
func (l *ledger) openOf(worker string) map[string]openClaim {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := map[string]openClaim{}
	for id, c := range l.open {
		if c.worker == worker {
			of[id] = c
		}
	}
	return of
}

// A verdict is what the ledger and the store come to together.
type verdict struct {
	Lost       int `json:"lost"`
	Altered    int `json:"altered"`
	AckedTwice int `json:"acked_twice"`
}

// judge compares the book with the number of acks that the store counted.
func (l *ledger) judge(completed uint64) (verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := verdict{Altered: len(l.altered)}
	total := 0
	for id := range l.sent {
		switch n := l.acked[id]; {
		case n == 0:
			v.Lost++
		case n > 1:
			v.AckedTwice++
		}
	}
	for _, n := range l.acked {
		total += n
	}
	if v != (verdict{}) {
		return v, fmt.Errorf("%w: %d lost, %d altered, %d acked twice", errDemo, v.Lost, v.Altered, v.AckedTwice)
	}
	if len(l.acked) != len(l.sent) || uint64(total) != completed {
		return v, fmt.Errorf("%w: the ledger has %d acks of %d messages, the store counts %d", errDemo, total, len(l.sent), completed)
	}
	return v, nil
}
