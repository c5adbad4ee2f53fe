//go:build unix

package crashtest

import (
	"fmt"
	"slices"
	"strings"

	"example.com/holdfast/internal/fsguard"
)

// An Event is one operation that passed through a Wrapper.
type Event struct {
	N     int // 0 if it was not numbered
	Op    fsguard.Op
	Path  string // below the root that was opened; the new name of a rename, move or link, the second of an exchange
	From  string // the old path of a rename, move or link, the first of an exchange
	Group int    // of a sync: which sync group it was submitted in
	Err   error
}

func (e Event) String() string {
	number, from, result := "", "", ""
	if e.N > 0 {
		number = fmt.Sprint(e.N)
	}
	if e.From != "" {
		from = " from " + e.From
		if e.Op == fsguard.OpExchange {
			from = " with " + e.From
		}
	}
	if e.Err != nil {
		result = " = " + e.Err.Error()
	}
	return fmt.Sprintf("%5s %s %s%s%s", number, e.Op, e.Path, from, result)
}

// Events returns what happened since the last Arm.
func (w *Wrapper) Events() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Event, len(w.events))
	for i, e := range w.events {
		out[i] = *e
	}
	return out
}

// Trace prints Events.
func (w *Wrapper) Trace() string {
	var b strings.Builder
	for _, e := range w.Events() {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// Ops returns how many operations were numbered since the last Arm.
func (w *Wrapper) Ops() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Count returns how many operations of these kinds there were since the last Arm,
// numbered or not, all kinds if none is given.
func (w *Wrapper) Count(ops ...fsguard.Op) (count int) {
	for _, e := range w.Events() {
		if len(ops) == 0 || slices.Contains(ops, e.Op) {
			count++
		}
	}
	return count
}

// Syncs returns how many syncs of files and directories there were.
func (w *Wrapper) Syncs() int { return w.Count(fsguard.OpSync, fsguard.OpSyncData, fsguard.OpSyncDir) }

// SyncGroups returns the paths of the syncs, those submitted by one SyncAll
// together, in the order in which the groups began. A Sync of its own is a group
// of one.
func (w *Wrapper) SyncGroups() [][]string {
	var out [][]string
	at := map[int]int{}
	for _, e := range w.Events() {
		if e.Group == 0 {
			continue
		}
		i, ok := at[e.Group]
		if !ok {
			i = len(out)
			at[e.Group], out = i, append(out, nil)
		}
		out[i] = append(out[i], e.Path)
	}
	return out
}

// Violations returns what no correct protocol does, whatever fails: a Sync on a
// description on which a Sync has failed, any operation on a closed one. Arm does
// not clear them.
func (w *Wrapper) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}

// Fired reports whether the plan did what it says, once at least.
func (w *Wrapper) Fired() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fired
}
