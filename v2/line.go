//go:build unix

package holdfast

import (
	"cmp"
	"slices"
	"strings"
)

// A line is the order of delivery of one queue. It is derived from the slots and
// never stored: a claim takes what is at its front and looks at nothing that cannot
// be taken. A slot stands in the line with its front: the generation that came back,
// or the pending one when none is in flight.
//
//	front of a slot            stands in
//	due, no key                free
//	due, the first of its key  heads, unless a message of the key is leased
//	due, a later one           its lane only
//	scheduled, never claimed   later
//	came back, with a delay    its lane, and later; without a key in later only
type line struct {
	asOf  int64    // the time, Unix milliseconds, up to which later was worked off
	free  []place  // by sequence
	heads []place  // by sequence
	keys  []string // of the heads, sorted: the rotation
	later []timed  // by time, then sequence
	lanes []*lane  // by key
	owner *byte    // of the lanes that this line may change: a fresh one for each copy
}

// A place is a reference's place in the line of delivery.
type place struct {
	seq uint64
	id  string
}

// A timed is a place that becomes due.
type timed struct {
	at int64 // Unix milliseconds
	place
}

// A lane holds the messages of one key.
type lane struct {
	key     string
	leased  int     // messages of the key that are out
	waiting []timed // by sequence: due before or come back; at is the not-before time
	offer   offer
	owner   *byte
}

// offer is where the first of a lane stands.
type offer uint8

const (
	nowhere offer = iota
	inHeads
	inLater
)

// front gives the reference with which s stands in the line, and whether it came
// back. nil: the message is leased.
func (s *slot) front() (r *ref, back bool) {
	switch {
	case s.claimed == nil:
		return s.pending, false
	case s.claimed.returned == leased:
		return nil, false
	}
	return &s.claimed.ref, true
}

// enter puts s into the line.
func (l *line) enter(s *slot) {
	r, back := s.front()
	switch {
	case r == nil:
		if key := s.claimed.key; key != "" {
			l.relane(key, func(n *lane) { n.leased++ })
		}
	case r.key != "" && (back || r.notBefore <= l.asOf):
		l.relane(r.key, func(n *lane) { n.join(r, s.id) })
	case r.notBefore > l.asOf:
		insertTimed(&l.later, timed{r.notBefore, place{r.seq, s.id}})
	default:
		insertPlace(&l.free, place{r.seq, s.id})
	}
}

// leave takes s out of the line: it must be as it was when it entered.
func (l *line) leave(s *slot) {
	r, back := s.front()
	switch {
	case r == nil:
		if key := s.claimed.key; key != "" {
			l.relane(key, func(n *lane) { n.leased-- })
		}
		return
	case !(back && r.key != "") && r.notBefore > l.asOf:
		removeTimed(&l.later, timed{r.notBefore, place{seq: r.seq}})
	case r.key != "":
		l.relane(r.key, func(n *lane) { n.part(r) })
	default:
		removePlace(&l.free, r.seq)
	}
}

func (n *lane) join(r *ref, id string) {
	i, _ := n.find(r.seq)
	n.waiting = slices.Insert(n.waiting, i, timed{r.notBefore, place{r.seq, id}})
}

func (n *lane) part(r *ref) {
	i, ok := n.find(r.seq)
	if !ok {
		panic("holdfast: a message that is not in the lane of its key")
	}
	if i == 0 {
		n.waiting = n.waiting[1:]
	} else {
		n.waiting = slices.Delete(n.waiting, i, i+1)
	}
}

func (n *lane) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(n.waiting, seq, func(t timed, seq uint64) int { return cmp.Compare(t.seq, seq) })
}

// relane changes the lane of key and offers its first anew.
func (l *line) relane(key string, change func(*lane)) {
	n := l.ownLane(key)
	was, first := n.offer, n.first()
	change(n)
	n.offer = nowhere
	if n.leased == 0 && len(n.waiting) > 0 {
		n.offer = inHeads
		if n.waiting[0].at > l.asOf {
			n.offer = inLater
		}
	}
	if n.offer != was || n.first() != first {
		l.withdraw(key, was, first)
		l.show(n)
	}
	if n.leased == 0 && len(n.waiting) == 0 {
		i, _ := l.findLane(key)
		l.lanes = slices.Delete(l.lanes, i, i+1)
	}
}

// ownLane gives the lane of key as one that this line may change, made if it is new.
// The lanes of a published state are shared with it and never changed.
func (l *line) ownLane(key string) *lane {
	i, ok := l.findLane(key)
	if !ok {
		n := &lane{key: key, owner: l.owner}
		l.lanes = slices.Insert(l.lanes, i, n)
		return n
	}
	if n := l.lanes[i]; n.owner == l.owner {
		return n
	}
	n := *l.lanes[i]
	n.owner = l.owner
	n.waiting = withRoom(n.waiting)
	l.lanes[i] = &n
	return &n
}

func (n *lane) first() timed {
	if len(n.waiting) == 0 {
		return timed{}
	}
	return n.waiting[0]
}

// withdraw takes back what the lane of key offered.
func (l *line) withdraw(key string, was offer, first timed) {
	switch was {
	case inLater:
		removeTimed(&l.later, first)
	case inHeads:
		removePlace(&l.heads, first.seq)
		j, _ := slices.BinarySearch(l.keys, key)
		l.keys = slices.Delete(l.keys, j, j+1)
	}
}

// show puts what n offers where claims find it.
func (l *line) show(n *lane) {
	switch n.offer {
	case inLater:
		insertTimed(&l.later, n.waiting[0])
	case inHeads:
		insertPlace(&l.heads, n.waiting[0].place)
		j, _ := slices.BinarySearch(l.keys, n.key)
		l.keys = slices.Insert(l.keys, j, n.key)
	}
}

// head gives the place of the first message of a key that is among the heads.
func (l *line) head(key string) place {
	i, _ := l.findLane(key)
	return l.lanes[i].waiting[0].place
}

// leased counts the messages of a key that are out.
func (l *line) leased(key string) int {
	if key == "" {
		return 0
	}
	i, ok := l.findLane(key)
	if !ok {
		return 0
	}
	return l.lanes[i].leased
}

func (l *line) findLane(key string) (int, bool) {
	return slices.BinarySearchFunc(l.lanes, key, func(n *lane, key string) int { return strings.Compare(n.key, key) })
}

// isHead reports whether the message with that sequence can be taken by its key.
func (l *line) isHead(seq uint64) bool {
	_, ok := findPlace(l.heads, seq)
	return ok
}

func findPlace(list []place, seq uint64) (int, bool) {
	return slices.BinarySearchFunc(list, seq, func(p place, seq uint64) int { return cmp.Compare(p.seq, seq) })
}

func insertPlace(list *[]place, p place) {
	i, _ := findPlace(*list, p.seq)
	*list = slices.Insert(*list, i, p)
}

func removePlace(list *[]place, seq uint64) {
	i, ok := findPlace(*list, seq)
	switch {
	case !ok:
		panic("holdfast: a message that is not in the line of its queue")
	case i == 0:
		*list = (*list)[1:] // what a claim does: in one step, however long the line
	default:
		*list = slices.Delete(*list, i, i+1)
	}
}

func findTimed(list []timed, t timed) (int, bool) {
	return slices.BinarySearchFunc(list, t, compareTimed)
}

func compareTimed(a, b timed) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
}

func insertTimed(list *[]timed, t timed) {
	i, _ := findTimed(*list, t)
	*list = slices.Insert(*list, i, t)
}

func removeTimed(list *[]timed, t timed) {
	i, ok := findTimed(*list, t)
	if !ok {
		panic("holdfast: a message that is not among the scheduled ones")
	}
	*list = slices.Delete(*list, i, i+1)
}
