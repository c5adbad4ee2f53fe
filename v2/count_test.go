//go:build unix

package holdfast

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// counted gives a store on the real filesystem whose operations are counted.
func counted(t *testing.T) (*Store, *crashtest.Wrapper) {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, _ := newTestStore(t, &Options{fs: w})
	t.Cleanup(func() {
		for _, v := range w.Violations() {
			t.Error(v)
		}
	})
	return s, w
}

func small(id string) queue.Message {
	return queue.Message{ID: id, Payload: []byte(`{"id":"` + id + `"}`)}
}

func smalls(n int) []queue.Message {
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = small(fmt.Sprintf("m%03d", i))
	}
	return ms
}

// The sync budget of each call: how many syncs, and how they were grouped.
func TestSyncBudget(t *testing.T) {
	s, w := counted(t)
	ctx := t.Context()
	var d []queue.Delivery
	imports, many := &Import{s: s, token: namedToken("import")}, make([]Imported, 30)
	for i := range many {
		many[i] = foreign(fmt.Sprint("v1-", i), ImportedState(i%3))
	}
	claim := func(n int) func() error {
		return func() error {
			c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: n, Lease: queue.NoDeadline, WithoutHolder: true})
			d = c.Deliveries
			return err
		}
	}
	// The objects first, then the spare.
	one, made := []int{1}, []int{3, 1}
	for _, step := range []struct {
		name   string
		do     func() error
		groups []int // syncs submitted together, in order; without that of the namespace beside a spare
	}{
		{"enqueue", func() error { _, err := s.Enqueue(ctx, "mail", small("a")); return err }, made},
		{"enqueue batch", func() error { _, err := s.EnqueueBatch(ctx, "mail", smalls(100)); return err }, made},
		{"enqueue refused", func() error { s.Enqueue(ctx, "mail", small("a")); return nil }, nil},
		{"claim one", claim(1), one},
		{"ack", func() error { return s.Ack(ctx, d[0].Receipt) }, one},
		{"claim many", claim(50), one},
		{"release", func() error { return s.Release(ctx, d[0].Receipt, queue.ReleaseOptions{}) }, one},
		{"fail", func() error { _, err := s.Fail(ctx, d[1].Receipt, queue.FailOptions{}); return err }, one},
		{"load", func() error { _, err := s.Load(ctx, "mail", "m003", queue.LoadOptions{}); return err }, one},
		{"replace payload", func() error { return s.ReplacePayload(ctx, d[5].Receipt, []byte(`2`)) }, made},
		{"retry", func() error {
			_, err := s.Retry(ctx, d[6].Receipt, queue.RetryOptions{Delay: time.Hour, Cause: "later"})
			return err
		}, one},
		{"retry at the cap", func() error {
			_, err := s.Retry(ctx, d[7].Receipt, queue.RetryOptions{MaxFailures: 1})
			return err
		}, one},
		{"release with a delay", func() error {
			return s.Release(ctx, d[8].Receipt, queue.ReleaseOptions{Delay: time.Hour})
		}, one},
		{"extend", func() error { _, err := s.Extend(ctx, d[9].Receipt, time.Hour); return err }, one},
		{"reap nothing", func() error { _, err := s.Reap(ctx, queue.ReapOptions{}); return err }, nil},
		{"reap", func() error { _, err := s.Reap(ctx, queue.ReapOptions{Receipt: &d[10].Receipt}); return err }, one},
		{"reprocess", func() error { return s.Reprocess(ctx, d[7].Receipt.ID, queue.ReprocessOptions{}) }, one},
		{"pause", func() error { return s.Pause(ctx, "mail") }, one},
		{"pause a paused one", func() error { return s.Pause(ctx, "mail") }, nil},
		{"resume", func() error { return s.Resume(ctx, "mail") }, one},
		{"ack and claim the next", func() error {
			_, err := s.Update(ctx, queue.AckChange{Receipt: d[11].Receipt}, queue.ClaimChange{Queue: "mail"})
			return err
		}, one},
		{"extend forty at once", func() error {
			var changes []queue.Change
			for _, held := range d[12:50] {
				changes = append(changes, queue.ExtendChange{Receipt: held.Receipt, Lease: time.Hour})
			}
			_, err := s.Update(ctx, changes...)
			return err
		}, one},
		{"ack, two follow-ups, claim, cursor", func() error {
			_, err := s.Update(ctx, queue.AckChange{Receipt: d[12].Receipt},
				queue.EnqueueChange{Queue: "next", Message: small("x")}, queue.EnqueueChange{Queue: "log", Message: small("y")},
				queue.ClaimChange{Queue: "next"}, queue.CursorChange{Queue: "mail", Cursor: "12"})
			return err
		}, made},
		{"failed namespace", func() error { return s.SetFailedNamespace(ctx, "mail", "aside") }, one},
		{"cursor", func() error { _, err := s.Cursor(ctx, "mail"); return err }, nil},
		{"purge", func() error { return s.Purge(ctx, d[1].Receipt.ID, queue.PurgeOptions{}) }, one},
		{"status", func() error { _, err := s.Status(ctx, queue.StatusOptions{}); return err }, nil},
		{"empty claim", func() error { _, err := s.Claim(ctx, "other", queue.ClaimOptions{}); return err }, nil},
		{"clear", func() error { _, err := s.Clear(ctx, "mail", queue.ClearOptions{}); return err }, one},
		{"open an import", func() error { return second(s.OpenImport(ctx, "old", imports.Token())) }, one},
		{"open it again", func() error { return second(s.OpenImport(ctx, "old", imports.Token())) }, nil},
		{"import a batch", func() error { return second(imports.Add(ctx, many...)) }, made},
		{"import it again", func() error { return second(imports.Add(ctx, many...)) }, nil},
		{"import some more", func() error { return second(imports.Add(ctx, append(many[:9:9], foreign("last", ImportedPending))...)) }, made},
		{"refused by the import", func() error { s.Claim(ctx, "old", queue.ClaimOptions{}); return nil }, nil},
		{"close the import", func() error { return imports.Close(ctx) }, one},
		{"close it again", func() error { return imports.Close(ctx) }, nil},
		{"open the closed one", func() error { return second(s.OpenImport(ctx, "old", imports.Token())) }, nil},
		{"open another", func() error {
			imports.token = namedToken("another import")
			return second(s.OpenImport(ctx, "old", imports.Token()))
		}, one},
		{"abandon it", func() error { return imports.Abandon(ctx) }, one},
		{"abandon it again", func() error { return imports.Abandon(ctx) }, nil},
		{"collect", func() error { return second(s.Collect(ctx, CollectOptions{})) }, []int{1}},
		{"collect nothing", func() error { return second(s.Collect(ctx, CollectOptions{})) }, []int{1}},
		{"recover nothing", func() error { _, err := s.Recover(ctx); return err }, nil},
	} {
		w.Arm(crashtest.Plan{})
		before := s.commits.Load()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		want := step.groups
		if s.commits.Load() > before {
			want = budget(s, before == 0, want...)
		}
		if got := syncGroups(w); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: sync groups %v, want %v\n%s", step.name, w.SyncGroups(), want, w.Trace())
		}
	}
}

// budget gives the groups of syncs that a commit takes: objects, spare; and where it is the
// first of the store, whose names it makes durable, or where commits replace, the namespace.
func budget(s *Store, first bool, groups ...int) []int {
	if first && s.cached.st.exchange {
		return append(groups, 1)
	}
	if !s.cached.st.exchange { // and all but the last sync at once
		all := 0
		for _, n := range groups {
			all += n
		}
		return []int{all, 1}
	}
	return groups
}

// syncsBesideNames tells how many syncs one commit took, but that of the namespace.
func syncsBesideNames(s *Store, w *crashtest.Wrapper) (n int) {
	for _, g := range syncGroups(w) {
		n += g
	}
	if !s.cached.st.exchange {
		n--
	}
	return n
}

// syncGroups tells how many files and directories were synced together, in order, without
// the namespace where that was synced beside a spare, and without what lengthens the spares.
func syncGroups(w *crashtest.Wrapper) []int {
	groups := []int{}
	lengthened := false
	for i, g := range w.SyncGroups() {
		n := len(g)
		switch {
		case i == 0 && n == 1 && g[0] == namespaceDir && len(w.SyncGroups()) > 1:
			lengthened = true
			continue
		case lengthened:
			n -= len(slices.DeleteFunc(slices.Clone(g), func(path string) bool { return !isSparePath(path) }))
			lengthened = false
		case n > 1 && slices.Contains(g, namespaceDir):
			n--
		}
		groups = append(groups, n)
	}
	return groups
}

// Every third commit syncs the namespace beside its spare, and no other one does.
func TestNamesAreSyncedInTime(t *testing.T) {
	s, w := counted(t)
	if !s.cached.st.exchange {
		skip(t, "names cannot be exchanged here")
	}
	mustEnqueue(t, s, "mail", small("first"))
	for range 12 {
		w.Arm(crashtest.Plan{})
		mustDo(t, s.SetFailedNamespace(t.Context(), "mail", fmt.Sprint("x", s.seen.revision)))
		groups := w.SyncGroups()
		if revision := s.seen.revision; len(groups) != 1 || slices.Contains(groups[0], namespaceDir) != (revision%3 == 0) {
			t.Errorf("revision %d: %v", revision, groups)
		}
	}
}

// A further object costs two syncs more: its file and its directory.
func TestSyncBudgetOfSeveralObjects(t *testing.T) {
	s, w := counted(t)
	big := queue.Message{ID: "big", Payload: []byte(`"` + strings.Repeat("x", smallPayload) + `"`)}
	w.Arm(crashtest.Plan{})
	if _, err := s.EnqueueBatch(t.Context(), "mail", []queue.Message{small("a"), big, small("b")}); err != nil {
		t.Fatal(err)
	}
	if got := w.Syncs(); got != 7 {
		t.Errorf("%d syncs, want 7:\n%s", got, w.Trace())
	}
}

// An unchanged state is not parsed again: not after the handle's own commits, nor
// by looks; one foreign commit costs one parse.
func TestUnchangedStateIsNotParsedAgain(t *testing.T) {
	s, dir := newTestStore(t, nil)
	other, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	before := s.parses.Load()
	for i := range 20 {
		if _, err := s.Enqueue(t.Context(), "mail", small(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.parses.Load() - before; got != 0 {
		t.Errorf("%d parses over own commits, want 0", got)
	}
	if _, err := other.Enqueue(t.Context(), "mail", small("other")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.parses.Load() - before; got != 1 {
		t.Errorf("%d parses after one foreign commit, want 1", got)
	}
}

// Many concurrent enqueues share commits.
func TestGroupCommit(t *testing.T) {
	s, _ := newTestStore(t, nil)
	before := s.commits.Load()
	const callers = 64
	var wg sync.WaitGroup
	start := make(chan struct{})
	errs := make(chan error, callers)
	for i := range callers {
		wg.Go(func() {
			<-start
			_, err := s.Enqueue(t.Context(), "mail", small(fmt.Sprint(i)))
			errs <- err
		})
	}
	close(start)
	wg.Wait()
	for range callers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	commits := s.commits.Load() - before
	t.Logf("%d concurrent enqueues took %d commits", callers, commits)
	if commits > callers/4 {
		t.Errorf("%d commits for %d concurrent enqueues", commits, callers)
	}
}
