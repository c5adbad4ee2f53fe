//go:build unix

package holdfast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/holdfast/internal/crashtest"
)

// A crashState is where the generations of one ID are, each told by its payload; ""
// is none. The payloads of a scenario differ, and differ in length.
type crashState struct{ pending, claimed, failed string }

func (s crashState) String() string {
	return fmt.Sprintf("pending %q, claimed %q, failed %q", s.pending, s.claimed, s.failed)
}

// A crashMove is what a call does to a state, if it can.
type crashMove func(crashState) (crashState, bool)

func movePut(payload string) crashMove {
	return func(s crashState) (crashState, bool) { s.pending = payload; return s, true }
}

// moveLoad claims what is pending, or finds what is claimed.
func moveLoad(s crashState) (crashState, bool) {
	if s.claimed == "" {
		s.pending, s.claimed = "", s.pending
	}
	return s, s.claimed != ""
}

// moveEnd takes the claim of that payload away.
func moveEnd(payload string) crashMove {
	return func(s crashState) (crashState, bool) {
		ok := s.claimed == payload
		s.claimed = ""
		return s, ok
	}
}

// moveFail sets the claim of that payload aside.
func moveFail(payload string) crashMove {
	return func(s crashState) (crashState, bool) {
		ok := s.claimed == payload && s.failed == ""
		s.failed, s.claimed = payload, ""
		return s, ok
	}
}

func moveMigrate(old, payload string) crashMove {
	return func(s crashState) (crashState, bool) {
		ok := s.claimed == old
		s.claimed = payload
		return s, ok
	}
}

// moveNothing is a call that changes nothing.
func moveNothing(s crashState) (crashState, bool) { return s, true }

// A crashConfig is a state that may be, and which of the open calls it takes to have
// happened.
type crashConfig struct {
	crashState
	done uint64
}

// A crashOracle knows every state that may be, given what was begun and answered.
type crashOracle struct {
	may  map[crashConfig]bool
	open []crashMove // by number; nil: free
	keys map[string]int
}

func newOracle(s crashState) *crashOracle {
	return &crashOracle{may: map[crashConfig]bool{{crashState: s}: true}, keys: map[string]int{}}
}

// begin opens a call: from now on, until its answer, it may have happened.
func (o *crashOracle) begin(key string, m crashMove) {
	at := slices.IndexFunc(o.open, func(m crashMove) bool { return m == nil })
	if at < 0 {
		at = len(o.open)
		o.open = append(o.open, nil)
	}
	o.keys[key], o.open[at] = at, m
	for grown := true; grown; {
		grown = false
		for c := range maps.Clone(o.may) {
			for i, m := range o.open {
				if m == nil || c.done&(1<<i) != 0 {
					continue
				}
				if next, ok := m(c.crashState); ok {
					d := crashConfig{next, c.done | 1<<i}
					grown = grown || !o.may[d]
					o.may[d] = true
				}
			}
		}
	}
}

// answered takes a call to have happened, and to have been told what holds says.
func (o *crashOracle) answered(key string, holds func(crashState) bool) {
	at := o.keys[key]
	bit, may := uint64(1)<<at, o.may
	o.may, o.open[at] = map[crashConfig]bool{}, nil
	for c := range may {
		if c.done&bit != 0 && (holds == nil || holds(c.crashState)) {
			c.done &^= bit
			o.may[c] = true
		}
	}
}

// states lists what may be now.
func (o *crashOracle) states() []crashState {
	var out []crashState
	for c := range o.may {
		if !slices.Contains(out, c.crashState) {
			out = append(out, c.crashState)
		}
	}
	return out
}

func (o *crashOracle) String() string {
	var lines []string
	for _, s := range o.states() {
		lines = append(lines, "  "+s.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// foundKey is what a process has found after a crash, as a state.
const foundKey = "found"

// oracleOf reads a journal.
func oracleOf(from crashState, j *crashtest.Journal) *crashOracle {
	o := newOracle(from)
	for _, e := range j.Entries() {
		switch {
		case e.Key == foundKey:
			o = newOracle(e.Value.(crashState))
		case e.State == crashtest.Begun:
			o.begin(e.Key, e.Value.(crashMove))
		case e.State == crashtest.Acked:
			holds, _ := e.Value.(func(crashState) bool)
			o.answered(e.Key, holds)
		}
	}
	return o
}
