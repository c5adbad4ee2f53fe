//go:build unix

package crashtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A State is how far a journal saw a thing go.
type State string

const (
	Begun  State = "begun"  // may have happened or not
	Acked  State = "acked"  // must have happened
	Failed State = "failed" // an error was returned; Check decides what that promises
)

// An Entry is one line of a Journal.
type Entry struct {
	State State
	Key   string
	Value any
}

func (e Entry) String() string { return fmt.Sprintf("%s %s %v", e.State, e.Key, e.Value) }

// A Journal is the oracle's memory: it lives outside the disk, as somebody who
// watched the process would. Nothing is recorded once the process has died. Values
// must not be changed afterwards.
type Journal struct {
	mu      sync.Mutex
	entries []Entry
	closed  bool
}

// Begin records, before the call, what it is about to do.
func (j *Journal) Begin(key string, value any) { j.add(Entry{Begun, key, value}) }

// Ack records what a call that returned success promised.
func (j *Journal) Ack(key string, value any) { j.add(Entry{Acked, key, value}) }

// Fail records that a call returned err, which is kept as the value.
func (j *Journal) Fail(key string, err error) { j.add(Entry{Failed, key, err}) }

func (j *Journal) add(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.entries = append(j.entries, e)
	}
}

// Entries returns everything recorded, in order.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// Last returns the last entry of key that is in one of the states, any if none is
// given.
func (j *Journal) Last(key string, states ...State) (Entry, bool) {
	for _, e := range slices.Backward(j.Entries()) {
		if e.Key == key && (len(states) == 0 || slices.Contains(states, e.State)) {
			return e, true
		}
	}
	return Entry{}, false
}

// Keys returns every key in the order of its first entry.
func (j *Journal) Keys() (keys []string) {
	for _, e := range j.Entries() {
		if !slices.Contains(keys, e.Key) {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

func (j *Journal) String() string {
	var b strings.Builder
	for _, e := range j.Entries() {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// close ends recording: the process is dead.
func (j *Journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// copy returns a journal that records on from here.
func (j *Journal) copy() *Journal { return &Journal{entries: j.Entries()} }
