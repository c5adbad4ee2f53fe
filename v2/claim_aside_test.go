//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// manyDamaged gives a store with so many damaged messages, m0000 and on, and "whole" behind
// them.
func manyDamaged(t *testing.T, n int, o *Options) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	set := ownHolders(&o)
	s, err := Create(t.Context(), dir, o)
	mustDo(t, err)
	t.Cleanup(func() {
		mustDo(t, s.Close())
		set.die()
	})
	var ms []queue.Message
	for i := range n {
		ms = append(ms, queue.Message{ID: fmt.Sprintf("m%04d", i), Payload: []byte(`1`)})
	}
	mustEnqueue(t, s, "mail", ms...)
	files, err := filepath.Glob(filepath.Join(dir, namespaceDir, objectsDir, "*", payloadFile))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	mustDo(t, os.Remove(files[0]))
	mustEnqueue(t, s, "mail", small("whole"))
	return s
}

// Where very many messages are damaged they are set aside in several holds of the lock, the
// oldest first, others have their turn in between, and the claim comes to the first whole
// one all the same.
func TestClaimOverManyDamaged(t *testing.T) {
	t.Parallel()
	const n = 2*maxAside + 100
	s := manyDamaged(t, n, &Options{prepare: -1})
	before := s.Stats()
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 5})
	mustDo(t, err)
	if len(c.Deliveries) != 1 || c.Deliveries[0].Receipt.ID != "whole" || len(c.Damaged) != n {
		t.Fatalf("%d delivered, %d set aside", len(c.Deliveries), len(c.Damaged))
	}
	for i, d := range c.Damaged {
		if want := fmt.Sprintf("m%04d", i); d.ID != want {
			t.Fatalf("set aside as the %d. is %s, want %s", i, d.ID, want)
		}
	}
	if got := s.Stats().Commits - before.Commits; got != 3 {
		t.Errorf("%d commits, want 3", got)
	}
}

// However many are damaged, one commit sets aside about so many: the claim that comes to the
// bound gives as many as it was asked for, and so does each behind it.
func TestClaimsOverManyDamagedInOneCommit(t *testing.T) {
	t.Parallel()
	s := manyDamaged(t, maxAside+50, &Options{prepare: -1})
	claims := []struct{ max, aside, whole int }{{20, maxAside, 0}, {20, 20, 0}, {1, 1, 0}, {40, 29, 1}}
	var changes []queue.Change
	for _, c := range claims {
		changes = append(changes, queue.ClaimChange{Queue: "mail", Options: queue.ClaimOptions{Max: c.max}})
	}
	out, err := s.Update(t.Context(), changes...)
	mustDo(t, err)
	next := 0
	for i, c := range claims {
		got := out[i].Claimed
		if len(got.Damaged) != c.aside || len(got.Deliveries) != c.whole {
			t.Fatalf("a claim of %d: %d set aside, %d delivered, want %d and %d", c.max, len(got.Damaged), len(got.Deliveries), c.aside, c.whole)
		}
		for _, d := range got.Damaged {
			if want := fmt.Sprintf("m%04d", next); d.ID != want {
				t.Fatalf("set aside %s, want %s", d.ID, want)
			}
			next++
		}
	}
}

// What an error ends between two holds stands and is told; the next claim meets the error.
func TestClaimOverManyDamagedIsEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		plan func() crashtest.Plan
		next error
	}{
		{"by its context", &endsAfter{t.Context(), 1}, func() crashtest.Plan { return crashtest.Plan{} }, context.Canceled},
		{"by the disk", t.Context(), func() crashtest.Plan {
			publications := 0
			return crashtest.FailMatching(func(op fsguard.Op, path string) bool {
				published := op == fsguard.OpRename || op == fsguard.OpExchange
				if published {
					publications++
				}
				return published && publications > 1
			}, syscall.EROFS, 1000)
		}, syscall.EROFS},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
			s := manyDamaged(t, maxAside+10, &Options{prepare: -1, fs: w})
			w.Arm(c.plan())
			got, err := s.Claim(c.ctx, "mail", queue.ClaimOptions{Max: 5})
			if err != nil || len(got.Damaged) != maxAside || len(got.Deliveries) != 0 {
				t.Errorf("%d set aside, %d delivered, %v", len(got.Damaged), len(got.Deliveries), err)
			}
			if _, err := s.Claim(c.ctx, "mail", queue.ClaimOptions{}); !errors.Is(err, c.next) {
				t.Errorf("the next claim: %v, want %v", err, c.next)
			}
			w.Arm(crashtest.Plan{})
			if _, err := s.Recover(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An endsAfter is over when it was asked so many times.
type endsAfter struct {
	context.Context
	asks int
}

func (c *endsAfter) Err() error {
	if c.asks--; c.asks < 0 {
		return context.Canceled
	}
	return nil
}
