//go:build unix

package holdfast

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// What may leave the state, and what must stay.
func TestRunCold(t *testing.T) {
	const now = 1000
	q := &queueState{name: "mail"}
	add := func(id string, pending *ref, claimed *claim) {
		for _, r := range []*ref{pending} {
			if r != nil {
				r.seq, q.next = q.next, q.next+1
			}
		}
		q.slots = append(q.slots, &slot{id: id, pending: pending, claimed: claimed})
	}
	out := func() *claim { return &claim{ref: ref{attempts: 1}} }
	back := func() *claim { return &claim{ref: ref{attempts: 1, excused: 1}, returned: released} }
	add("due", &ref{}, nil)
	add("of a key", &ref{key: "chat"}, nil)
	add("of an import", &ref{mark: namedToken("import")}, nil)
	add("leased", nil, out())
	add("behind a lease", &ref{}, out())
	add("returned", nil, back())
	add("behind what came back", &ref{}, back())
	add("later", &ref{notBefore: now + 20}, nil)
	add("soon", &ref{notBefore: now + 1}, nil)
	add("scheduled, and due", &ref{notBefore: now}, nil)
	add("due too", &ref{}, nil)
	due, scheduled := q.cold(now)
	ids := func(slots []*slot) (ids []string) {
		for _, s := range slots {
			ids = append(ids, s.id)
		}
		return ids
	}
	if got := fmt.Sprintf("%q then %q", ids(due), ids(scheduled)); got != `["due" "due too"] then ["soon" "later"]` {
		t.Errorf("may leave: %s", got)
	}
}

// A block grows with the square root of the backlog, and with a small bound of the state
// is small enough to come back.
func TestRunBlocks(t *testing.T) {
	for _, c := range []struct {
		backlog, limit int64
		from, to       int
	}{
		{0, 0, leastBlock, leastBlock},
		{10_000, 0, leastBlock, leastBlock},
		{100_000, 0, 155, 162},
		{1_000_000, 0, 492, 508},
		{1 << 40, 0, maxRun, maxRun},
		{1_000_000, 64 << 10, 1, 64},
		{1_000_000, 1, 1, 1},
	} {
		d := &draft{limit: c.limit}
		if got := d.blockOf(c.backlog); got < c.from || got > c.to {
			t.Errorf("a block of %d messages for %d within %d bytes, want %d to %d", got, c.backlog, c.limit, c.from, c.to)
		}
	}
}

// What wakes a waiting worker may lie in a run.
func TestRunDue(t *testing.T) {
	s, clock := deep(t, 0)
	begin := clock.Wall
	for i, m := range smalls(9) {
		m.NotBefore = begin.Add(time.Duration(i+1) * time.Minute)
		mustEnqueue(t, s, "mail", m)
	}
	clock.Wall = begin.Add(2 * time.Minute)
	for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 9, WithoutHolder: true}) {
		mustDo(t, s.Ack(t.Context(), d.Receipt))
	}
	st := stateOf(t, s)
	if q := st.queue("mail"); len(q.runs) == 0 || q.runs[0].from != begin.Add(3*time.Minute).UnixMilli() {
		t.Fatalf("the next message is not in a run: %+v", q.runs)
	}
	for _, c := range []struct {
		minute int
		yes    bool
		next   int
	}{{2, false, 3}, {3, true, 0}, {20, true, 0}} {
		at := clock.instant
		at.Wall = begin.Add(time.Duration(c.minute) * time.Minute)
		yes, next := st.due([]string{"mail"}, at)
		var want int64
		if c.next > 0 {
			want = begin.Add(time.Duration(c.next) * time.Minute).UnixMilli()
		}
		if yes != c.yes || next != want {
			t.Errorf("minute %d: %v, %d; want %v, %d", c.minute, yes, next, c.yes, want)
		}
	}
}

// Behind damaged messages a claim does not take what stands inline before what lies in a
// run.
func TestRunBehindDamage(t *testing.T) {
	s, _ := deep(t, 12)
	for _, id := range []string{"m000", "m001", "m002", "m003"} {
		e, err := s.Show(t.Context(), "mail", id)
		mustDo(t, err)
		mustDo(t, os.Remove(filepath.Join(s.dir, namespaceDir, objectsDir, e[0].Object, payloadFile)))
	}
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 3})
	if want := idsOfSmalls(4, 7); err != nil || len(c.Damaged) != 4 || !slices.Equal(idsOf(c.Deliveries), want) {
		t.Errorf("claimed %v beside %d damaged, want %v: %v", idsOf(c.Deliveries), len(c.Damaged), want, err)
	}
	for _, d := range c.Damaged { // the store must verify
		mustDo(t, s.Purge(t.Context(), d.FailedName, queue.PurgeOptions{}))
	}
}
