//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

func init() {
	roles["claim and die"] = claimAndDie
	roles["work off"] = workOffQueue
	roles["poll"] = poll
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
	if _, err := lock.file.WriteAt(encodeRecord(newOwner(token{9}, systemClock{}.Now())), 0); err != nil {
		t.Fatal(err)
	}
	before := lock.record(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Enqueue(ctx, "mail", small("a"))
	_, recovered := s.Recover(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(recovered, context.DeadlineExceeded) {
		t.Errorf("enqueue: %v, recover: %v", err, recovered)
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

// T09, the store's part: the four messages that a killed process had claimed come back
// at once and while another process runs, by proof of its death and not by a deadline,
// two of them having none.
func TestTrial09KilledWithClaims(t *testing.T) {
	s, dir := newTestStore(t, &Options{clock: fixedClock{systemClock{}.Now()}})
	ctx := t.Context()
	if _, err := s.EnqueueBatch(ctx, "mail", smalls(100)); err != nil {
		t.Fatal(err)
	}
	lines, err := start(t, "claim and die", dir).Rest()
	if killedBy(err) != unix.SIGKILL || len(lines) != 4 {
		t.Fatalf("%v %q", err, lines)
	}
	st, err := s.Status(ctx, queue.StatusOptions{})
	if q := st.Queues["mail"]; err != nil || !st.Settled || q.Processing != 4 || q.Pending != 96 || q.Overdue != 0 {
		t.Fatalf("status: %+v %v", st, err)
	}
	back, err := s.Reap(ctx, queue.ReapOptions{})
	if err != nil || len(back) != 4 {
		t.Fatalf("reap: %+v %v", back, err)
	}
	for i, line := range lines {
		old, err := queue.ParseReceipt(line)
		if err != nil {
			t.Fatal(err)
		}
		if b := back[i]; b.Cause != queue.ByProof || b.ID != old.ID || b.Attempt != old.Attempt || b.Lapses != 1 || b.FailedName != "" {
			t.Errorf("reaped: %+v, want attempt %d of %s by proof", b, old.Attempt, old.ID)
		}
	}
	again := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 4})
	for i, line := range lines {
		old, _ := queue.ParseReceipt(line)
		d := again[i]
		if d.Receipt.ID != old.ID || d.Receipt.Generation != old.Generation || d.Receipt.Attempt != old.Attempt+1 || d.Lapses != 1 || d.Failures != 0 {
			t.Errorf("delivered again: %+v", d)
		}
		if err := s.Ack(ctx, old); !errors.Is(err, queue.ErrStale) {
			t.Errorf("the dead one's receipt: %v", err)
		}
		if err := s.Ack(ctx, d.Receipt); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, namespaceDir, holdersDir)); err != nil || len(left) != 1 {
		t.Errorf("holders/ has %v (%v), want our own only", left, err)
	}
}

// T15: EIO at a sync before the rename is an error like any other: the old state
// stands, and the same call again writes everything anew.
func TestTrial15FailedSync(t *testing.T) {
	s, w := counted(t)
	for i, match := range []func(op fsguard.Op, path string) bool{
		func(op fsguard.Op, path string) bool {
			return op == fsguard.OpSync && strings.HasSuffix(path, payloadFile)
		},
		isStateSync,
		func(op fsguard.Op, path string) bool {
			return op == fsguard.OpSyncDir && strings.HasSuffix(path, objectsDir)
		},
	} {
		w.Arm(crashtest.FailMatching(match, unix.EIO, 1))
		id := fmt.Sprint("m", i)
		if _, err := s.Enqueue(t.Context(), "mail", small(id)); !errors.Is(err, unix.EIO) || errors.Is(err, queue.ErrUncertain) {
			t.Fatalf("%d: %v", i, err)
		}
		if st, err := s.Status(t.Context(), queue.StatusOptions{Orphans: true}); err != nil || st.Queues["mail"].Pending != uint64(i) || st.Orphans != 0 {
			t.Errorf("%d: %+v %v", i, st, err)
		}
		if _, err := s.Enqueue(t.Context(), "mail", small(id)); err != nil {
			t.Errorf("%d, again: %v", i, err)
		}
	}
}

// T13, the store's part: the gauges add up whenever somebody looks, and complete is
// seen only after the last settlement.
func TestTrial13StatusIsOneSnapshot(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	s, dir := newTestStore(t, nil)
	const total = 300
	if _, err := s.EnqueueBatch(t.Context(), "work", smalls(total)); err != nil {
		t.Fatal(err)
	}
	poller := start(t, "poll", dir, fmt.Sprint(total))
	var wg sync.WaitGroup
	for i := range uint64(2) {
		p := start(t, "work off", dir, fmt.Sprint(seed+i))
		wg.Go(func() {
			if _, err := p.Rest(); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if err := poller.In.Close(); err != nil {
		t.Fatal(err)
	}
	lines, err := poller.Rest()
	if err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "true ") {
		t.Fatalf("poller: %v %q", err, lines)
	}
	t.Logf("complete after %s looks", strings.TrimPrefix(lines[0], "true "))
}

// workOffQueue takes a directory and a seed, and works until nothing is due.
func workOffQueue(args []string) error {
	ctx := context.Background()
	return hands(args[0], args[1], 4, func(_ int, h *hand) error {
		for {
			rs, err := h.claim(ctx, "work", 1+h.rng.IntN(3))
			if err != nil || len(rs) == 0 {
				return err // what is released now, its releaser claims
			}
			for _, r := range rs {
				if _, err := h.settle(ctx, r, 0.05, 0.05); err != nil {
					return err
				}
			}
		}
	})
}

// poll looks at the status in a tight loop until it is complete, or its input ends,
// and checks every snapshot against itself.
func poll(args []string) error {
	ctx := context.Background()
	s, err := OpenReadOnly(ctx, args[0], nil)
	if err != nil {
		return err
	}
	total, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	var before queue.Status
	for polls := 1; ; polls++ {
		ended := over.Load()
		st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{"work"}})
		if err != nil {
			return err
		}
		q := st.Queues["work"]
		c := q.Counters
		settled := c.Completed + c.Failed
		switch {
		case !st.Settled, st.Revision < before.Revision,
			q.Pending != q.Ready+q.Scheduled+q.Blocked,
			q.Unacked() != c.Enqueued-settled, q.Failed != c.Failed,
			q.Processing != c.Claimed-c.Released-settled,
			c.Enqueued != total,
			st.Complete() != (settled == total):
			return fmt.Errorf("poll %d: %+v", polls, st)
		case st.Complete() || ended:
			fmt.Println(st.Complete(), polls)
			return nil
		}
		before = st
	}
}

// T26: two handles of one process exclude each other as two processes do, and closing
// one does not give up the other's lock.
func TestTrial26TwoHandles(t *testing.T) {
	s, w := counted(t)
	other, err := Open(t.Context(), s.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	third, err := Open(t.Context(), s.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	lock := openLock(t, s.dir)
	inside, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.Arm(watch(func(op fsguard.Op, path string) {
		if isCommitPoint(op, path) {
			once.Do(func() { close(inside); <-goOn })
		}
	}))
	answers := make(chan error, 2)
	enqueue := func(s *Store, id string) {
		_, err := s.Enqueue(t.Context(), "mail", small(id))
		answers <- err
	}
	go enqueue(s, "a")
	<-inside
	go enqueue(third, "b")
	until(func() bool { return (waiter{Store: third}).queued() == 1 })
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lock.probe(t, "try"); got != "held" {
		t.Errorf("another handle was closed, and the lock is %s", got)
	}
	if n := len(answers); n != 0 {
		t.Errorf("%d calls were answered while one was inside its commit", n)
	}
	close(goOn)
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if _, err := []*Store{s, third}[i%2].Enqueue(t.Context(), "mail", small(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if st, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil || st.Queues["mail"].Ready != 42 {
		t.Errorf("%+v %v", st, err)
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
