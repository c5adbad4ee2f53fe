//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

func init() {
	roles["claim and die"] = claimAndDie
	roles["die uncertain"] = dieUncertain
}

// T01: the same bytes at every stage.
func TestTrial01PayloadBytes(t *testing.T) {
	s, dir := newTestStore(t, nil)
	ctx := t.Context()
	payload := `{ "b":9007199254740993, "a":1.0, "z":-0, "e":1e400, "s":"<a&b>` + "\u2028" + `" }`
	same := func(stage string, got []byte) {
		t.Helper()
		if string(got) != payload {
			t.Errorf("%s: %q, want %q", stage, got, payload)
		}
	}
	for _, beside := range []int{0, 2} { // alone in its object, and in an array with others
		ms := append(smalls(beside), queue.Message{ID: "x", Payload: []byte(payload)})
		if _, err := s.EnqueueBatch(ctx, "mail", ms); err != nil {
			t.Fatal(err)
		}
		peeked, err := s.Peek(ctx, "mail", 3)
		if err != nil {
			t.Fatal(err)
		}
		same("peek", peeked[beside].Payload)
		shown, err := s.Show(ctx, "mail", "x")
		if err != nil {
			t.Fatal(err)
		}
		same("show", shown[0].Payload)
		c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: 3})
		if err != nil {
			t.Fatal(err)
		}
		d := c.Deliveries[beside]
		same("claim", d.Payload)
		if err := s.Release(ctx, d.Receipt, queue.ReleaseOptions{}); err != nil {
			t.Fatal(err)
		}
		other, err := Open(ctx, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d, err = other.Load(ctx, "mail", "x", queue.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		same("load, from another handle", d.Payload)
		as := fmt.Sprint("x", beside)
		if _, err := other.Fail(ctx, d.Receipt, queue.FailOptions{As: as}); err != nil {
			t.Fatal(err)
		}
		failed, err := other.ShowFailed(ctx, as, queue.FailedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		same("show failed", failed.Payload)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// T07: whatever record stands in a free lock, its owner did not finish. It is never
// stolen, and never judged by a pid.
func TestTrial07RecordInTheLock(t *testing.T) {
	tok := token{1, 2, 3}
	now := systemClock{}.Now()
	owner := func(pid int, uncertain bool) string {
		o := newOwner(tok, now)
		o.PID, o.Uncertain = pid, uncertain
		return string(encodeRecord(o))
	}
	for name, record := range map[string]string{
		"our own pid, another token": owner(os.Getpid(), false),
		"a living pid":               owner(os.Getppid(), false),
		"no such pid":                owner(1<<31-1, false),
		"uncertain":                  owner(os.Getpid(), true),
		"empty":                      "",
		"cut":                        owner(7, false)[:40],
		"one byte short":             blankRecord[1:],
		"unparseable":                strings.Repeat("x", recordSize),
		"zeros":                      strings.Repeat("\x00", recordSize),
	} {
		t.Run(name, func(t *testing.T) {
			for _, consent := range []OnDeadOwner{Stop, AutoRecover} {
				s, dir := newTestStore(t, &Options{OnDeadOwner: consent})
				ctx := t.Context()
				if _, err := s.Enqueue(ctx, "mail", small("before")); err != nil {
					t.Fatal(err)
				}
				lock := openLock(t, dir)
				if err := os.WriteFile(lock.file.Name(), []byte(record), 0o600); err != nil {
					t.Fatal(err)
				}
				want, _ := decodeRecord([]byte(record))
				if consent == Stop {
					mustStop(t, s, lock, want)
					if r, err := s.Recover(ctx); err != nil || r.Owner == nil || *r.Owner != want {
						t.Fatalf("recover: %+v %v", r, err)
					}
				}
				// Recovered, or free to do so: a look does it as well as a call.
				if st, err := s.Status(ctx, queue.StatusOptions{}); err != nil || !st.Settled || st.Owner != nil || st.Queues["mail"].Ready != 1 {
					t.Fatalf("status: %+v %v", st, err)
				}
				if _, err := s.Enqueue(ctx, "mail", small("after")); err != nil {
					t.Fatal(err)
				}
				if lock.record(t) != blankRecord {
					t.Errorf("the record is %q", lock.record(t))
				}
				if s.cached.st.recoveries != 1 {
					t.Errorf("%d recoveries were counted", s.cached.st.recoveries)
				}
			}
		})
	}
}

// mustStop checks that nothing moves under the record of want, and that all say so.
func mustStop(t *testing.T, s *Store, lock outside, want queue.Owner) {
	t.Helper()
	ctx := t.Context()
	record := lock.record(t)
	for range 2 {
		_, err := s.Enqueue(ctx, "mail", small("x"))
		var stale *StaleLockError
		if !errors.Is(err, ErrStaleLock) || !errors.As(err, &stale) || stale.Owner != want {
			t.Fatalf("enqueue: %v, want the owner %+v", err, want)
		}
		if want.Token != "" && (!strings.Contains(err.Error(), fmt.Sprint(want.PID)) || !strings.Contains(err.Error(), want.Since.Format("15:04:05"))) {
			t.Errorf("%q does not name the owner and since when", err)
		}
	}
	st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{"nothing"}})
	if err != nil || st.Settled || st.Complete() || st.Owner == nil || *st.Owner != want {
		t.Errorf("status: %+v %v", st, err)
	}
	if got := lock.record(t); got != record {
		t.Errorf("the record %q has become %q", record, got)
	}
}

// T07: the record of an owner that lives is never taken, consent or not: who wants
// the lock waits, as long as its context lets it. When it dies, its record says who.
func TestTrial07LiveOwner(t *testing.T) {
	s, dir := newTestStore(t, &Options{OnDeadOwner: AutoRecover})
	lock := openLock(t, dir)
	lock.lock(t)
	tok := token{9}
	if _, err := lock.file.WriteAt(encodeRecord(newOwner(tok, systemClock{}.Now())), 0); err != nil {
		t.Fatal(err)
	}
	before := lock.record(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Enqueue(ctx, "mail", small("a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("enqueue: %v", err)
	}
	if _, err := s.Recover(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("recover: %v", err)
	}
	if got := lock.record(t); got != before {
		t.Errorf("the record is now %q", got)
	}
	lock.unlock(t) // dead, to all others
	if _, err := s.Enqueue(t.Context(), "mail", small("a")); err != nil {
		t.Error(err)
	}
}

// claimAndDie takes a directory, claims four messages, prints their receipts and
// waits for its death.
func claimAndDie(args []string) error {
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	for _, lease := range []time.Duration{queue.NoDeadline, time.Minute} {
		c, err := s.Claim(context.Background(), "mail", queue.ClaimOptions{Max: 2, Lease: lease})
		if err != nil {
			return err
		}
		for _, d := range c.Deliveries {
			fmt.Println(d.Receipt)
		}
	}
	crashtest.KillSelf()
	return nil
}

// T09, the store's part: the four messages that a killed process had claimed are
// there and come back, those with a deadline when it has passed.
func TestTrial09KilledWithClaims(t *testing.T) {
	at := systemClock{}.Now()
	clock := &setClock{at: at}
	s, dir := newTestStore(t, &Options{clock: clock})
	ctx := t.Context()
	if _, err := s.EnqueueBatch(ctx, "mail", smalls(100)); err != nil {
		t.Fatal(err)
	}
	lines, err := start(t, "claim and die", dir).rest()
	if killedBy(err) != unix.SIGKILL || len(lines) != 4 {
		t.Fatalf("%v %q", err, lines)
	}
	st, err := s.Status(ctx, queue.StatusOptions{})
	if q := st.Queues["mail"]; err != nil || !st.Settled || q.Processing != 4 || q.Pending != 96 || q.Overdue != 0 {
		t.Fatalf("status: %+v %v", st, err)
	}
	for i, line := range lines {
		old, err := queue.ParseReceipt(line)
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			if _, err := s.Load(ctx, "mail", old.ID, queue.LoadOptions{}); !errors.Is(err, queue.ErrLeased) {
				t.Errorf("before the deadline: %v", err)
			}
			clock.set(at.Wall.Add(2*time.Minute), at.BootID, at.Boot+2*time.Minute)
			if st, err := s.Status(ctx, queue.StatusOptions{}); err != nil || st.Queues["mail"].Overdue != 2 {
				t.Errorf("after the deadline: %+v %v", st, err)
			}
		}
		d, err := s.Load(ctx, "mail", old.ID, queue.LoadOptions{})
		if err != nil || d.Receipt.Generation != old.Generation || d.Receipt.Attempt != old.Attempt+1 || d.Lapses != 1 {
			t.Fatalf("load: %+v %v", d, err)
		}
		if err := s.Ack(ctx, old); !errors.Is(err, queue.ErrStale) {
			t.Errorf("the dead one's receipt: %v", err)
		}
		if err := s.Ack(ctx, d.Receipt); err != nil {
			t.Error(err)
		}
	}
}

// T22: one ID while pending, claimed and failed, and sixteen who race for it.
func TestTrial22OneID(t *testing.T) {
	s, dir := newTestStore(t, nil)
	other, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	race := func(id string, x queue.IfExists) (won []queue.Enqueued, kept int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				m := small(id)
				m.IfExists = x
				e, err := []*Store{s, other}[i%2].Enqueue(t.Context(), "mail", m)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won = append(won, e)
					if e.Kept {
						kept++
					}
				case x == queue.Keep || !errors.Is(err, queue.ErrDuplicate):
					t.Errorf("%s: %v", x, err)
				}
			})
		}
		wg.Wait()
		return won, kept
	}
	if won, _ := race("refuse", queue.Refuse); len(won) != 1 {
		t.Errorf("%d of 16 won", len(won))
	}
	won, kept := race("keep", queue.Keep)
	if len(won) != 16 || kept != 15 {
		t.Errorf("keep: %d succeeded, %d were told that it was there", len(won), kept)
	}
	for _, e := range won {
		if e.Generation != won[0].Generation {
			t.Errorf("two generations: %+v, %+v", e, won[0])
		}
	}
	// Claimed it is as live as pending; failed it is not.
	d, err := s.Load(t.Context(), "mail", "refuse", queue.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if won, _ := race("refuse", queue.Refuse); len(won) != 0 {
		t.Errorf("while claimed: %d of 16 won", len(won))
	}
	if _, err := s.Fail(t.Context(), d.Receipt, queue.FailOptions{}); err != nil {
		t.Fatal(err)
	}
	if won, _ := race("refuse", queue.Refuse); len(won) != 1 || won[0].Generation == d.Receipt.Generation {
		t.Errorf("while failed: %+v", won)
	}
}

// A setClock stands where it was set.
type setClock struct {
	mu sync.Mutex
	at instant
}

func (c *setClock) Now() instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *setClock) set(wall time.Time, boot string, since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = instant{wall, boot, since}
}
