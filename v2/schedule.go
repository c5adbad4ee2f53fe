//go:build unix

package holdfast

import (
	"cmp"
	"slices"
	"strings"
)

// How a line moves with time. Within one revision the line depends on the clock
// alone, so two processes that read the same state at the same time claim the same.

// behind reports whether time has made the line of q out of date.
func (q *queueState) behind(millis int64) bool {
	return millis < q.line.asOf || len(q.line.later) > 0 && q.line.later[0].at <= millis
}

// advance brings the line of q, which must be the caller's own, to the time.
func (q *queueState) advance(millis int64) {
	if millis < q.line.asOf { // the clock was set back: what had become due may not be
		q.buildLine()
	}
	l := &q.line
	n := 0
	for n < len(l.later) && l.later[n].at <= millis {
		n++
	}
	due := slices.Clone(l.later[:n])
	l.later = slices.Delete(l.later, 0, n)
	l.asOf = millis
	fronts := make([]*ref, n)
	for i, t := range due {
		s, _ := q.find(t.id)
		r, back := s.front()
		if fronts[i] = r; back && r.key != "" {
			l.ownLane(r.key).offer = nowhere // what it offered stands in later no more
		}
	}
	var free []place // all at once: a crowd that is due together is common
	for i, t := range due {
		switch r := fronts[i]; {
		case r.key == "":
			free = append(free, t.place)
		default:
			l.relane(r.key, func(n *lane) {
				if _, waits := n.find(r.seq); !waits {
					n.join(r, t.id)
				}
			})
		}
	}
	if free != nil {
		l.free = append(l.free, free...)
		sortPlaces(l.free)
	}
}

// at gives q with its line brought to the time: q itself, or a copy.
func (q *queueState) at(millis int64) *queueState {
	if q == nil || !q.behind(millis) {
		return q
	}
	c := *q
	c.line = q.line.clone()
	c.advance(millis)
	return &c
}

func (l *line) clone() line {
	c := *l
	c.free, c.heads, c.keys = withRoom(l.free), withRoom(l.heads), withRoom(l.keys)
	c.later, c.lanes = withRoom(l.later), withRoom(l.lanes)
	c.owner = new(byte)
	return c
}

// buildLine derives the line from the slots, as of a time before all others.
func (q *queueState) buildLine() {
	l := line{owner: new(byte)}
	byKey := map[string]*lane{}
	of := func(key string) *lane {
		n := byKey[key]
		if n == nil {
			n = &lane{key: key, owner: l.owner}
			byKey[key] = n
			l.lanes = append(l.lanes, n)
		}
		return n
	}
	for _, s := range q.slots {
		r, back := s.front()
		switch {
		case r == nil:
			if key := s.claimed.key; key != "" {
				of(key).leased++
			}
		case r.key != "" && (back || r.notBefore == 0):
			n := of(r.key)
			n.waiting = append(n.waiting, timed{r.notBefore, place{r.seq, s.id}})
		case r.notBefore != 0:
			l.later = append(l.later, timed{r.notBefore, place{r.seq, s.id}})
		default:
			l.free = append(l.free, place{r.seq, s.id})
		}
	}
	sortPlaces(l.free)
	slices.SortFunc(l.lanes, func(a, b *lane) int { return strings.Compare(a.key, b.key) })
	for _, n := range l.lanes {
		slices.SortFunc(n.waiting, func(a, b timed) int { return cmp.Compare(a.seq, b.seq) })
		if n.leased > 0 || len(n.waiting) == 0 {
			continue
		}
		if first := n.waiting[0]; first.at > 0 {
			n.offer = inLater
			l.later = append(l.later, first)
		} else {
			n.offer = inHeads
			l.heads = append(l.heads, first.place)
			l.keys = append(l.keys, n.key)
		}
	}
	sortPlaces(l.heads)
	slices.SortFunc(l.later, compareTimed)
	q.line = l
}

func sortPlaces(list []place) {
	slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.seq, b.seq) })
}

// due reports whether a claim of one of the named queues, or of any, would find a
// message at now, and else when the next one becomes due: Unix milliseconds, 0: none
// is scheduled. What becomes due may still have to wait for its key.
func (st *state) due(names []string, now instant) (yes bool, next int64) {
	millis := now.millis()
	for _, q := range st.queues {
		if q.paused || len(names) > 0 && !slices.Contains(names, q.name) {
			continue
		}
		if _, open := st.importInto(q.name); open {
			continue // when it closes, that is a commit
		}
		for _, r := range q.runs {
			if r.due(millis) {
				return true, 0
			}
			if next == 0 || r.from < next {
				next = r.from
			}
		}
		l := &q.at(millis).line
		if len(l.free) > 0 || len(l.heads) > 0 {
			return true, 0
		}
		if len(l.later) > 0 && (next == 0 || l.later[0].at < next) {
			next = l.later[0].at
		}
	}
	return false, next
}
