//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// The scenarios of runs of failed messages. Blocks are of two.

// withFailures is a store with seven failed messages, which all stand inline: nothing was
// enqueued since.
func withFailures(t testing.TB, _ *crashtest.Disk, s *Store) {
	for _, ids := range [][]string{{"a", "b", "c", "d"}, {"e", "f", "g"}} {
		var ms []queue.Message
		for _, id := range ids {
			ms = append(ms, small(id))
		}
		_, err := s.EnqueueBatch(t.Context(), "mail", ms)
		mustDo(t, err)
		c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: len(ids)})
		mustDo(t, err)
		for _, d := range c.Deliveries {
			_, err := s.Fail(t.Context(), d.Receipt, queue.FailOptions{Cause: "broken"})
			mustDo(t, err)
		}
	}
}

// withFailedRun is withFailures after an enqueue, of b again, which is claimed.
func withFailedRun(t testing.TB, d *crashtest.Disk, s *Store) {
	withFailures(t, d, s)
	_, err := s.Enqueue(t.Context(), "mail", small("b"))
	mustDo(t, err)
	_, err = s.Claim(t.Context(), "mail", queue.ClaimOptions{Lease: queue.NoDeadline, Label: "w"})
	mustDo(t, err)
	if f := s.cached.st.failed[0]; len(f.runs) != 1 || f.runs[0].live() != 5 {
		t.Fatalf("sealed is %+v", f)
	}
}

// withLostRun is withFailedRun whose run is gone from the disk.
func withLostRun(t testing.TB, d *crashtest.Disk, s *Store) {
	withFailedRun(t, d, s)
	d.Remove(crashDir + "/" + namespaceDir + "/" + runPath(s.cached.st.failed[0].runs[0].name))
}

var failedRunScenarios = []crashScenario{
	{name: "run-failed-seal", setup: withFailures, steps: []crashStep{put(small("after"))}},
	{name: "run-failed-settle", setup: withFailedRun, steps: []crashStep{
		func(ctx context.Context, s *Store, _ receipts) error {
			return s.Purge(ctx, "d", queue.PurgeOptions{})
		},
		func(ctx context.Context, s *Store, _ receipts) error {
			return s.Reprocess(ctx, "a", queue.ReprocessOptions{})
		},
	}},
	{name: "run-failed-taken", setup: withFailedRun, steps: []crashStep{
		settle("b", func(ctx context.Context, s *Store, r queue.Receipt) error {
			if _, err := s.Fail(ctx, r, queue.FailOptions{}); !errors.Is(err, queue.ErrFailedExists) {
				return fmt.Errorf("failed under a name that is taken: %w", err)
			}
			_, err := s.Fail(ctx, r, queue.FailOptions{As: "b2"})
			return err
		}),
	}},
}
