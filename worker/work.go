package worker

import (
	"errors"
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
	ready := w.ready()
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
	changes := make([]queue.Change, 0, len(ready)+len(shares))
	for _, m := range ready {
		changes = append(changes, m.verdict.change(m.d.Receipt, m.delay))
	}
	for _, s := range shares {
		changes = append(changes, queue.ClaimChange{Queue: s.source.name, Options: queue.ClaimOptions{
			Max: s.n, Lease: s.source.o.Lease, Label: w.o.Label, Fair: s.source.o.Fair,
		}})
	}
	// A claim must not enter a commit once the drain has begun; a settlement must.
	op, ctx := "settle", w.hard
	if len(shares) > 0 {
		ctx = w.soft
		if len(ready) == 0 {
			op = "claim"
		}
	}
	began := w.mark()
	w.commit(ctx, op, changes, func(outcomes []queue.Outcome, err error) {
		if err == nil {
			w.settling.reset()
			for i, m := range ready {
				w.settled(m, outcomes[i].Returned)
			}
			for i, s := range shares {
				w.claimed(s, outcomes[len(ready)+i].Claimed, began)
			}
			return
		}
		w.unmade(ready, shares, err)
	})
	return true
}

// unmade deals with a commit of settlements and claims that did not happen, or may
// not have.
func (w *worker) unmade(ready []*held, shares []share, err error) {
	if errors.Is(err, queue.ErrUncertain) {
		for _, m := range ready {
			m.doubt = true
		}
	}
	var refused *queue.UpdateError
	at := -1
	if errors.As(err, &refused) {
		at = refused.Index
	}
	switch {
	case at >= 0 && at < len(ready):
		// The others are tried again at once, with what has become ready meanwhile.
		w.refuse(ready[at], refused.Err)
	case at >= len(ready) && at < len(ready)+len(shares):
		s := shares[at-len(ready)].source
		w.failed("claim", &s.claims, err)
	case len(shares) > 0:
		if cutOff(w.soft, err) {
			return
		}
		for _, s := range shares {
			w.failed("claim", &s.source.claims, err)
		}
	case !cutOff(w.hard, err):
		for _, m := range ready {
			m.tries++
			m.err = err
		}
		w.failed("settle", &w.settling, err)
	}
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
