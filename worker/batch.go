package worker

import (
	"errors"

	"example.com/holdfast/queue"
)

// A batch is what work puts into one commit: settlements, some of which bring changes
// of their handlers, and then claims.
type batch struct {
	ready   []*held
	first   []int // the index of the first change of each that is ready, its settlement
	shares  []share
	claims  int // the index of the first claim
	changes []queue.Change
}

func (w *worker) batch(ready []*held, shares []share) *batch {
	b := &batch{ready: ready, shares: shares}
	for _, m := range ready {
		b.first = append(b.first, len(b.changes))
		// The settlement first: repeated after an uncertain commit that did happen, the
		// batch is then refused because the claim is gone, not because a follow-up is
		// there already.
		b.changes = append(b.changes, m.verdict.change(m.d.Receipt, m.delay))
		b.changes = append(b.changes, m.verdict.with...)
	}
	b.claims = len(b.changes)
	for _, s := range shares {
		b.changes = append(b.changes, queue.ClaimChange{Queue: s.source.name, Options: queue.ClaimOptions{
			Max: s.n, Lease: s.source.o.Lease, Label: w.o.Label, Fair: s.source.o.Fair,
		}})
	}
	return b
}

// fitting gives those of ready, from the first on, that one commit takes beside claims.
func fitting(ready []*held) []*held {
	room := queue.MaxUpdate - MaxConcurrency
	for i, m := range ready {
		if room -= 1 + len(m.verdict.with); room < 0 {
			return ready[:i]
		}
	}
	return ready
}

// made takes what a commit came to.
func (w *worker) made(b *batch, outcomes []queue.Outcome, began mark) {
	w.settling.reset()
	found := 0
	for _, o := range outcomes[b.claims:] {
		found += len(o.Claimed.Deliveries) + len(o.Claimed.Damaged)
	}
	if len(b.ready)+found > 0 { // else nothing was committed
		w.pace.committed(w.now.Sub(began.at))
	}
	for i, m := range b.ready {
		w.settled(m, outcomes[b.first[i]].Returned)
	}
	for i, s := range b.shares {
		w.claimed(s, outcomes[b.claims+i].Claimed, began)
	}
}

// unmade deals with a commit that did not happen, or may not have.
func (w *worker) unmade(b *batch, err error) {
	if errors.Is(err, queue.ErrUncertain) {
		for _, m := range b.ready {
			m.doubt = true
		}
	}
	var refused *queue.UpdateError
	at := -1
	if errors.As(err, &refused) {
		at = refused.Index
	}
	switch {
	case at >= 0 && at < b.claims:
		// The others are tried again at once, with what has become ready meanwhile.
		b.refuse(w, at, refused.Err)
	case at >= b.claims && at < len(b.changes):
		s := b.shares[at-b.claims].source
		w.failed("claim", &s.claims, err)
	case errors.Is(err, queue.ErrFull) && !errors.Is(err, queue.ErrUncertain) && b.claims > len(b.ready):
		// A full disk takes settlements, and nothing that is made together with more.
		for _, m := range b.ready {
			if len(m.verdict.with) > 0 {
				w.refuseWith(m, 0, err)
			}
		}
	case len(b.shares) > 0:
		if cutOff(w.soft, err) {
			return
		}
		for _, s := range b.shares {
			w.failed("claim", &s.source.claims, err)
		}
	case !cutOff(w.hard, err):
		for _, m := range b.ready {
			m.tries++
			m.err = err
		}
		w.failed("settle", &w.settling, err)
	}
}

// refuse deals with a change, not a claim, that the store refused.
func (b *batch) refuse(w *worker, at int, err error) {
	i := len(b.first) - 1
	for b.first[i] > at {
		i--
	}
	if at == b.first[i] {
		w.refuse(b.ready[i], err)
		return
	}
	w.refuseWith(b.ready[i], at-b.first[i]-1, err)
}
