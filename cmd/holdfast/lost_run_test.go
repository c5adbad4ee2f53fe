//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// lostRuns gives a store whose queue mail is deep enough for a run, and has enough failed
// messages for one; and both are lost. It gives the numbers of either kind.
func lostRuns(t *testing.T) (s *session, waiting, failed int) {
	t.Helper()
	s = &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
	ctx := t.Context()
	st, err := holdfast.Create(ctx, s.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	enqueue := func(n int) {
		ms := make([]queue.Message, n)
		for i := range ms {
			ms[i].Payload = []byte(`1`)
		}
		if _, err := st.EnqueueBatch(ctx, "mail", ms); err != nil {
			t.Fatal(err)
		}
	}
	waiting, failed = 600, 800
	enqueue(failed)
	c, err := st.Claim(ctx, "mail", queue.ClaimOptions{Max: failed, WithoutHolder: true})
	if err != nil {
		t.Fatal(err)
	}
	var changes []queue.Change
	for _, d := range c.Deliveries {
		changes = append(changes, queue.FailChange{Receipt: d.Receipt, Options: queue.FailOptions{Cause: "no"}})
	}
	if _, err := st.Update(ctx, changes...); err != nil {
		t.Fatal(err)
	}
	enqueue(waiting)
	runs, err := filepath.Glob(filepath.Join(s.dir, ".fs-safe-queue-v2", "objects", "*", "run.json"))
	if err != nil || len(runs) < 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, run := range runs {
		if err := os.Remove(run); err != nil {
			t.Fatal(err)
		}
	}
	return s, waiting, failed
}

// What lies in a run that is lost can be given up, and each error says how: what waits with
// its queue, what has failed by itself. Then the store is whole.
func TestLostRunsAreGivenUp(t *testing.T) {
	s, waiting, failed := lostRuns(t)
	for _, args := range [][]string{{"verify"}, {"ls", "mail"}, {"failed", "ls"}, {"claim", "mail", "-n", "600"}, {"collect"}} {
		got := s.run(args...)
		if got.code != exitOperator || !strings.Contains(got.err, "holdfast clear QUEUE") || !strings.Contains(got.err, "failed purge --lost") || strings.Contains(got.err, "; run: ") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if out := s.must("failed", "purge", "--lost"); !strings.HasPrefix(out, "purged ") || !strings.HasSuffix(out, " lost messages\n") {
		t.Errorf("failed ones: %q", out)
	}
	left := strings.Count(s.must("failed", "ls", "--json"), "\n")
	if left == 0 || left >= failed {
		t.Errorf("%d of %d failed messages are left", left, failed)
	}
	if out := s.must("clear", "mail"); out != fmt.Sprintf("removed %d messages from mail\n", waiting) {
		t.Errorf("waiting ones: %q", out)
	}
	s.must("verify")
	s.must("collect")
	if l := decode[errorLine](t, s.refused(exitNothing, "nothing", "failed", "purge", "--lost").err); l.Run != "holdfast verify --dir "+s.dir {
		t.Errorf("once more: %+v", l)
	}
	s.refused(exitUsage, "usage", "failed", "purge", "--lost", "a")
	s.refused(exitUsage, "usage", "failed", "purge")
}
