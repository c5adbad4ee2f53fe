package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/holdfast/queue"
)

// A Model is a store as its contract describes it, whose calls are made one after
// another. The zero value is an empty one that stands still in time.
type Model struct {
	// Timeless: nobody knows the store's clock, and nothing becomes due. Of each time
	// in an answer only whether there is one is compared.
	Timeless bool

	// Shared: other callers, whom the model does not follow, claim from other queues of
	// the store. Claim numbers and revisions are not compared.
	Shared bool

	Now int64 // Unix milliseconds

	store    string // its id, from the first receipt
	revision uint64 // at least
	fence    uint64 // claims so far
	queues   map[string]*line
	failed   []failed // by namespace and name
	dead     []string // holders
	gens     []string // that were given to anybody
}

// A line is one queue.
type line struct {
	live     []message // in order of delivery: by sequence
	next     int       // sequence
	counters queue.Counters
	paused   bool
	space    string // failed namespace
	turn     string // key served last under fair rotation
	cursor   string
}

// A message is one generation.
type message struct {
	id, gen, key string // gen empty: nobody was told of it yet
	seq          int
	enqueuedAt   int64
	notBefore    int64 // 0: none
	version      int   // of the payload
	how          how

	attempts, excused, lapses uint64
	lastError                 string

	// Of the last claim.
	deadline int64  // 0: none
	holder   string // empty: none
	fence    uint64
}

// how is where a generation stands. All but pending ones were claimed once.
type how string

const (
	pending     how = "pending"
	leased      how = "leased"
	reaped      how = "reaped"
	retried     how = "retried"
	released    how = "released"
	reprocessed how = "reprocessed"
)

// A failed is evidence at rest.
type failed struct {
	space, name, queue string
	message
	at int64
}

// Clone gives a model that goes its own way from here.
func (m *Model) Clone() *Model {
	c := *m
	c.queues = maps.Clone(m.queues)
	for name, q := range c.queues {
		own := *q
		own.live = slices.Clone(q.live)
		c.queues[name] = &own
	}
	c.failed = slices.Clone(m.failed)
	c.dead, c.gens = slices.Clip(m.dead), slices.Clip(m.gens)
	return &c
}

// String tells everything by which two models can differ in what they answer.
func (m *Model) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, m.Now, m.revision, m.fence, m.dead, len(m.gens))
	for _, name := range slices.Sorted(maps.Keys(m.queues)) {
		if text := fmt.Sprintf("%+v", *m.queues[name]); text != emptyLine {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}
	for _, g := range m.failed {
		fmt.Fprintf(&b, "%+v\n", g)
	}
	return b.String()
}

var emptyLine = fmt.Sprintf("%+v", line{})

// line gives a queue; one that is not known is empty.
func (m *Model) line(name string) *line {
	q := m.queues[name]
	if q == nil {
		if m.queues == nil {
			m.queues = map[string]*line{}
		}
		q = &line{}
		m.queues[name] = q
	}
	return q
}

// find gives the generation of an ID that is pending, or the one that is not.
func (q *line) find(id string, waits bool) *message {
	for i := range q.live {
		if x := &q.live[i]; x.id == id && (x.how == pending) == waits {
			return x
		}
	}
	return nil
}

// remove takes x out.
func (q *line) remove(x *message) {
	seq := x.seq
	q.live = slices.DeleteFunc(q.live, func(y message) bool { return y.seq == seq })
}

// insert puts x in its place.
func (q *line) insert(x message) {
	i, _ := slices.BinarySearchFunc(q.live, x.seq, func(y message, seq int) int { return cmp.Compare(y.seq, seq) })
	q.live = slices.Insert(q.live, i, x)
}

// failedAt gives where a failed message stands, or would stand.
func (m *Model) failedAt(space, name string) (int, bool) {
	return slices.BinarySearchFunc(m.failed, [2]string{space, name}, func(f failed, at [2]string) int {
		return cmp.Or(cmp.Compare(f.space, at[0]), cmp.Compare(f.name, at[1]))
	})
}

// learn takes the generation of a message that nobody was told of from the first
// answer that shows it. It must be one that nobody was ever given.
func (m *Model) learn(x *message, id, gen string) {
	if x.gen == "" && x.id == id && gen != "" && !slices.Contains(m.gens, gen) {
		x.gen = gen
		m.gens = append(m.gens, gen)
	}
}

// later gives the time that lies that far ahead; 0: none.
func (m *Model) later(d time.Duration) int64 {
	if d == 0 {
		return 0
	}
	return m.Now + d.Milliseconds()
}

// past reports whether a time, which is not 0, has come.
func (m *Model) past(at int64) bool { return !m.Timeless && at <= m.Now }
