package queuetest

import (
	"testing"

	"example.com/holdfast/queue"
)

// matrixTrials are the rows of the matrix; each has a subtest for each of its cells.
func matrixTrials() []trial {
	rows := map[string][]Cell{}
	for _, c := range Matrix() {
		rows[c.Event] = append(rows[c.Event], c)
	}
	var trials []trial
	for _, e := range matrixEvents {
		trials = append(trials, trial{e.name, func(s *scene) {
			for _, c := range rows[e.name] {
				s.T.Run(c.Call, func(t *testing.T) { runCell(s.in(t), c, e.happens) })
			}
		}})
	}
	return trials
}

// in gives the scene to a subtest of its own that goes on with the same store.
func (s *scene) in(t *testing.T) *scene {
	sub := *s
	sub.T, sub.ctx = t, t.Context()
	return &sub
}

func runCell(s *scene, c Cell, happens func(s *scene, d queue.Delivery)) {
	s.sweep()
	s.put(mail, "a")
	d := s.take(mail, "a")
	happens(s, d)
	s.audit()
	if c.Refused == nil {
		s.must(s.settle(c.Call, d.Receipt))
	} else {
		s.loses(d.Receipt, c.Refused, c.Current, func() error { return s.settle(c.Call, d.Receipt) })
		s.loses(d.Receipt, c.Refused, c.Current, func() error { return s.settle(jointly+c.Call, d.Receipt) })
	}
	equal(s, "stands", s.standing(d.Receipt.Generation), c.After)
	s.audit()
}

// sweep removes what the cell before left.
func (s *scene) sweep() {
	s.Helper()
	_, err := s.Store.Clear(s.ctx, mail, queue.ClearOptions{Leased: true})
	s.must(err)
	page, err := s.Store.ListFailed(s.ctx, queue.FailedOptions{}, queue.ListOptions{})
	s.must(err)
	var purge []queue.Change
	for _, e := range page.Entries {
		purge = append(purge, queue.PurgeChange{FailedName: e.FailedName})
	}
	s.update(purge...)
}

// standing finds a generation in the whole store.
func (s *scene) standing(generation string) Standing {
	s.Helper()
	v := s.look()
	for _, all := range []map[string][]queue.Entry{v.live, v.failed} {
		for _, es := range all {
			for _, e := range es {
				if e.Generation == generation {
					return Standing{e.State, e.Returned, e.Attempts, e.Excused, e.Lapses}
				}
			}
		}
	}
	return Standing{}
}
