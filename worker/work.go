package worker

import (
	"time"

	"example.com/holdfast/queue"
)

// A share is how many messages are to be claimed from a source.
type share struct {
	source *source
	n      int
}

// work settles all answers that are ready and claims for the slots that are free
// then, in one commit: with one slot that is one commit for each message.
//
// Where claims fail they are made apart from settlements, and apart from each other,
// until they succeed: what cannot be claimed must not keep what is done from being
// settled.
func (w *worker) work() bool {
	ready := fitting(w.ready())
	if len(ready) > 0 && w.company() {
		return false
	}
	open, failing := w.open(ready)
	free := w.o.Concurrency - len(w.held)
	if len(failing) > 0 && free > 0 && (w.passed || len(ready) == 0 && len(open) == 0) {
		ready, open, w.passed = nil, failing[:1], false
	} else {
		w.passed = len(failing) > 0
	}
	shares := w.shares(open, free+len(ready))
	if len(ready) == 0 && len(shares) == 0 {
		return false
	}
	b := w.batch(ready, shares)
	// A claim must not enter a commit once the drain has begun; a settlement must.
	op, ctx := "settle", w.hard
	if len(shares) > 0 {
		ctx = w.soft
		if len(ready) == 0 {
			op = "claim"
		}
	}
	began := w.mark()
	w.commit(ctx, op, b.changes, func(outcomes []queue.Outcome, err error) {
		if err != nil {
			w.unmade(b, err)
			return
		}
		w.made(b, outcomes, began)
	})
	return true
}

// open gives the sources that may have something to claim, those apart whose last
// claim failed.
func (w *worker) open(ready []*held) (open, failing []*source) {
	if w.phase != running {
		return nil, nil
	}
	for _, s := range w.sources {
		// What is settled here may have held back another message of its key or ID:
		// asking in the same commit costs nothing.
		switch {
		case s.dry && !settles(ready, s) || !w.due(s.claims.after):
		case s.claims.failures > 0:
			failing = append(failing, s)
		default:
			open = append(open, s)
		}
	}
	return open, failing
}

// shares says how many messages to claim from where.
func (w *worker) shares(open []*source, free int) []share {
	switch {
	case free <= 0 || len(open) == 0:
		return nil
	case !w.o.Weighted || len(open) == 1:
		return []share{{open[0], free}}
	}
	return w.drawn(free, open)
}

// drawn gives each free slot to a source by weight.
func (w *worker) drawn(free int, open []*source) []share {
	total := 0
	for _, s := range open {
		total += s.o.Weight
	}
	n := make([]int, len(open))
	for range free {
		// draw gives durations; here they are mere numbers.
		at := int(w.o.seams.draw(time.Duration(total - 1)))
		for i, s := range open {
			if at -= s.o.Weight; at < 0 {
				n[i]++
				break
			}
		}
	}
	var shares []share
	for i, s := range open {
		if n[i] > 0 {
			shares = append(shares, share{s, n[i]})
		}
	}
	return shares
}

func settles(ready []*held, s *source) bool {
	for _, m := range ready {
		if m.source == s {
			return true
		}
	}
	return false
}

// claimed takes what a claim brought.
func (w *worker) claimed(s share, c queue.Claimed, began mark) {
	found := len(c.Deliveries) + len(c.Damaged)
	s.source.claims.reset()
	s.source.dry = found < s.n
	if found > 0 {
		w.vain = 0
	}
	for _, d := range c.Damaged {
		w.damaged(d)
	}
	for _, d := range c.Deliveries {
		m := &held{source: s.source, d: d, leased: w.leasedSince(began)}
		w.held = append(w.held, m)
		w.tell(about(EventClaimed, m), "")
		if w.phase == running {
			w.start(m)
		} else {
			w.release(m)
		}
	}
}
