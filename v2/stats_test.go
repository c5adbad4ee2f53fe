//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// minus is what was counted since before.
func (s Stats) minus(before Stats) Stats {
	return Stats{
		Calls: s.Calls - before.Calls, Rounds: s.Rounds - before.Rounds, LargestRound: s.LargestRound,
		Commits: s.Commits - before.Commits, Retries: s.Retries - before.Retries, Uncertain: s.Uncertain - before.Uncertain,
		LockWaits: s.LockWaits - before.LockWaits, Parses: s.Parses - before.Parses, Syncs: s.Syncs - before.Syncs,
		BytesWritten: s.BytesWritten - before.BytesWritten, ObjectsMade: s.ObjectsMade - before.ObjectsMade,
		ObjectsPrepared: s.ObjectsPrepared - before.ObjectsPrepared, PreparedUsed: s.PreparedUsed - before.PreparedUsed,
		RunsSealed: s.RunsSealed - before.RunsSealed, RunsRead: s.RunsRead - before.RunsRead, LastRevision: s.LastRevision,
	}
}

// What each call adds, counted; the syncs are those that the filesystem was asked for.
func TestStats(t *testing.T) {
	s, w := counted(t)
	ctx := t.Context()
	var d queue.Delivery
	revision := s.Stats().LastRevision
	for _, step := range []struct {
		name     string
		do       func() error
		commits  uint64
		made     uint64
		payloads uint64 // the least that was written besides the state
	}{
		{"enqueue", func() error { _, err := s.Enqueue(ctx, "mail", small("a")); return err }, 1, 1, 10},
		{"a batch of one object", func() error { _, err := s.EnqueueBatch(ctx, "mail", smalls(20)); return err }, 1, 1, 20 * 13},
		{"status", func() error { _, err := s.Status(ctx, queue.StatusOptions{}); return err }, 0, 0, 0},
		{"claim", func() error {
			c, err := s.Claim(ctx, "mail", queue.ClaimOptions{WithoutHolder: true})
			d = c.Deliveries[0]
			return err
		}, 1, 0, 0},
		{"a claim that finds nothing", func() error { _, err := s.Claim(ctx, "empty", queue.ClaimOptions{WithoutHolder: true}); return err }, 0, 0, 0},
		{"ack", func() error { return s.Ack(ctx, d.Receipt) }, 1, 0, 0},
		{"a refused ack", func() error {
			if err := s.Ack(ctx, d.Receipt); err == nil {
				return fmt.Errorf("it was taken twice")
			}
			return nil
		}, 0, 0, 0},
	} {
		t.Run(step.name, func(t *testing.T) {
			before := s.Stats()
			w.Arm(crashtest.Plan{})
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			got := s.Stats().minus(before)
			revision += step.commits
			if (got.Syncs > 0) != (step.commits > 0) {
				t.Errorf("%d syncs for %d commits", got.Syncs, step.commits)
			}
			want := Stats{
				Calls: 1, Rounds: 1, LargestRound: 1, Commits: step.commits, Syncs: uint64(w.Syncs()), ObjectsMade: step.made,
				LastRevision: got.LastRevision, BytesWritten: got.BytesWritten,
			}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if least := step.payloads + 100*step.commits; got.BytesWritten < least || got.BytesWritten > 10*least+8192*step.commits {
				t.Errorf("%d bytes written, want some more than %d", got.BytesWritten, least)
			}
			if step.commits == 0 && got.BytesWritten != 0 {
				t.Errorf("%d bytes written by what changes nothing", got.BytesWritten)
			}
		})
	}
	st, err := s.Status(ctx, queue.StatusOptions{})
	if err != nil || s.Stats().LastRevision != st.Revision {
		t.Errorf("last revision %d, the store's is %d, %v", s.Stats().LastRevision, st.Revision, err)
	}
}

// Objects that were made ahead are counted when they are made, and when they are used.
func TestStatsOfPreparedObjects(t *testing.T) {
	s, _ := newTestStore(t, &Options{prepare: 1, gather: -1})
	for i := range 4 { // the second prepares one, for two
		mustEnqueue(t, s, "mail", small(fmt.Sprint(i)))
	}
	if got := s.Stats(); got.ObjectsMade != 2 || got.ObjectsPrepared != 1 || got.PreparedUsed != 2 {
		t.Errorf("made %d, prepared %d, used %d; want 2, 1, 2", got.ObjectsMade, got.ObjectsPrepared, got.PreparedUsed)
	}
}

func TestStatsOfRuns(t *testing.T) {
	s, dir := newTestStore(t, &Options{block: 2})
	mustEnqueue(t, s, "mail", smalls(20)...)
	if got := s.Stats(); got.RunsSealed == 0 || got.RunsRead != 0 {
		t.Errorf("%d runs sealed, %d read; want some and none", got.RunsSealed, got.RunsRead)
	}
	other, err := Open(t.Context(), dir, &Options{block: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	mustClaim(t, other, "mail", queue.ClaimOptions{Max: 20, WithoutHolder: true})
	if got, sealed := other.Stats(), s.Stats().RunsSealed; got.RunsRead != sealed || got.RunsSealed != 0 {
		t.Errorf("another handle read %d runs and sealed %d; want %d and none", got.RunsRead, got.RunsSealed, sealed)
	}
}

// Calls that wait together are one round; the first of them found the lock taken.
func TestStatsOfAGroup(t *testing.T) {
	t.Parallel()
	w, first := newWaiter(t, t.Context())
	before := w.Stats() // its first call waits
	const callers = 20
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if _, err := w.Enqueue(t.Context(), "mail", small(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	until(func() bool { return w.queued() == callers+1 })
	w.lock.unlock(t)
	wg.Wait()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	got := w.Stats().minus(before)
	if got.Calls != callers+1 || got.Rounds != 1 || got.LargestRound != callers+1 || got.Commits != 1 {
		t.Errorf("%d calls in %d rounds of at most %d, %d commits", got.Calls, got.Rounds, got.LargestRound, got.Commits)
	}
	if waits := w.Stats().LockWaits; waits != 1 {
		t.Errorf("%d waits for the lock, want 1", waits)
	}
}

// A commit of another handle costs one parse. One that fails before its commit point counts
// nothing, one whose last sync fails is uncertain, and then recovered by the next call.
func TestStatsOfTrouble(t *testing.T) {
	s, w := counted(t)
	mustEnqueue(t, s, "mail", small("a"))
	other, err := Open(t.Context(), s.Dir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	mustEnqueue(t, other, "mail", small("b"))
	for _, c := range []struct {
		name  string
		match func(fsguard.Op, string) bool
		want  Stats
	}{
		{"before the commit point", isCommitPoint, Stats{Calls: 2, Rounds: 2, Commits: 1, Parses: 1}},
		{"behind it", lastSync(), Stats{Calls: 2, Rounds: 2, Commits: 2, Uncertain: 1, Parses: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Stats()
			loseSpares(s) // so that there is one behind it
			w.Arm(crashtest.FailMatching(c.match, syscall.EIO, 1))
			if _, err := s.Enqueue(t.Context(), "mail", queue.Message{Payload: []byte("1")}); !errors.Is(err, syscall.EIO) {
				t.Fatalf("got %v, want EIO", err)
			}
			w.Arm(crashtest.Plan{})
			mustEnqueue(t, s, "mail", queue.Message{Payload: []byte("2")})
			got := s.Stats().minus(before)
			got = Stats{Calls: got.Calls, Rounds: got.Rounds, Commits: got.Commits, Uncertain: got.Uncertain, Parses: got.Parses}
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// What is full costs a retry: the enqueue is refused, and the settlement beside it goes on.
func TestStatsOfRetries(t *testing.T) {
	s, w := counted(t)
	mustEnqueue(t, s, "mail", small("a"))
	before := s.Stats()
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpMkdir }, syscall.ENOSPC, 1))
	if _, err := s.Enqueue(t.Context(), "mail", small("b")); !errors.Is(err, queue.ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	if got := s.Stats().minus(before); got.Retries != 1 || got.Commits != 0 {
		t.Errorf("%d retries and %d commits, want 1 and 0", got.Retries, got.Commits)
	}
}
