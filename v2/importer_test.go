//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// importTime is the time of the files in these tests.
var importTime = time.UnixMilli(1_700_000_000_123)

func foreign(id string, state ImportedState) Imported {
	return Imported{ID: id, Payload: []byte(`{"v1":"` + id + `","was":"` + state.String() + `"}`), State: state, Time: importTime}
}

func mustImport(t testing.TB, s *Store, name string, x token, ms ...Imported) *Import {
	t.Helper()
	i, err := s.OpenImport(t.Context(), name, ImportToken(x))
	mustDo(t, err)
	if n, err := i.Add(t.Context(), ms...); err != nil || n != len(ms) {
		t.Fatalf("added %d of %d: %v", n, len(ms), err)
	}
	return i
}

// An import over two processes: the second goes on where the first was, and after the
// close the token says that there is nothing left to do.
func TestImport(t *testing.T) {
	s, dir := newTestStore(t, nil)
	ctx := t.Context()
	x := namedToken("import")
	i := mustImport(t, s, "mail", x, foreign("both", ImportedClaimed), foreign("both", ImportedPending), foreign("f", ImportedFailed))
	if i.Token() != ImportToken(x) || i.Queue() != "mail" || i.Closed() {
		t.Errorf("import %s into %s, closed %v", i.Token(), i.Queue(), i.Closed())
	}
	st, err := s.Status(ctx, queue.StatusOptions{})
	if err != nil || st.Complete() || !st.Queues["mail"].Importing {
		t.Errorf("status %+v, %v", st, err)
	}
	var open *ImportingError
	if _, err := s.Claim(ctx, "mail", queue.ClaimOptions{}); !errors.Is(err, ErrImporting) || !errors.As(err, &open) || open.Token != i.Token() || open.Queue != "mail" {
		t.Errorf("claim: %v", err)
	}
	if _, err := s.EnqueueBatch(ctx, "mail", smalls(3)); !errors.Is(err, ErrImporting) {
		t.Errorf("enqueue: %v", err)
	}
	if NeedsOperator(open) {
		t.Error("an open import ends the worker")
	}
	// Looks go on: what came is there, and what it was.
	shown, err := s.Show(ctx, "mail", "both")
	if err != nil || len(shown) != 2 || string(shown[0].Payload) != `{"v1":"both","was":"claimed"}` || shown[0].Returned != "released" || !shown[1].EnqueuedAt.Equal(importTime) {
		t.Errorf("shown %+v, %v", shown, err)
	}
	if peeked, err := s.Peek(ctx, "mail", 9); err != nil || len(peeked) != 1 {
		t.Errorf("peeked %+v, %v", peeked, err)
	}
	if f, err := s.ShowFailed(ctx, "f", queue.FailedOptions{}); err != nil || !f.FailedAt.Equal(importTime) || f.LastError != importedError {
		t.Errorf("failed %+v, %v", f, err)
	}
	mustVerify(t, dir)

	other, err := Open(ctx, dir, nil)
	mustDo(t, err)
	defer other.Close()
	again, err := other.OpenImport(ctx, "mail", ImportToken(x))
	mustDo(t, err)
	n, err := again.Add(ctx, foreign("both", ImportedClaimed), foreign("both", ImportedPending), foreign("f", ImportedFailed), foreign("new", ImportedPending))
	if err != nil || n != 1 {
		t.Errorf("added %d, %v; want 1", n, err)
	}
	mustDo(t, again.Close(ctx), i.Close(ctx)) // the second finds it closed
	if !i.Closed() || !again.Closed() {
		t.Error("not closed")
	}
	want := []ImportInfo{{ImportToken(x), "mail", true}}
	if got, err := s.Imports(ctx); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("remembered %+v, %v", got, err)
	}
	if n, err := i.Add(ctx, foreign("late", ImportedPending)); n != 0 || !errors.Is(err, ErrNotImporting) {
		t.Errorf("added %d, %v", n, err)
	}
	if err := i.Abandon(ctx); !errors.Is(err, ErrNotImporting) {
		t.Errorf("abandon: %v", err)
	}

	d := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 9})
	if len(d) != 2 || d[0].Receipt.ID != "both" || d[0].Attempt() != 2 || d[0].Failures != 0 || d[1].Receipt.ID != "new" {
		t.Errorf("claimed %+v", d)
	}
	mustDo(t, s.Ack(ctx, d[0].Receipt))
	before := treeOf(t, dir)
	once, err := s.OpenImport(ctx, "mail", ImportToken(x))
	if err != nil || !once.Closed() {
		t.Errorf("opened once more: closed %v, %v", once.Closed(), err)
	}
	unchanged(t, dir, before)
}

func TestImportTokens(t *testing.T) {
	a, b := NewImportToken(), NewImportToken()
	if a == b {
		t.Error("two tokens are one")
	}
	if got, err := ParseImportToken(a.String()); err != nil || got != a {
		t.Errorf("%s parses to %s, %v", a, got, err)
	}
	for _, bad := range []string{"", "x", strings.ToUpper(a.String()), a.String() + "a", (ImportToken{}).String()} {
		if _, err := ParseImportToken(bad); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s, _ := newTestStore(t, nil)
	if _, err := s.OpenImport(t.Context(), "mail", ImportToken{}); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("the zero token: %v", err)
	}
	if _, err := s.OpenImport(t.Context(), "mail/size", a); !errors.Is(err, queue.ErrInvalidName) {
		t.Errorf("a queue name that is none: %v", err)
	}
}

// What cannot be taken is refused before the store is asked, and nothing comes of it.
func TestImportAdmission(t *testing.T) {
	s, _ := newTestStore(t, &Options{MaxPayloadBytes: 64, MaxPayloadDepth: 2})
	i, err := s.OpenImport(t.Context(), "mail", NewImportToken())
	mustDo(t, err)
	change := func(f func(m *Imported)) Imported {
		m := foreign("m", ImportedPending)
		f(&m)
		return m
	}
	for name, c := range map[string]struct {
		m   Imported
		err error
	}{
		"no ID":             {change(func(m *Imported) { m.ID = "" }), queue.ErrInvalidName},
		"a bad ID":          {change(func(m *Imported) { m.ID = "a/b" }), queue.ErrInvalidName},
		"no JSON":           {change(func(m *Imported) { m.Payload = []byte("{") }), queue.ErrInvalidPayload},
		"too deep":          {change(func(m *Imported) { m.Payload = []byte("[[[1]]]") }), queue.ErrInvalidPayload},
		"too large":         {change(func(m *Imported) { m.Payload = []byte(`"` + strings.Repeat("x", 64) + `"`) }), queue.ErrTooLarge},
		"no state":          {change(func(m *Imported) { m.State = 3 }), queue.ErrInvalid},
		"a negative state":  {change(func(m *Imported) { m.State = -1 }), queue.ErrInvalid},
		"before 1970":       {change(func(m *Imported) { m.Time = time.UnixMilli(-1) }), queue.ErrInvalid},
		"after 9999":        {change(func(m *Imported) { m.Time = time.UnixMilli(maxMillis + 1) }), queue.ErrInvalid},
		"twice in one call": {foreign("first", ImportedPending), queue.ErrInvalid},
	} {
		n, err := i.Add(t.Context(), foreign("first", ImportedPending), foreign("first", ImportedClaimed), c.m)
		var batch *queue.BatchError
		if n != 0 || !errors.Is(err, c.err) || !errors.As(err, &batch) || len(batch.Refused) != 1 || batch.Refused[0].Index != 2 {
			t.Errorf("%s: added %d, %v", name, n, err)
		}
	}
	if n, err := i.Add(t.Context()); n != 0 || err != nil {
		t.Errorf("nothing: added %d, %v", n, err)
	}
	// Bounds that may be reached, and a payload that is the caller's again afterwards.
	payload := []byte(`"` + strings.Repeat("x", 62) + `"`)
	n, err := i.Add(t.Context(), change(func(m *Imported) { m.Payload, m.Time = payload, time.UnixMilli(0) }), Imported{ID: "now", Payload: []byte("1")})
	if n != 2 || err != nil {
		t.Errorf("added %d, %v", n, err)
	}
	clear(payload)
	if st, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil || st.Queues["mail"].Ready != 2 {
		t.Errorf("status %+v, %v", st, err)
	}
	e, err := s.Show(t.Context(), "mail", "m")
	if err != nil || e[0].EnqueuedAt.UnixMilli() != 0 || !strings.Contains(string(e[0].Payload), "xxx") {
		t.Errorf("shown %+v, %v", e, err)
	}
	if e, err = s.Show(t.Context(), "mail", "now"); err != nil || time.Since(e[0].EnqueuedAt).Abs() > time.Hour {
		t.Errorf("shown %+v, %v", e, err)
	}
	mustDo(t, i.Abandon(t.Context()), i.Abandon(t.Context()))
	if err := i.Close(t.Context()); !errors.Is(err, ErrNotImporting) || i.Closed() {
		t.Errorf("close of an abandoned one: %v, closed %v", err, i.Closed())
	}
}

// Of the calls that enter one commit only those into the queue are refused.
func TestImportInAGroup(t *testing.T) {
	d, s, _ := onDisk(t)
	x := namedToken("import")
	mustImport(t, s, "mail", x, foreign("a", ImportedPending))
	commits := s.commits.Load()
	var added int
	errs := together(t, d, s,
		func() error { return second(s.Enqueue(t.Context(), "mail", small("z"))) },
		func() error { return second(s.Enqueue(t.Context(), "news", small("z"))) },
		func() (err error) {
			added, err = (&Import{s: s, token: x}).Add(t.Context(), foreign("a", ImportedPending), foreign("b", ImportedFailed))
			return err
		},
		func() error { return (&Import{s: s, token: x}).Close(t.Context()) },
		func() error { return second(s.Enqueue(t.Context(), "mail", small("late"))) },
		func() error { return second((&Import{s: s, token: x}).Add(t.Context(), foreign("c", ImportedFailed))) },
	)
	for i, want := range []error{ErrImporting, nil, nil, nil, nil, ErrNotImporting} {
		if !errors.Is(errs[i], want) || want == nil && errs[i] != nil {
			t.Errorf("call %d: %v, want %v", i, errs[i], want)
		}
	}
	if n := s.commits.Load() - commits; n != 1 || added != 1 {
		t.Errorf("%d commits, %d added; want one of each", n, added)
	}
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if q := st.Queues["mail"]; err != nil || q.Ready != 2 || q.Failed != 1 || q.Importing {
		t.Errorf("status %+v, %v", st, err)
	}
}

// Nobody is told that a queue is complete, or that something is due in it, while an
// import into it is open.
func TestWaitForAnImport(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		ctx := t.Context()
		x := namedToken("import")
		i := mustImport(t, sc.Store, "mail", x)
		waits := map[string]<-chan error{}
		for name, o := range map[string]queue.WaitOptions{
			"all": {}, "queue": {Queues: []string{"mail"}}, "aside": {Queues: []string{"mail"}, IgnoreScheduled: true},
			"message": {Queues: []string{"mail"}, Message: "nobody"},
		} {
			waits[name] = wakeGo(func() error { return second(sc.Wait(ctx, o)) })
		}
		due := sc.due(ctx)
		all := []<-chan error{waits["all"], waits["queue"], waits["aside"], waits["message"], due}
		sc.parked(t, all...)
		mustDo(t, second(i.Add(ctx, foreign("a", ImportedPending))))
		sc.parked(t, all...)
		mustDo(t, i.Close(ctx))
		sc.over(t, due, waits["message"])
		sc.parked(t, waits["all"], waits["queue"], waits["aside"])
		mustDo(t, sc.Ack(ctx, mustClaim(t, sc.Store, "mail", queue.ClaimOptions{})[0].Receipt))
		sc.over(t, waits["all"], waits["queue"], waits["aside"])
	})
}

// A full disk takes no further message, and lets an import end either way, by giving up
// the reserve.
func TestImportOnAFullDisk(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, i *Import) error{
		"close":   func(t *testing.T, i *Import) error { return i.Close(t.Context()) },
		"abandon": func(t *testing.T, i *Import) error { return i.Abandon(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFullStore(t, Options{MinFreeBytes: -1, plain: true})
			i := mustImport(t, f.Store, "in", namedToken("import"), foreign("a", ImportedPending), foreign("b", ImportedFailed))
			f.disk.SetFree(0)
			if n, err := i.Add(t.Context(), foreign("c", ImportedPending)); n != 0 || !errors.Is(err, queue.ErrFull) || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("added %d, %v", n, err)
			}
			if _, err := f.OpenImport(t.Context(), "more", NewImportToken()); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("another import: %v", err)
			}
			if !f.hasReserve() {
				t.Error("what takes room took the reserve")
			}
			again, err := f.OpenImport(t.Context(), "in", i.Token()) // takes none
			mustDo(t, err)
			i = again
			mustDo(t, end(t, i))
			if f.hasReserve() {
				t.Error("the reserve was not given up")
			}
			want := map[string]uint64{"close": 1, "abandon": 0}[name]
			st, err := f.Status(t.Context(), queue.StatusOptions{})
			if q := st.Queues["in"]; err != nil || q.Importing || q.Ready != want || q.Failed != want {
				t.Errorf("status %+v, %v", q, err)
			}
		})
	}
}

// Below the floor nothing is brought, and the disk is not touched.
func TestImportBelowTheFloor(t *testing.T) {
	f := newFullStore(t, Options{MinFreeBytes: 1 << 20})
	i := mustImport(t, f.Store, "in", namedToken("import"))
	f.disk.SetFree(1<<20 - 1)
	f.w.Arm(crashtest.Plan{})
	if n, err := i.Add(t.Context(), foreign("c", ImportedPending)); n != 0 || !errors.Is(err, queue.ErrFull) {
		t.Errorf("added %d, %v", n, err)
	}
	if n := f.w.Count(changing...); n != 0 {
		t.Errorf("a refused import did %d operations that change something:\n%s", n, f.w.Trace())
	}
	mustDo(t, i.Close(t.Context()))
}

// A full state is refused by its bound, as an enqueue is, whatever the disk has.
func TestImportIntoAFullState(t *testing.T) {
	s, _ := newTestStore(t, &Options{MaxStateBytes: leastStateBytes, MinFreeBytes: -1})
	i := mustImport(t, s, "mail", namedToken("import"))
	var n int
	for ; n < 1000; n++ {
		if _, err := i.Add(t.Context(), foreign(fmt.Sprint(n), ImportedClaimed)); err != nil {
			var batch *queue.BatchError
			if !errors.Is(err, queue.ErrFull) || !errors.As(err, &batch) || !strings.Contains(err.Error(), fmt.Sprint(n)) {
				t.Fatal(err)
			}
			break
		}
	}
	if n < 100 || n == 1000 {
		t.Fatalf("%d messages went in", n)
	}
	mustDo(t, i.Close(t.Context()))
	for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 1000, WithoutHolder: true}) {
		mustDo(t, second(s.Fail(t.Context(), d.Receipt, queue.FailOptions{Cause: "no"})))
	}
}
