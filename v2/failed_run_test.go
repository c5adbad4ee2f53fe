//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// failing gives a store with blocks of two and n failed messages m000, m001, … of mail,
// most of them sealed. It is enqueues that seal.
func failing(t *testing.T, n int) *Store {
	t.Helper()
	s, _ := deep(t, 0)
	for _, m := range smalls(n) {
		mustFail(t, s, m.ID, m.ID)
	}
	mustEnqueue(t, s, "other", small("seals"))
	return s
}

// mustFail makes a message of mail fail under a name.
func mustFail(t *testing.T, s *Store, id, as string) {
	t.Helper()
	mustEnqueue(t, s, "mail", small(id))
	d, err := s.Load(t.Context(), "mail", id, queue.LoadOptions{})
	mustDo(t, err)
	_, err = s.Fail(t.Context(), d.Receipt, queue.FailOptions{Cause: "broken", As: as})
	mustDo(t, err)
}

// failedRunsOf gives how many runs a namespace has and how many messages are in them.
func failedRunsOf(t *testing.T, s *Store, space string) (runs []*failedRun, sealed int) {
	t.Helper()
	st := stateOf(t, s)
	if i, ok := st.spaceIndex(space); ok {
		runs = st.failed[i].runs
	}
	for _, r := range runs {
		sealed += r.live()
	}
	return runs, sealed
}

// namesFailed pages through a namespace.
func namesFailed(t *testing.T, s *Store, f queue.FailedOptions, limit int) (names []string) {
	t.Helper()
	for after := ""; ; {
		page, err := s.ListFailed(t.Context(), f, queue.ListOptions{After: after, Limit: limit})
		mustDo(t, err)
		for _, e := range page.Entries {
			names = append(names, e.FailedName)
		}
		if after = page.Next; after == "" {
			return names
		}
	}
}

// mustBeFailed checks the gauge, the listing and the verdict.
func mustBeFailed(t *testing.T, s *Store, want []string) {
	t.Helper()
	status, err := s.Status(t.Context(), queue.StatusOptions{})
	if g := status.Queues["mail"]; err != nil || g.Failed != uint64(len(want)) {
		t.Fatalf("the gauge says %d failed, want %d: %v", g.Failed, len(want), err)
	}
	for _, limit := range []int{3, 1000} {
		if got := namesFailed(t, s, queue.FailedOptions{}, limit); !slices.Equal(got, want) {
			t.Fatalf("in pages of %d: %v, want %v", limit, got, want)
		}
	}
	report, err := s.Verify(t.Context(), VerifyOptions{})
	if err != nil || !report.OK || report.Failed != int64(len(want)) || report.Messages != 1 {
		t.Fatalf("verify: %+v, %v", report, err)
	}
}

// What failed is sealed as more fails, is looked at, purged and reprocessed as if it
// were inline, and leaves nothing behind.
func TestFailedRunLife(t *testing.T) {
	s := failing(t, 40)
	ctx := t.Context()
	names := idsOfSmalls(0, 40)
	runs, sealed := failedRunsOf(t, s, "")
	if len(runs) < 7 || sealed < 34 {
		t.Fatalf("%d runs with %d messages, of 40", len(runs), sealed)
	}
	mustBeFailed(t, s, names)
	report, err := s.Verify(ctx, VerifyOptions{})
	if err != nil || report.Runs != int64(len(runs)) || report.Orphans != 0 {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	mustHaveNoOrphans(t, s)
	for _, name := range []string{"m000", "m017", "m039"} {
		e, err := s.ShowFailed(ctx, name, queue.FailedOptions{})
		if err != nil || e.State != queue.Failed || e.FailedName != name || e.LastError != "broken" || string(e.Payload) != string(small(name).Payload) {
			t.Errorf("shown: %+v, %v", e, err)
		}
	}
	if _, err := s.ShowFailed(ctx, "m0170", queue.FailedOptions{}); !errors.Is(err, queue.ErrNotFailed) {
		t.Errorf("shown: %v", err)
	}
	for len(names) > 0 {
		name := names[(len(names)*5)/8]
		if len(names)%2 == 0 {
			mustDo(t, s.Purge(ctx, name, queue.PurgeOptions{}))
		} else {
			mustDo(t, s.Reprocess(ctx, name, queue.ReprocessOptions{}))
			d := mustClaim(t, s, "mail", queue.ClaimOptions{})
			if len(d) != 1 || d[0].Receipt.ID != name || d[0].Receipt.Attempt != 2 || string(d[0].Payload) != string(small(name).Payload) {
				t.Fatalf("claimed %+v, want %s", d, name)
			}
			mustDo(t, s.Ack(ctx, d[0].Receipt))
		}
		for what, err := range map[string]error{
			"purged":      s.Purge(ctx, name, queue.PurgeOptions{}),
			"reprocessed": s.Reprocess(ctx, name, queue.ReprocessOptions{}),
		} {
			if !errors.Is(err, queue.ErrNotFailed) {
				t.Errorf("%s again: %v", what, err)
			}
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
		mustBeFailed(t, s, names)
	}
	if st := stateOf(t, s); st.uses()&^sparesFeature != 0 || len(st.failed) != 0 {
		t.Errorf("left: %b, %+v", st.uses(), st.failed)
	}
}

// The newest stay inline, whatever their names, and so does what belongs to an open
// import.
func TestFailedRunKeepsTheNewest(t *testing.T) {
	s, clock := deep(t, 0)
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("m%02d", (i*5)%12)) // in an order of their own
		mustFail(t, s, names[i], names[i])
		clock.Wall = clock.Wall.Add(1e9)
	}
	x, err := s.OpenImport(t.Context(), "old", ImportToken(namedToken("an import")))
	mustDo(t, err)
	_, err = x.Add(t.Context(), foreign("a", ImportedFailed), foreign("b", ImportedFailed), foreign("c", ImportedFailed))
	mustDo(t, err)
	mustEnqueue(t, s, "other", small("seals"))
	var inline []string
	for _, e := range stateOf(t, s).failed[0].entries {
		inline = append(inline, e.name)
	}
	for _, name := range []string{"a", "b", "c", names[10], names[11]} {
		if !slices.Contains(inline, name) {
			t.Errorf("%s was sealed; inline are %v", name, inline)
		}
	}
	if len(inline) > 9 {
		t.Errorf("inline are %v", inline)
	}
	mustDo(t, x.Abandon(t.Context()))
	if got := namesFailed(t, s, queue.FailedOptions{}, 100); len(got) != 12 {
		t.Errorf("after the import was abandoned: %v", got)
	}
	mustDo(t, second(s.Clear(t.Context(), "old", queue.ClearOptions{})))
}

// A name that is taken in a run is taken.
func TestFailedRunNameTaken(t *testing.T) {
	s := failing(t, 20)
	ctx := t.Context()
	for _, id := range idsOfSmalls(3, 6) { // in objects of their own
		mustEnqueue(t, s, "mail", small(id))
	}
	load := func(id string) queue.Delivery {
		d, err := s.Load(ctx, "mail", id, queue.LoadOptions{})
		mustDo(t, err)
		return d
	}
	d := load("m003")
	for _, as := range []string{"", "m003", "m007"} {
		if _, err := s.Fail(ctx, d.Receipt, queue.FailOptions{As: as}); !errors.Is(err, queue.ErrFailedExists) {
			t.Fatalf("as %q: %v", as, err)
		}
	}
	want := "m003~" + d.Receipt.Generation
	got, err := s.Retry(ctx, d.Receipt, queue.RetryOptions{MaxFailures: 1})
	if err != nil || got.FailedName != want {
		t.Errorf("at the cap: %+v, %v; want %s", got, err, want)
	}
	d = load("m004")
	want = "m004~" + d.Receipt.Generation
	back, err := s.Reap(ctx, queue.ReapOptions{Receipt: &d.Receipt, MaxLapses: 1})
	if err != nil || len(back) != 1 || back[0].FailedName != want {
		t.Errorf("reaped: %+v, %v; want %s", back, err, want)
	}
	e, err := s.Show(ctx, "mail", "m005")
	mustDo(t, err)
	mustDo(t, os.Remove(filepath.Join(s.dir, namespaceDir, objectsDir, e[0].Object, payloadFile)))
	var damaged *queue.DamagedError
	if _, err := s.Load(ctx, "mail", "m005", queue.LoadOptions{}); !errors.As(err, &damaged) || damaged.FailedName != "m005~"+e[0].Generation {
		t.Errorf("damaged: %v", err)
	}
	mustDo(t, s.Purge(ctx, damaged.FailedName, queue.PurgeOptions{})) // the store must verify
}

// A run that cannot be read stops what needs it, and nothing that moves a message out of
// a worker's way.
func TestFailedRunUnreadable(t *testing.T) {
	s := failing(t, 20)
	ctx := t.Context()
	for _, id := range idsOfSmalls(3, 7) { // in objects of their own
		mustEnqueue(t, s, "mail", small(id))
	}
	take := func(id string) queue.Delivery {
		d, err := s.Load(ctx, "mail", id, queue.LoadOptions{})
		mustDo(t, err)
		return d
	}
	fails, capped, reaped := take("m003"), take("m004"), take("m005")
	hurt, err := s.Show(ctx, "mail", "m006")
	mustDo(t, err)
	mustDo(t, os.Remove(filepath.Join(s.dir, namespaceDir, objectsDir, hurt[0].Object, payloadFile)))
	runs, _ := failedRunsOf(t, s, "")
	whole := map[string][]byte{}
	for _, r := range runs {
		file := filepath.Join(s.dir, namespaceDir, objectsDir, r.name.String(), runFile)
		whole[file] = mustRead(t, file)
		mustDo(t, os.WriteFile(file, []byte(strings.Replace(string(whole[file]), `"filter":"`, `"filter":"_`, 1)), 0o600))
	}
	s, err = Open(ctx, s.dir, &Options{block: 2, clock: s.clock}) // what it has read is forgotten
	mustDo(t, err)
	defer s.Close()

	needs := func(what string, err error) {
		t.Helper()
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || !strings.HasSuffix(corrupt.File, runFile) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = s.Fail(ctx, fails.Receipt, queue.FailOptions{})
	needs("fail", err)
	needs("purge", s.Purge(ctx, "m003", queue.PurgeOptions{}))
	needs("reprocess", s.Reprocess(ctx, "m003", queue.ReprocessOptions{}))
	_, err = s.ShowFailed(ctx, "m003", queue.FailedOptions{})
	needs("show", err)
	_, err = s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{})
	needs("list", err)
	x, err := s.OpenImport(ctx, "old", ImportToken(namedToken("an import")))
	mustDo(t, err)
	_, err = x.Add(ctx, foreign("m003", ImportedFailed))
	needs("import", err)
	mustDo(t, x.Abandon(ctx))

	status, err := s.Status(ctx, queue.StatusOptions{})
	if err != nil || status.Queues["mail"].Failed != 20 || status.Queues["mail"].Processing != 3 {
		t.Errorf("status: %+v, %v", status.Queues["mail"], err)
	}
	report, err := s.Verify(ctx, VerifyOptions{})
	faults := 0
	for _, f := range report.Faults {
		if f.Code == "run" && strings.HasSuffix(f.File, runFile) {
			faults++
		}
	}
	if err != nil || report.OK || faults != len(runs) || report.Orphans != -1 {
		t.Errorf("verify: %+v, %v", report, err)
	}

	// These need no look-up.
	got, err := s.Retry(ctx, capped.Receipt, queue.RetryOptions{MaxFailures: 1})
	if want := "m004~" + capped.Receipt.Generation; err != nil || got.FailedName != want {
		t.Errorf("at the cap: %+v, %v; want %s", got, err, want)
	}
	back, err := s.Reap(ctx, queue.ReapOptions{Receipt: &reaped.Receipt, MaxLapses: 1})
	if want := "m005~" + reaped.Receipt.Generation; err != nil || len(back) != 1 || back[0].FailedName != want {
		t.Errorf("reaped: %+v, %v; want %s", back, err, want)
	}
	var damaged *queue.DamagedError
	if _, err := s.Load(ctx, "mail", "m006", queue.LoadOptions{}); !errors.As(err, &damaged) || damaged.FailedName != "m006~"+hurt[0].Generation {
		t.Errorf("damaged: %v", err)
	}
	mustEnqueue(t, s, "mail", small("after"))

	for file, text := range whole {
		mustDo(t, os.WriteFile(file, text, 0o600))
	}
	if _, err := s.Fail(ctx, fails.Receipt, queue.FailOptions{As: "last"}); err != nil {
		t.Errorf("the claim did not stay: %v", err)
	}
	mustDo(t, s.Purge(ctx, damaged.FailedName, queue.PurgeOptions{}))
}

// A page reads those runs that may have something of it, and a name is looked for in
// those only that may have it.
func TestFailedRunReadsWhatItNeeds(t *testing.T) {
	s := failing(t, 40)
	ctx := t.Context()
	runs, _ := failedRunsOf(t, s, "")
	slices.SortFunc(runs, func(a, b *failedRun) int { return strings.Compare(a.first, b.first) })
	opened := func(do func()) (read int) {
		t.Helper()
		*s.runs = *newRunFiles(s.runs.objects)
		do()
		return len(s.runs.read)
	}
	page := func(f queue.FailedOptions, o queue.ListOptions, want int) func() {
		return func() {
			t.Helper()
			got, err := s.ListFailed(ctx, f, o)
			if err != nil || len(got.Entries) != want {
				t.Errorf("%+v: %d entries, %v; want %d", o, len(got.Entries), err, want)
			}
		}
	}
	for _, c := range []struct {
		what string
		do   func()
		read int
	}{
		{"status", func() { mustDo(t, second(s.Status(ctx, queue.StatusOptions{}))) }, 0},
		{"a strange name", func() { s.ShowFailed(ctx, "n000", queue.FailedOptions{}) }, 0},
		{"an enqueue that seals none", func() { mustEnqueue(t, s, "other", small("a")) }, 0},
		{"the first page", page(queue.FailedOptions{}, queue.ListOptions{Limit: 1}, 1), 1},
		{"a later page", page(queue.FailedOptions{}, queue.ListOptions{Limit: 1, After: runs[3].last}, 1), 1},
		{"the last page", page(queue.FailedOptions{}, queue.ListOptions{Limit: 2, After: "m037"}, 2), 0},
		{"another queue", page(queue.FailedOptions{Queue: "other"}, queue.ListOptions{}, 0), 0},
		{"one", func() { mustDo(t, second(s.ShowFailed(ctx, "m004", queue.FailedOptions{}))) }, 1},
		{"all", page(queue.FailedOptions{}, queue.ListOptions{}, 40), len(runs)},
	} {
		if got := opened(c.do); got != c.read {
			t.Errorf("%s: %d runs were read, want %d", c.what, got, c.read)
		}
	}
}

// Long last errors make shorter blocks and shorter runs.
func TestFailedRunLongErrors(t *testing.T) {
	entry := func(i int) *failedEntry {
		name := fmt.Sprintf("m%06d", i)
		return &failedEntry{name: name, queue: "mail", id: name, at: int64(i), ref: ref{
			gen: generation{token{1}, uint32(i)}, object: token{byte(i), byte(i >> 8)}, size: 1, attempts: 1,
			lastError: strings.Repeat("\x1b", maxLastError), // six bytes each as they are written
		}}
	}
	var all []*failedEntry
	for i := range 2000 {
		all = append(all, entry(i))
	}
	parts := partsOfRuns(all)
	total := 0
	for _, part := range parts {
		r, text := encodeFailedRun(part)
		if len(text) > maxRunBytes {
			t.Errorf("a run of %d bytes", len(text))
		}
		if _, err := decodeFailedRun(text, r, "run.json"); err != nil {
			t.Error(err)
		}
		total += len(part)
	}
	if total != 2000 || len(parts) < 3 || len(parts) > 5 {
		t.Errorf("%d in %d runs", total, len(parts))
	}
	for _, c := range []struct {
		limit int64
		want  int // of 300
	}{{0, 0}, {64 << 20, 0}, {1 << 20, 300 - 13}, {64 << 10, 299}} {
		d := &draft{limit: c.limit}
		if got := len(d.ripeFailed(&failedSpace{entries: all[:300]})); got != c.want {
			t.Errorf("within %d bytes %d are sealed, want %d", c.limit, got, c.want)
		}
	}
	d := &draft{block: -1}
	if got := d.ripeFailed(&failedSpace{entries: all}); len(got) != 0 {
		t.Errorf("%d are sealed, want none", len(got))
	}
}

// An enqueue that seals failed messages syncs one object more, at the same time as the
// others; nothing else that a run has to do with costs a sync, and settling never seals.
func TestFailedRunSyncBudget(t *testing.T) {
	s, w := counted(t)
	s.opts.block = 2
	ctx := t.Context()
	for _, ms := range [][]queue.Message{smalls(8)[:4], smalls(8)[4:]} {
		mustDo(t, second(s.EnqueueBatch(ctx, "mail", ms)))
		for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 4}) {
			mustDo(t, second(s.Fail(ctx, d.Receipt, queue.FailOptions{})))
		}
	}
	var d queue.Delivery
	for _, step := range []struct {
		name   string
		do     func() error
		groups []int
	}{
		{"a purge of an inline one", func() error { return s.Purge(ctx, "m007", queue.PurgeOptions{}) }, []int{1}},
		{"an enqueue that seals", func() error { return second(s.Enqueue(ctx, "mail", small("m003"))) }, []int{5, 1}},
		{"an enqueue that seals nothing", func() error { return second(s.Enqueue(ctx, "mail", small("m004"))) }, []int{3, 1}},
		{"claim", func() (err error) { d = mustClaim(t, s, "mail", queue.ClaimOptions{})[0]; return nil }, []int{1}},
		{"a name that is taken", func() error { s.Fail(ctx, d.Receipt, queue.FailOptions{}); return nil }, nil},
		{"fail", func() error { return second(s.Fail(ctx, d.Receipt, queue.FailOptions{As: "x"})) }, []int{1}},
		{"a purge of a sealed one", func() error { return s.Purge(ctx, "m000", queue.PurgeOptions{}) }, []int{1}},
		{"reprocess a sealed one", func() error { return s.Reprocess(ctx, "m001", queue.ReprocessOptions{}) }, []int{1}},
	} {
		w.Arm(crashtest.Plan{})
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		want := step.groups
		if want != nil {
			want = budget(s, false, want...)
		}
		if groups := syncGroups(w); !slices.Equal(groups, want) {
			t.Errorf("%s: sync groups %v, want %v\n%s", step.name, groups, want, w.Trace())
		}
	}
	if runs, sealed := failedRunsOf(t, s, ""); len(runs) != 1 || sealed != 3 {
		t.Errorf("%d runs with %d messages", len(runs), sealed)
	}
}
