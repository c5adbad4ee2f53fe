package worker

import (
	"errors"

	"example.com/holdfast/queue"
)

// renewable reports whether the lease of a message is to be kept alive. That of an
// answer that waits for its settlement is too, once a settlement has failed.
func (m *held) renewable() bool {
	if m.running {
		return m.lost == nil && !m.stuck
	}
	return m.tries > 0
}

// owed reports whether a lease has to be renewed now. Leases are renewed at a third
// of their length, counted from before the call that gave them: two renewals may fail
// before one ends.
func (w *worker) owed() bool {
	owed := false
	for _, m := range w.held {
		if m.renewable() && w.due(m.leased.Add(m.source.o.Lease/3)) {
			owed = true
		}
	}
	return owed
}

// renew extends all leases in one commit when the first of them is owed it. A claim
// that is lost is refused and leaves the others as they were; they are tried again at
// once without it.
func (w *worker) renew() bool {
	if !w.owed() || !w.due(w.renewing.after) {
		return false
	}
	var kept []*held
	var changes []queue.Change
	for _, m := range w.held {
		if m.renewable() {
			kept = append(kept, m)
			changes = append(changes, queue.ExtendChange{Receipt: m.d.Receipt, Lease: m.source.o.Lease})
		}
	}
	w.justRenewed = true
	began := w.mark()
	w.commit(w.hard, "renew", changes, func(_ []queue.Outcome, err error) { w.renewed(kept, began, err) })
	return true
}

func (w *worker) renewed(kept []*held, began mark, err error) {
	var refused *queue.UpdateError
	switch {
	case err == nil:
		w.renewing.reset()
		for _, m := range kept {
			m.leased = w.leasedSince(began)
		}
		w.tell(Event{Kind: EventRenewed, Count: len(kept)}, "")
	case errors.As(err, &refused) && refused.Index < len(kept) && errors.Is(refused, queue.ErrLost):
		w.renewing.reset()
		w.refuse(kept[refused.Index], refused.Err)
	case cutOff(w.hard, err):
	default:
		w.failed("renew", &w.renewing, err)
	}
}
