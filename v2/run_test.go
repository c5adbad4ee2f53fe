//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// deep gives a store with blocks of two and n messages m000, m001, … in mail, most of
// them sealed, and the time that it keeps.
func deep(t *testing.T, n int) (*Store, *handClock) {
	t.Helper()
	clock := &handClock{rigStart}
	s, _ := newTestStore(t, &Options{block: 2, clock: clock, prepare: -1})
	for _, m := range smalls(n) {
		mustEnqueue(t, s, "mail", m)
	}
	return s, clock
}

// runsOf gives how many runs the queue has and how many messages are in them.
func runsOf(t *testing.T, s *Store, name string) (runs, sealed int) {
	t.Helper()
	st := stateOf(t, s)
	if q := st.queue(name); q != nil {
		for _, r := range q.runs {
			sealed += r.live()
		}
		runs = len(q.runs)
	}
	return runs, sealed
}

// stateOf reads the committed state from its file.
func stateOf(t *testing.T, s *Store) *state {
	t.Helper()
	other, err := OpenReadOnly(t.Context(), s.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	return other.cached.st
}

func idsOf(deliveries []queue.Delivery) (ids []string) {
	for _, d := range deliveries {
		ids = append(ids, d.Receipt.ID)
	}
	return ids
}

func idsOfSmalls(from, to int) (ids []string) {
	for _, m := range smalls(to)[from:] {
		ids = append(ids, m.ID)
	}
	return ids
}

// The last members take their run with them, and the list of a published state stays as it is.
func TestRunTakenAway(t *testing.T) {
	st, _, _ := sampleRuns()
	q := st.queue("mail")
	published := q.runs
	one, two := published[0], published[1]
	members := newBody([]*slot{
		{id: "b", pending: &ref{seq: 1}}, {id: "c", pending: &ref{seq: 2}}, {id: "d", pending: &ref{seq: 3}},
	})
	if rest := one.without(members, func(i int) bool { return i == 0 }); rest == nil || rest.live() != 1 || rest.first != 3 {
		t.Errorf("without the first: %+v", rest)
	}
	if rest := one.without(members, func(i int) bool { return i != 1 }); rest != nil {
		t.Errorf("without all: %+v", rest)
	}
	q.setRun(one.name, nil)
	if !slices.Equal(q.runs, []*run{two}) {
		t.Errorf("%d runs are left, want the second", len(q.runs))
	}
	if !slices.Equal(published, []*run{one, two}) {
		t.Errorf("the published list is now %v", published)
	}
}

// A backlog is sealed as it grows, is delivered in order, and leaves nothing behind.
func TestRunLife(t *testing.T) {
	s, _ := deep(t, 40)
	ctx := t.Context()
	runs, sealed := runsOf(t, s, "mail")
	if runs < 10 || sealed < 30 {
		t.Fatalf("%d runs with %d messages, of 40", runs, sealed)
	}
	report, err := s.Verify(ctx, VerifyOptions{})
	if err != nil || !report.OK || report.Messages != 40 || report.Runs != int64(runs) || report.Orphans != 0 {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	mustHaveNoOrphans(t, s)
	for at, n := range []int{1, 1, 3, 7, 20, 8} {
		got := mustClaim(t, s, "mail", queue.ClaimOptions{Max: n})
		claimed := [...]int{0, 1, 2, 5, 12, 32}[at]
		if want := idsOfSmalls(claimed, claimed+n); !slices.Equal(idsOf(got), want) {
			t.Fatalf("claimed %v, want %v", idsOf(got), want)
		}
		for _, d := range got {
			if want := string(small(d.Receipt.ID).Payload); string(d.Payload) != want {
				t.Errorf("%s: payload %s", d.Receipt.ID, d.Payload)
			}
			if err := s.Ack(ctx, d.Receipt); err != nil {
				t.Fatal(err)
			}
		}
		status, err := s.Status(ctx, queue.StatusOptions{})
		if g := status.Queues["mail"]; err != nil || g.Pending != uint64(40-claimed-n) || g.Ready != g.Pending || g.Processing != 0 {
			t.Fatalf("after %d: %+v, %v", claimed+n, g, err)
		}
	}
	if st := stateOf(t, s); st.uses()&^sparesFeature != 0 || len(st.queue("mail").slots) != 0 {
		t.Errorf("an empty queue still uses %b", st.uses())
	}
}

// What names a sealed message meets it as any other.
func TestRunByID(t *testing.T) {
	s, _ := deep(t, 40)
	ctx := t.Context()
	sealed := "m020"
	if q := stateOf(t, s).queue("mail"); func() bool { inline, _ := q.find(sealed); return inline != nil }() {
		t.Fatalf("%s stands inline", sealed)
	}
	if _, err := s.Enqueue(ctx, "mail", small(sealed)); !errors.Is(err, queue.ErrDuplicate) {
		t.Errorf("enqueued again: %v", err)
	}
	kept, err := s.Enqueue(ctx, "mail", queue.Message{ID: sealed, Payload: []byte(`1`), IfExists: queue.Keep})
	if err != nil || !kept.Kept {
		t.Errorf("kept: %+v, %v", kept, err)
	}
	shown, err := s.Show(ctx, "mail", sealed)
	if err != nil || len(shown) != 1 || shown[0].State != queue.Ready || shown[0].Generation != kept.Generation || string(shown[0].Payload) != string(small(sealed).Payload) {
		t.Errorf("shown: %+v, %v", shown, err)
	}
	if _, before := runsOf(t, s, "mail"); before < 30 {
		t.Errorf("looks and refusals unsealed: %d", before)
	}
	// Replaced, it goes to the end; loaded, it is out of its turn.
	if _, err := s.Enqueue(ctx, "mail", queue.Message{ID: sealed, Payload: []byte(`"new"`), IfExists: queue.Replace}); err != nil {
		t.Fatal(err)
	}
	d, err := s.Load(ctx, "mail", "m021", queue.LoadOptions{})
	if err != nil || string(d.Payload) != string(small("m021").Payload) {
		t.Fatalf("loaded %+v, %v", d, err)
	}
	if _, err := s.Load(ctx, "mail", "m021", queue.LoadOptions{}); !errors.Is(err, queue.ErrLeased) {
		t.Errorf("loaded again: %v", err)
	}
	var want []string
	for _, id := range idsOfSmalls(0, 40) {
		if id != sealed && id != "m021" {
			want = append(want, id)
		}
	}
	want = append(want, sealed)
	got := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 100})
	if !slices.Equal(idsOf(got), want) || string(got[len(got)-1].Payload) != `"new"` {
		t.Errorf("claimed %v", idsOf(got))
	}
}

// Listing goes through what is inline and what is sealed in one order.
func TestRunPages(t *testing.T) {
	s, _ := deep(t, 40)
	ctx := t.Context()
	mustClaim(t, s, "mail", queue.ClaimOptions{Max: 5})
	var got []string
	for after := ""; ; {
		page, err := s.List(ctx, "mail", queue.ListOptions{After: after, Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			got = append(got, e.ID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if want := idsOfSmalls(0, 40); !slices.Equal(got, want) {
		t.Errorf("listed %v", got)
	}
	peeked, err := s.Peek(ctx, "mail", 20)
	if err != nil || len(peeked) != 20 || peeked[0].ID != "m005" || peeked[19].ID != "m024" {
		t.Errorf("peeked %d: %v", len(peeked), err)
	}
	if _, sealed := runsOf(t, s, "mail"); sealed < 25 {
		t.Errorf("a look unsealed: %d", sealed)
	}
}

// Clearing takes what is sealed too, without reading it.
func TestRunClear(t *testing.T) {
	s, _ := deep(t, 40)
	mustClaim(t, s, "mail", queue.ClaimOptions{Max: 3})
	n, err := s.Clear(t.Context(), "mail", queue.ClearOptions{})
	if err != nil || n != 37 {
		t.Fatalf("cleared %d: %v", n, err)
	}
	if runs, _ := runsOf(t, s, "mail"); runs != 0 {
		t.Errorf("%d runs are left", runs)
	}
}

// Scheduled messages lie in runs of their own, by their time.
func TestRunScheduled(t *testing.T) {
	s, clock := deep(t, 0)
	ctx := t.Context()
	begin := clock.Wall
	for i, m := range smalls(40) {
		m.NotBefore = begin.Add(time.Duration((i*7)%40+1) * time.Minute) // in an order of their own
		mustEnqueue(t, s, "mail", m)
	}
	if runs, sealed := runsOf(t, s, "mail"); runs < 5 || sealed < 25 {
		t.Fatalf("%d runs with %d messages", runs, sealed)
	}
	if got := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 10}); len(got) != 0 {
		t.Fatalf("claimed %v before their time", idsOf(got))
	}
	seen := 0
	for minute := 5; minute <= 40; minute += 5 {
		clock.Wall = begin.Add(time.Duration(minute) * time.Minute)
		status, err := s.Status(ctx, queue.StatusOptions{})
		if g := status.Queues["mail"]; err != nil || g.Ready != 5 || g.Scheduled != uint64(40-minute) {
			t.Fatalf("minute %d: %+v, %v", minute, g, err)
		}
		if err := s.WaitDue(ctx, "mail"); err != nil {
			t.Fatal(err)
		}
		got := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 100})
		if len(got) != 5 || !slices.IsSorted(idsOf(got)) {
			t.Fatalf("minute %d: claimed %v", minute, idsOf(got))
		}
		seen += len(got)
	}
	if seen != 40 {
		t.Errorf("claimed %d", seen)
	}
}

// A claim that meets damaged messages goes on into the runs in order.
func TestRunDamaged(t *testing.T) {
	s, _ := deep(t, 12)
	for _, id := range []string{"m000", "m004"} {
		e, err := s.Show(t.Context(), "mail", id)
		if err != nil {
			t.Fatal(err)
		}
		mustDo(t, os.Remove(filepath.Join(s.dir, namespaceDir, objectsDir, e[0].Object, payloadFile)))
	}
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 6})
	if err != nil || len(c.Damaged) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := fmt.Sprint(idsOf(c.Deliveries)); got != "[m001 m002 m003 m005 m006 m007]" {
		t.Errorf("claimed %s", got)
	}
	for _, d := range c.Damaged { // the store must verify
		mustDo(t, s.Purge(t.Context(), d.FailedName, queue.PurgeOptions{}))
	}
}
