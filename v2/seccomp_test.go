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
	"time"

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
			sandbox.Need(t)
			dir := filepath.Join(t.TempDir(), "store")
			lines, err := start(t, "whole life", dir, strings.Join(sandbox.Known(calls), ",")).Rest()
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
	sandbox.Need(t)
	for _, calls := range [][]string{sandbox.Links, sandbox.Android} {
		for _, call := range sandbox.Known(calls) {
			if sandbox.Excepted(call) {
				continue
			}
			_, err := start(t, "forbidden call", strings.Join(sandbox.Known(calls), ","), call).Rest()
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
	first := []lifeStep{
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
	}
	last := []lifeStep{
		{"clear", func() error { _, err := s.Clear(ctx, "mail", queue.ClearOptions{Leased: true}); return err }},
		{"set", func() error { return s.Set(ctx, Settings{OnDeadOwner: AutoRecover}) }},
		{"settings", func() error { _, err := s.Settings(ctx); return err }},
		{"verify", func() error { _, err := s.Verify(ctx, VerifyOptions{}); return err }},
		{"backup", func() error { return second(s.Backup(ctx, dir+"-copy", BackupOptions{})) }},
		{"restore", func() error { return second(Restore(ctx, dir+"-copy", dir+"-restored", nil, RestoreOptions{})) }},
		{"restore again", func() error {
			_, err := Restore(ctx, dir+"-copy", dir+"-restored", nil, RestoreOptions{})
			return mustBe(err, ErrExists)
		}},
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
	}
	for _, step := range slices.Concat(first, lifeOfLeases(ctx, s, dir), last) {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// A lifeStep is a part of a whole life.
type lifeStep struct {
	name string
	do   func() error
}

// lifeOfLeases is everything that brings messages back, moves several at once, or
// waits, in queues of its own.
func lifeOfLeases(ctx context.Context, s *Store, dir string) []lifeStep {
	var held []queue.Delivery
	var next queue.Receipt
	take := func(n int, o queue.ClaimOptions) func() error {
		return func() error {
			o.Max = n
			c, err := s.Claim(ctx, "lease", o)
			held = c.Deliveries
			return errors.Join(err, mustCount(len(held), n))
		}
	}
	reap := func(n int, why queue.ReapCause, o queue.ReapOptions) error {
		rs, err := s.Reap(ctx, o)
		for _, r := range rs {
			if r.Cause != why {
				err = errors.Join(err, fmt.Errorf("%s came back by %s, want %s", r.ID, r.Cause, why))
			}
		}
		return errors.Join(err, mustCount(len(rs), n))
	}
	return []lifeStep{
		{"keys", func() error {
			ms := smalls(6)
			for i := range ms {
				ms[i].Key = []string{"", "k", "l"}[i%3]
			}
			_, err := s.EnqueueBatch(ctx, "lease", ms)
			return err
		}},
		{"scheduled", func() error {
			_, err := s.Enqueue(ctx, "lease", queue.Message{ID: "later", Payload: []byte(`1`), NotBefore: time.Now().Add(time.Hour)})
			return err
		}},
		{"fair claim with a holder", take(4, queue.ClaimOptions{Fair: true, Lease: time.Hour})},
		{"extend", func() error { _, err := s.Extend(ctx, held[0].Receipt, 2*time.Hour); return err }},
		{"retry", func() error {
			_, err := s.Retry(ctx, held[0].Receipt, queue.RetryOptions{Delay: time.Hour, Cause: "c"})
			return err
		}},
		{"retry at the cap", func() error {
			_, err := s.Retry(ctx, held[1].Receipt, queue.RetryOptions{MaxFailures: 1})
			return err
		}},
		{"snooze", func() error { return s.Release(ctx, held[2].Receipt, queue.ReleaseOptions{Delay: time.Hour}) }},
		{"reap one", func() error { return reap(1, queue.ByOperator, queue.ReapOptions{Receipt: &held[3].Receipt}) }},
		{"extend what was reaped", func() error { _, err := s.Extend(ctx, held[3].Receipt, time.Hour); return err }},
		{"reap nothing of the living", func() error { return reap(0, "", queue.ReapOptions{}) }},
		{"reprocess", func() error { return s.Reprocess(ctx, held[1].Receipt.ID, queue.ReprocessOptions{}) }},
		{"holder", func() error {
			file, err := s.Holder(ctx)
			if err != nil {
				return err
			}
			return file.Close()
		}},
		{"reap by proof", func() error {
			claims := leaveDeadHolder(ctx, dir, "lease")
			return errors.Join(claims, reap(1, queue.ByProof, queue.ReapOptions{}))
		}},
		{"failed namespace", func() error { return s.SetFailedNamespace(ctx, "lease", "aside") }},
		{"update", func() error {
			out, err := s.Update(ctx,
				queue.RetryChange{Receipt: held[3].Receipt, Options: queue.RetryOptions{MaxFailures: 1}},
				queue.EnqueueChange{Queue: "next", Message: small("follow-up")},
				queue.ClaimChange{Queue: "next"},
				queue.CursorChange{Queue: "next", Cursor: "offset 42"})
			if err != nil {
				return err
			}
			ds := out[2].Claimed.Deliveries
			if err := mustCount(len(ds), 1); err != nil {
				return err
			}
			next = ds[0].Receipt
			return nil
		}},
		{"refused update", func() error {
			_, err := s.Update(ctx, queue.CursorChange{Queue: "next", Cursor: "43"}, queue.AckChange{Receipt: queue.Receipt{
				Store: s.ID(), Queue: "next", ID: "gone", Generation: "gone", Attempt: 1,
			}})
			return mustBe(err, queue.ErrGone)
		}},
		{"cursor", func() error { _, err := s.Cursor(ctx, "next"); return err }},
		{"pause", func() error { return s.Pause(ctx, "lease") }},
		{"claim of a paused queue", take(0, queue.ClaimOptions{})},
		{"resume", func() error { return s.Resume(ctx, "lease") }},
		{"purge from a namespace", func() error {
			page, err := s.ListFailed(ctx, queue.FailedOptions{Namespace: "aside"}, queue.ListOptions{})
			if err == nil {
				err = mustCount(len(page.Entries), 1)
			}
			if err != nil {
				return err
			}
			return s.Purge(ctx, page.Entries[0].FailedName, queue.PurgeOptions{Namespace: "aside"})
		}},
		{"wait for a message", func() error {
			wait := func(waiter *Store) error { return waiter.WaitDue(ctx, "awaited") }
			return whileParked(ctx, dir, wait, func() error { _, err := s.Enqueue(ctx, "awaited", small("a")); return err })
		}},
		{"wait for the end", func() error {
			wait := func(waiter *Store) error {
				_, err := waiter.Wait(ctx, queue.WaitOptions{Queues: []string{"next"}})
				return err
			}
			return whileParked(ctx, dir, wait, func() error { return s.Ack(ctx, next) })
		}},
	}
}

func mustCount(got, want int) error {
	if got != want {
		return fmt.Errorf("%d messages, want %d", got, want)
	}
	return nil
}

// leaveDeadHolder claims a message for a holder that then dies.
func leaveDeadHolder(ctx context.Context, dir, name string) error {
	var o *Options
	set := ownHolders(&o)
	defer set.die()
	other, err := Open(ctx, dir, o)
	if err != nil {
		return err
	}
	_, err = other.Claim(ctx, name, queue.ClaimOptions{Lease: queue.NoDeadline})
	return errors.Join(err, other.Close())
}

// whileParked makes a change once another handle has looked and found nothing to end
// its waiting. It does not poll: only the event of the change lets it look again.
func whileParked(ctx context.Context, dir string, wait func(waiter *Store) error, change func() error) error {
	waiter, err := Open(ctx, dir, &Options{pollOff: true})
	if err != nil {
		return err
	}
	defer waiter.Close()
	done := make(chan error)
	go func() { done <- wait(waiter) }()
	until(func() bool { return waiter.wake.looks.Load() > 0 })
	return errors.Join(change(), <-done)
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
