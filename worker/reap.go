package worker

import (
	"errors"
	"fmt"

	"example.com/holdfast/queue"
)

// reap ends the leases of workers that died, first when the worker starts and then
// every ReapEvery, as long as it runs. Not while the worker owes a renewal: it would
// end its own.
func (w *worker) reap() bool {
	if w.phase != running || !w.due(w.reapAt) || !w.due(w.reaping.after) || w.owed() {
		return false
	}
	o := w.reapSets()[w.reapSet]
	w.begin(func() func() {
		returned, err := w.store.Reap(w.soft, o)
		var u *queue.UncertainError
		if !errors.As(err, &u) {
			return func() { w.reaped(o, returned, err) }
		}
		met := err
		committed, err := w.resolve(u, err)
		if committed {
			returned, err = u.Returned, u.Refused
		}
		return func() {
			w.tell(Event{Kind: EventUncertain, Op: "reap", Err: met}, "")
			w.reaped(o, returned, err)
		}
	})
	return true
}

// reapSets gives the reapings of one round: one for all queues with the same cap.
func (w *worker) reapSets() []queue.ReapOptions {
	var sets []queue.ReapOptions
next:
	for _, s := range w.sources {
		for i := range sets {
			if sets[i].MaxLapses == s.o.Retry.MaxLapses {
				sets[i].Queues = append(sets[i].Queues, s.name)
				continue next
			}
		}
		sets = append(sets, queue.ReapOptions{
			Queues: []string{s.name}, Limit: queue.DefaultReapLimit, MaxLapses: s.o.Retry.MaxLapses,
		})
	}
	return sets
}

// reaped takes what a reaping came to, and says when the next one is.
func (w *worker) reaped(o queue.ReapOptions, returned []queue.Returned, err error) {
	if err != nil {
		if !cutOff(w.soft, err) {
			w.failed("reap", &w.reaping, err)
		}
		return
	}
	w.reaping.reset()
	w.delays = 0
	for _, r := range returned {
		w.tell(Event{
			Kind: EventReaped, Queue: r.Queue, ID: r.ID, Attempt: r.Attempt, Lapses: r.Lapses,
			FailedName: r.FailedName, Err: fmt.Errorf("the lease ended by %s", r.Cause),
		}, "")
		w.takeBack(r)
	}
	if len(returned) >= o.Limit {
		return // there may be more: again at once
	}
	if w.reapSet++; w.reapSet < len(w.reapSets()) {
		return
	}
	w.reapSet = 0
	spread := w.o.ReapEvery / 10
	w.reapAt = w.now.Add(w.o.ReapEvery - spread + w.o.seams.draw(2*spread))
}

// takeBack renews at once what the worker reaped of its own, before a claim can give
// it out a second time.
func (w *worker) takeBack(r queue.Returned) {
	for _, m := range w.held {
		if own := m.d.Receipt; own.Queue == r.Queue && own.ID == r.ID && own.Attempt == r.Attempt {
			m.leased = m.leased.Add(-m.source.o.Lease)
		}
	}
}
