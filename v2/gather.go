//go:build unix

package holdfast

import (
	"runtime"
	"time"
)

// Callers that were answered together come back together, a moment later. Were the next
// commit begun with whoever waits already, they would fall into two halves, each of which
// waits for the other's commit: twice the syncs for the same calls. So the next commit
// waits a moment for them.
//
// Two bounds, counted from the answers, keep one caller from waiting for a crowd: the
// commit begins when nobody has come for gatherIdle, and after gatherTimes that in any
// case. Who calls alone never waits, nor one whose last companions have stayed away.
const (
	gatherIdle  = 100 * time.Microsecond
	gatherTimes = 10
	mostSkips   = 64
)

// A company is what run knows of the callers that its last commit answered. It is run's
// own.
type company struct {
	want  int       // that may wait soon: who was answered, and who waited then; 0: nobody else
	back  int       // who was answered
	at    time.Time // and when
	skip  int       // commits that do not wait any more, because nobody came
	skips int       // how many they were at first

	waits int // begun: for tests
}

// part notes who is about to be answered. As nobody has been yet, nobody is counted
// twice.
func (s *Store) part(batch []*call) {
	c := &s.company
	c.back = 0
	for _, b := range batch {
		if !b.again() {
			c.back++
		}
	}
	waiting, _ := s.crowd()
	if c.want = min(c.back+waiting, maxGroup); c.want < 2 {
		c.want = 0
		return
	}
	c.at = time.Now()
}

// gather waits until those are back whom the last commit answered. It gives them the
// processor instead of sleeping: what they do meanwhile they do in this very process, and
// a timer wakes later than they come.
func (s *Store) gather() {
	c := &s.company
	idle := s.opts.gather
	waiting, closed := s.crowd()
	if c.want == 0 || idle < 0 || waiting >= c.want || closed {
		return
	}
	if c.skip > 0 {
		c.skip--
		return
	}
	last, end := c.at.Add(idle), c.at.Add(gatherTimes*idle)
	now := time.Now()
	if now.After(last) {
		return // they had their moment
	}
	c.waits++
	// Where time stands still while somebody runs, as in a bubble of testing/synctest, the
	// number of looks is a bound too: far more than there can be in that time elsewhere.
	looks := int(idle / (20 * time.Nanosecond))
	for begun := waiting; ; looks-- {
		runtime.Gosched()
		n, closed := s.crowd()
		now = time.Now()
		if n > waiting {
			waiting, last = n, now.Add(idle)
		}
		if n >= c.want || closed {
			c.skips = 0
			return
		}
		if now.After(last) || now.After(end) || looks < 0 {
			if 2*(waiting-begun) >= c.back { // most did
				c.skips = 0
			} else {
				c.skips = min(2*c.skips+1, mostSkips)
			}
			c.skip = c.skips
			return
		}
	}
}

// crowd counts who waits.
func (s *Store) crowd() (waiting int, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), s.closed
}
