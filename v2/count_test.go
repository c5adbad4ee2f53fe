//go:build unix

package holdfast

import (
	"fmt"
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

// The sync budget of each call: how many syncs, and how they were grouped. All but
// the last of an enqueue run at the same time.
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
	for _, step := range []struct {
		name   string
		do     func() error
		groups []int // syncs submitted together, in order
	}{
		{"enqueue", func() error { _, err := s.Enqueue(ctx, "mail", small("a")); return err }, []int{4, 1}},
		{"enqueue batch", func() error { _, err := s.EnqueueBatch(ctx, "mail", smalls(100)); return err }, []int{4, 1}},
		{"enqueue refused", func() error { s.Enqueue(ctx, "mail", small("a")); return nil }, nil},
		{"claim one", claim(1), []int{1, 1}},
		{"ack", func() error { return s.Ack(ctx, d[0].Receipt) }, []int{1, 1}},
		{"claim many", claim(50), []int{1, 1}},
		{"release", func() error { return s.Release(ctx, d[0].Receipt, queue.ReleaseOptions{}) }, []int{1, 1}},
		{"fail", func() error { _, err := s.Fail(ctx, d[1].Receipt, queue.FailOptions{}); return err }, []int{1, 1}},
		{"load", func() error { _, err := s.Load(ctx, "mail", "m003", queue.LoadOptions{}); return err }, []int{1, 1}},
		{"replace payload", func() error { return s.ReplacePayload(ctx, d[5].Receipt, []byte(`2`)) }, []int{4, 1}},
		{"retry", func() error {
			_, err := s.Retry(ctx, d[6].Receipt, queue.RetryOptions{Delay: time.Hour, Cause: "later"})
			return err
		}, []int{1, 1}},
		{"retry at the cap", func() error {
			_, err := s.Retry(ctx, d[7].Receipt, queue.RetryOptions{MaxFailures: 1})
			return err
		}, []int{1, 1}},
		{"release with a delay", func() error {
			return s.Release(ctx, d[8].Receipt, queue.ReleaseOptions{Delay: time.Hour})
		}, []int{1, 1}},
		{"extend", func() error { _, err := s.Extend(ctx, d[9].Receipt, time.Hour); return err }, []int{1, 1}},
		{"reap nothing", func() error { _, err := s.Reap(ctx, queue.ReapOptions{}); return err }, nil},
		{"reap", func() error { _, err := s.Reap(ctx, queue.ReapOptions{Receipt: &d[10].Receipt}); return err }, []int{1, 1}},
		{"reprocess", func() error { return s.Reprocess(ctx, d[7].Receipt.ID, queue.ReprocessOptions{}) }, []int{1, 1}},
		{"pause", func() error { return s.Pause(ctx, "mail") }, []int{1, 1}},
		{"pause a paused one", func() error { return s.Pause(ctx, "mail") }, nil},
		{"resume", func() error { return s.Resume(ctx, "mail") }, []int{1, 1}},
		{"ack and claim the next", func() error {
			_, err := s.Update(ctx, queue.AckChange{Receipt: d[11].Receipt}, queue.ClaimChange{Queue: "mail"})
			return err
		}, []int{1, 1}},
		{"extend forty at once", func() error {
			var changes []queue.Change
			for _, held := range d[12:50] {
				changes = append(changes, queue.ExtendChange{Receipt: held.Receipt, Lease: time.Hour})
			}
			_, err := s.Update(ctx, changes...)
			return err
		}, []int{1, 1}},
		{"ack, two follow-ups, claim, cursor", func() error {
			_, err := s.Update(ctx, queue.AckChange{Receipt: d[12].Receipt},
				queue.EnqueueChange{Queue: "next", Message: small("x")}, queue.EnqueueChange{Queue: "log", Message: small("y")},
				queue.ClaimChange{Queue: "next"}, queue.CursorChange{Queue: "mail", Cursor: "12"})
			return err
		}, []int{4, 1}},
		{"failed namespace", func() error { return s.SetFailedNamespace(ctx, "mail", "aside") }, []int{1, 1}},
		{"cursor", func() error { _, err := s.Cursor(ctx, "mail"); return err }, nil},
		{"purge", func() error { return s.Purge(ctx, d[1].Receipt.ID, queue.PurgeOptions{}) }, []int{1, 1}},
		{"status", func() error { _, err := s.Status(ctx, queue.StatusOptions{}); return err }, nil},
		{"empty claim", func() error { _, err := s.Claim(ctx, "other", queue.ClaimOptions{}); return err }, nil},
		{"clear", func() error { _, err := s.Clear(ctx, "mail", queue.ClearOptions{}); return err }, []int{1, 1}},
		{"open an import", func() error { return second(s.OpenImport(ctx, "old", imports.Token())) }, []int{1, 1}},
		{"open it again", func() error { return second(s.OpenImport(ctx, "old", imports.Token())) }, nil},
		{"import a batch", func() error { return second(imports.Add(ctx, many...)) }, []int{4, 1}},
		{"import it again", func() error { return second(imports.Add(ctx, many...)) }, nil},
		{"import some more", func() error { return second(imports.Add(ctx, append(many[:9:9], foreign("last", ImportedPending))...)) }, []int{4, 1}},
		{"refused by the import", func() error { s.Claim(ctx, "old", queue.ClaimOptions{}); return nil }, nil},
		{"close the import", func() error { return imports.Close(ctx) }, []int{1, 1}},
		{"close it again", func() error { return imports.Close(ctx) }, nil},
		{"open the closed one", func() error { return second(s.OpenImport(ctx, "old", imports.Token())) }, nil},
		{"open another", func() error {
			imports.token = namedToken("another import")
			return second(s.OpenImport(ctx, "old", imports.Token()))
		}, []int{1, 1}},
		{"abandon it", func() error { return imports.Abandon(ctx) }, []int{1, 1}},
		{"abandon it again", func() error { return imports.Abandon(ctx) }, nil},
		{"collect", func() error { return second(s.Collect(ctx, CollectOptions{})) }, []int{1}},
		{"collect nothing", func() error { return second(s.Collect(ctx, CollectOptions{})) }, []int{1}},
		{"recover nothing", func() error { _, err := s.Recover(ctx); return err }, nil},
	} {
		w.Arm(crashtest.Plan{})
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var groups []int
		for _, g := range w.SyncGroups() {
			groups = append(groups, len(g))
		}
		if fmt.Sprint(groups) != fmt.Sprint(step.groups) {
			t.Errorf("%s: sync groups %v, want %v\n%s", step.name, w.SyncGroups(), step.groups, w.Trace())
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
