package worker

import "time"

// A settlement waits for company: what is ready together is to be settled together, and
// right after a commit the handlers that it started are about to be ready too. Were the
// first of them settled alone, those behind it would have to wait for that commit, and
// then the two groups would take turns for ever, at two commits for each round.
//
// So as long as handlers take less time than half a commit, an answer that is ready
// waits for those that were started less than half a commit ago, and never longer than
// maxCompany. With one slot there is nobody to wait for.

// maxCompany bounds the wait, however slow the store is.
const maxCompany = 10 * time.Millisecond

// A pace is how long things took of late.
type pace struct {
	commit  average // of what was settled or claimed
	handler average // at most that of a commit: one slow handler says little of the next
}

func (p *pace) committed(took time.Duration) { p.commit.add(took) }
func (p *pace) handled(took time.Duration)   { p.handler.add(min(took, p.commit.is)) }

// An average counts the latest most.
type average struct {
	is    time.Duration
	known bool
}

func (a *average) add(took time.Duration) {
	if !a.known {
		a.is, a.known = took, true
	}
	a.is += (took - a.is) / 8
}

// company reports whether it is better to settle what is ready a little later, with
// more, and sees to it that the loop wakes then.
func (w *worker) company() bool {
	most := min(w.pace.commit.is/2, maxCompany)
	if w.phase != running || w.pace.handler.is > most {
		return false
	}
	wait := false
	for _, m := range w.held {
		if m.running && m.lost == nil && !w.due(m.started.Add(most)) {
			wait = true
		}
	}
	return wait
}
