//go:build linux

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
	"example.com/holdfast/queue"
)

func init() {
	roles["whole life"] = wholeLifeUnderFilter
	roles["forbidden call"] = forbiddenCall
}

// The store lives its whole life under a filter that kills the process at the first
// call of a kind.
func TestForbiddenCallsAreNotMade(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string][]string{"links": sandbox.Links, "android": sandbox.Android} {
		t.Run(name, func(t *testing.T) {
			needSeccomp(t)
			dir := filepath.Join(t.TempDir(), "store")
			lines, err := start(t, "whole life", dir, strings.Join(sandbox.Known(calls), ",")).rest()
			if err != nil || !slices.Equal(lines, []string{"done"}) {
				t.Fatalf("under the filter: %v (signal %v) %q", err, killedBy(err), lines)
			}
			mustVerify(t, dir)
		})
	}
}

// The filters are real: each of the calls kills the process that makes it.
func TestForbiddenCallsKill(t *testing.T) {
	t.Parallel()
	needSeccomp(t)
	for _, calls := range [][]string{sandbox.Links, sandbox.Android} {
		for _, call := range sandbox.Known(calls) {
			if sandbox.Excepted(call) {
				continue
			}
			_, err := start(t, "forbidden call", strings.Join(sandbox.Known(calls), ","), call).rest()
			if got := killedBy(err); got != syscall.SIGSYS {
				t.Errorf("%s: %v (signal %v), want SIGSYS", call, err, got)
			}
		}
	}
	for _, call := range []string{"linkat", "symlinkat", "openat2", "faccessat2", "fchmodat2", "statx"} {
		if len(sandbox.Known([]string{call})) == 0 {
			t.Errorf("%s has no number here", call)
		}
	}
}

// wholeLifeUnderFilter takes a directory for a store and the calls that kill.
func wholeLifeUnderFilter(args []string) error {
	if err := sandbox.Kill(strings.Split(args[1], ",")); err != nil {
		return err
	}
	if err := wholeLife(context.Background(), args[0]); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// wholeLife does everything with a store that can be done with one.
func wholeLife(ctx context.Context, dir string) error {
	s, err := Create(ctx, dir, nil)
	if err != nil {
		return err
	}
	var held []queue.Delivery
	take := func(n int) func() error {
		return func() error {
			c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: n, Lease: queue.NoDeadline, WithoutHolder: true})
			held = c.Deliveries
			if err == nil && len(held) != n {
				err = fmt.Errorf("%d deliveries, want %d", len(held), n)
			}
			return err
		}
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"create again", func() error { _, err := Create(ctx, dir, nil); return mustBe(err, ErrExists) }},
		{"resume", func() error { _, err := ResumeCreate(ctx, dir, nil); return mustBe(err, ErrExists) }},
		{"enqueue", func() error { _, err := s.Enqueue(ctx, "mail", small("a")); return err }},
		{"duplicate", func() error { _, err := s.Enqueue(ctx, "mail", small("a")); return mustBe(err, queue.ErrDuplicate) }},
		{"without an ID", func() error { _, err := s.Enqueue(ctx, "mail", queue.Message{Payload: []byte(`1`)}); return err }},
		{"large", func() error {
			_, err := s.Enqueue(ctx, "mail", queue.Message{Payload: []byte(`"` + strings.Repeat("x", 2*smallPayload) + `"`)})
			return err
		}},
		{"batch", func() error { _, err := s.EnqueueBatch(ctx, "mail", smalls(200)); return err }},
		{"grow the reserve", func() error {
			ms := smalls(2000)
			for i := range ms {
				ms[i].ID += "-more"
			}
			_, err := s.EnqueueBatch(ctx, "more", ms)
			return err
		}},
		{"claim", take(6)},
		{"ack", func() error { return s.Ack(ctx, held[0].Receipt) }},
		{"release", func() error { return s.Release(ctx, held[1].Receipt, queue.ReleaseOptions{}) }},
		{"fail", func() error { _, err := s.Fail(ctx, held[3].Receipt, queue.FailOptions{Cause: "c"}); return err }},
		{"replace payload", func() error { return s.ReplacePayload(ctx, held[4].Receipt, []byte(`[2]`)) }},
		{"load", func() error {
			_, err := s.Load(ctx, "mail", held[4].Receipt.ID, queue.LoadOptions{})
			return err
		}},
		{"stale", func() error { return mustBe(s.Ack(ctx, held[4].Receipt), queue.ErrStale) }},
		{"status", func() error { _, err := s.Status(ctx, queue.StatusOptions{Orphans: true}); return err }},
		{"peek", func() error { _, err := s.Peek(ctx, "mail", 5); return err }},
		{"list", func() error { _, err := s.List(ctx, "mail", queue.ListOptions{}); return err }},
		{"show", func() error { _, err := s.Show(ctx, "mail", held[4].Receipt.ID); return err }},
		{"list failed", func() error { _, err := s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{}); return err }},
		{"show failed", func() error {
			_, err := s.ShowFailed(ctx, held[3].Receipt.ID, queue.FailedOptions{})
			return err
		}},
		{"purge", func() error { return s.Purge(ctx, held[3].Receipt.ID, queue.PurgeOptions{}) }},
		{"clear", func() error { _, err := s.Clear(ctx, "mail", queue.ClearOptions{Leased: true}); return err }},
		{"set", func() error { return s.Set(ctx, Settings{OnDeadOwner: AutoRecover}) }},
		{"settings", func() error { _, err := s.Settings(ctx); return err }},
		{"verify", func() error { _, err := s.Verify(ctx, VerifyOptions{}); return err }},
		{"die inside a commit", func() error { return leaveDeadOwner(dir) }},
		{"go on by the consent given", func() error { _, err := s.Enqueue(ctx, "mail", small("b")); return err }},
		{"stop at the next", func() error {
			return errors.Join(s.Set(ctx, Settings{OnDeadOwner: Stop}), leaveDeadOwner(dir))
		}},
		{"refused", func() error { _, err := s.Enqueue(ctx, "mail", small("c")); return mustBe(err, ErrStaleLock) }},
		{"recover", func() error { _, err := s.Recover(ctx); return err }},
		{"close", func() error { return s.Close() }},
		{"reopen", func() error { s, err = OpenOrCreate(ctx, dir, nil); return err }},
		{"go on", func() error { _, err := s.Enqueue(ctx, "mail", small("c")); return err }},
		{"look", func() error {
			look, err := OpenReadOnly(ctx, dir, nil)
			if err != nil {
				return err
			}
			_, err = look.Status(ctx, queue.StatusOptions{})
			return errors.Join(err, look.Close())
		}},
		{"verify from outside", func() error { _, err := VerifyDir(ctx, dir, nil, VerifyOptions{}); return err }},
		{"close again", func() error { return s.Close() }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func mustBe(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("got %v, want %v", err, want)
}

// forbiddenCall takes the calls that kill and the one to make.
func forbiddenCall(args []string) error {
	if err := sandbox.Kill(strings.Split(args[0], ",")); err != nil {
		return err
	}
	return sandbox.Make(args[1])
}

// needSeccomp leaves the test out where no filter can be set.
func needSeccomp(t *testing.T) {
	t.Helper()
	if reason := sandbox.Missing(); reason != "" {
		skip(t, reason)
	}
}
