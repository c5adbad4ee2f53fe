package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/holdfast/queue"
)

var bg = context.Background()

// A scene is a store with a clock that the test moves. When the test ends, the state
// is audited.
type scene struct {
	t memT
	*Store
	clock *memClock
}

// A memT is a *testing.T or a *rapid.T.
type memT interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

type memClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *memClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// noon is when scenes begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newScene(t memT) *scene {
	c := &memClock{now: noon}
	s := &scene{t: t, Store: New(&Options{Now: c.Now}), clock: c}
	t.Cleanup(s.audit)
	return s
}

// audit says what in the state cannot be.
func (s *scene) audit() {
	s.t.Helper()
	s.Store.mu.Lock()
	defer s.Store.mu.Unlock()
	for _, fault := range auditState(&s.state) {
		s.t.Errorf("audit: %s", fault)
	}
}

// pass moves the clock.
func (s *scene) pass(d time.Duration) {
	s.clock.mu.Lock()
	s.clock.now = s.clock.now.Add(d)
	s.clock.mu.Unlock()
	s.Recheck()
}

// must ends the test on an error.
func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// wants checks an error by what it wraps; nil wants none.
func (s *scene) wants(got, want error) {
	s.t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		s.t.Errorf("got error %v, want %v", got, want)
	}
}

// is compares what a test sees as text.
func (s *scene) is(what, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s\n got %s\nwant %s", what, got, want)
	}
}

// put enqueues into mail.
func (s *scene) put(m queue.Message) queue.Enqueued {
	s.t.Helper()
	if m.Payload == nil {
		m.Payload = fmt.Appendf(nil, `{"id":%q}`, m.ID)
	}
	e, err := s.Enqueue(bg, "mail", m)
	s.must(err)
	return e
}

// puts enqueues messages in order, each given as ID or ID/key.
func (s *scene) puts(names ...string) {
	s.t.Helper()
	for _, name := range names {
		id, key, _ := strings.Cut(name, "/")
		s.put(queue.Message{ID: id, Key: key})
	}
}

// take loads m of mail for a minute.
func (s *scene) take(id string) queue.Delivery {
	s.t.Helper()
	d, err := s.Load(bg, "mail", id, queue.LoadOptions{Lease: time.Minute, Label: "worker 1"})
	s.must(err)
	return d
}

// claims claims from mail and gives the IDs in order.
func (s *scene) claims(o queue.ClaimOptions) string {
	s.t.Helper()
	c, err := s.Claim(bg, "mail", o)
	s.must(err)
	return claimedIDs(c)
}

func claimedIDs(c queue.Claimed) string {
	var ids []string
	for _, d := range c.Deliveries {
		ids = append(ids, d.Receipt.ID)
	}
	return strings.Join(ids, " ")
}

// live tells the live messages of mail and the failed ones of the default namespace,
// one clause each: where it stands, how it came back, attempts, excused, lapses, when
// it is due, the last error.
func (s *scene) live() string {
	s.t.Helper()
	page, err := s.List(bg, "mail", queue.ListOptions{})
	s.must(err)
	failed, err := s.ListFailed(bg, queue.FailedOptions{}, queue.ListOptions{})
	s.must(err)
	var out []string
	for _, e := range append(page.Entries, failed.Entries...) {
		text := fmt.Sprintf("%s %s", e.ID, e.State)
		if e.FailedName != "" && e.FailedName != e.ID {
			text += " as " + strings.Replace(e.FailedName, e.Generation, "GEN", 1)
		}
		if e.Returned != "" {
			text += " " + e.Returned
		}
		text += fmt.Sprintf(" %d-%d-%d", e.Attempts, e.Excused, e.Lapses)
		if !e.NotBefore.IsZero() {
			text += fmt.Sprintf(" +%v", e.NotBefore.Sub(noon))
		}
		if !e.Deadline.IsZero() {
			text += fmt.Sprintf(" until +%v", e.Deadline.Sub(noon))
		}
		if e.LastError != "" {
			text += fmt.Sprintf(" %q", e.LastError)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// status gives one queue's.
func (s *scene) status(name string) queue.QueueStatus {
	s.t.Helper()
	st, err := s.Status(bg, queue.StatusOptions{Queues: []string{name}})
	s.must(err)
	return st.Queues[name]
}

// counted tells the counters of mail that are not zero.
func (s *scene) counted() string {
	s.t.Helper()
	return countersText(s.status("mail").Counters)
}

func countersText(c queue.Counters) string {
	var out []string
	for _, n := range []struct {
		name string
		n    uint64
	}{
		{"enqueued", c.Enqueued}, {"superseded", c.Superseded}, {"claimed", c.Claimed}, {"completed", c.Completed},
		{"retried", c.Retried}, {"released", c.Released}, {"reaped", c.Reaped}, {"failed", c.Failed},
		{"reprocessed", c.Reprocessed}, {"cleared", c.Cleared}, {"purged", c.Purged}, {"damaged", c.Damaged},
	} {
		if n.n > 0 {
			out = append(out, fmt.Sprintf("%s %d", n.name, n.n))
		}
	}
	return strings.Join(out, ", ")
}

// auditState lists what in a state cannot be.
func auditState(st *state) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	failedOf := map[string]uint64{}
	generations := map[string]bool{}
	once := func(m *message) {
		if generations[m.generation] {
			fault("generation %s stands in two places", m.generation)
		}
		generations[m.generation] = true
		if m.excused+m.lapses > m.attempts || m.phase == leased && m.excused+m.lapses >= m.attempts {
			fault("%s: %d attempts, %d excused, %d lapses", m.id, m.attempts, m.excused, m.lapses)
		}
	}
	for name, f := range st.failed {
		failedOf[f.queue]++
		once(f.message)
		if err := queue.CheckFailedName(name.name); err != nil {
			fault("failed: %v", err)
		}
	}
	for name, q := range st.queues {
		var line []*message
		keys := map[string]bool{}
		for id, s := range q.slots {
			if s == (slot{}) {
				fault("%s/%s: an empty slot", name, id)
			}
			if s.pending != nil && (s.pending.phase != fresh || s.pending.attempts != 0) {
				fault("%s/%s: pending, but %q with %d attempts", name, id, s.pending.phase, s.pending.attempts)
			}
			if s.claimed != nil && (s.claimed.phase == fresh || s.claimed.attempts == 0) {
				fault("%s/%s: on the claimed side, but %q with %d attempts", name, id, s.claimed.phase, s.claimed.attempts)
			}
			if s.pending != nil && s.claimed != nil && s.pending.seq < s.claimed.seq {
				fault("%s/%s: the pending generation is the older", name, id)
			}
			for _, m := range s.generations() {
				once(m)
				if m.id != id || m.seq >= q.next {
					fault("%s/%s: ID %s, sequence %d of %d", name, id, m.id, m.seq, q.next)
				}
				if m.phase == leased && m.key != "" {
					if keys[m.key] {
						fault("%s: two messages of key %q are leased", name, m.key)
					}
					keys[m.key] = true
				}
				line = append(line, m)
			}
		}
		slices.SortFunc(line, func(a, b *message) int { return int(a.seq) - int(b.seq) })
		if !slices.Equal(line, q.line) {
			fault("%s: the line is not what the slots give", name)
		}
		if len(keys) != len(q.leasedKeys) {
			fault("%s: leased keys %v, want %v", name, q.leasedKeys, keys)
		}
		c := q.counters
		if got, want := c.Enqueued+c.Reprocessed-c.Superseded-c.Completed-c.Failed-c.Cleared, uint64(len(line)); got != want {
			fault("%s: the counters tell of %d live messages, there are %d: %s", name, got, want, countersText(c))
		}
		if got, want := c.Failed-c.Reprocessed-c.Purged, failedOf[name]; got != want {
			fault("%s: the counters tell of %d failed messages, there are %d: %s", name, got, want, countersText(c))
		}
		// Every claim has ended in one way, or goes on. What cannot be told from the
		// counters alone is how often an Extend took a reaped claim up again, and which
		// clearings and failures met a claim.
		if c.Claimed < c.Completed {
			fault("%s: %s", name, countersText(c))
		}
	}
	return faults
}

// dumpState writes down everything in a state.
func dumpState(st *state) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s revision %d fence %d\n", st.id, st.revision, st.fence)
	for _, name := range slices.Sorted(maps.Keys(st.queues)) {
		q := st.queues[name]
		fmt.Fprintf(&b, "%s %+v %v %d slots\n", name, q.figures, q.leasedKeys, len(q.slots))
		for _, m := range q.line {
			fmt.Fprintf(&b, "  %+v in %v\n", *m, q.slots[m.id].claimed == m)
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(st.failed), func(a, b failedName) int {
		return strings.Compare(a.space+" "+a.name, b.space+" "+b.name)
	}) {
		e := st.failed[f]
		fmt.Fprintf(&b, "failed %v from %s at %v: %+v\n", f, e.queue, e.at, *e.message)
	}
	return b.String()
}
