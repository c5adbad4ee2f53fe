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
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

func init() {
	roles["try"] = try
	roles["die uncertain"] = dieUncertain
}

// A waiter is a store that waits for the lock, which others hold.
type waiter struct {
	*Store
	w    *crashtest.Wrapper
	lock outside
}

// newWaiter gives a store of which one enqueue waits in the kernel, and that call's
// answer to come.
func newWaiter(t *testing.T, ctx context.Context) (waiter, <-chan error) {
	s, w := counted(t)
	lock := openLock(t, s.dir)
	lock.lock(t)
	waits := make(chan struct{})
	var asked atomic.Int32
	w.Arm(watch(func(op fsguard.Op, path string) {
		// The first time it is asked for without waiting.
		if op == fsguard.OpLock && path == lockPath && asked.Add(1) == 2 {
			close(waits)
		}
	}))
	answer := make(chan error, 1)
	go func() {
		_, err := s.Enqueue(ctx, "mail", small("first"))
		answer <- err
	}()
	<-waits
	return waiter{s, w, lock}, answer
}

// locks counts how often the store took the turnstile and the lock.
func (w waiter) locks() string {
	turn, lock := 0, 0
	for _, e := range w.w.Events() {
		switch {
		case e.Op == fsguard.OpLock && e.Path == turnPath:
			turn++
		case e.Op == fsguard.OpLock && e.Path == lockPath:
			lock++
		}
	}
	return fmt.Sprintf("%d turnstile, %d lock", turn, lock)
}

// queued counts the calls that wait.
func (w waiter) queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// A cancelled waiter returns before the lock is free, and the wait that it leaves
// serves the next caller.
func TestAbandonedWaitServesTheNext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w, first := newWaiter(t, ctx)
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if got := w.lock.probe(t, "try"); got != "held" {
		t.Fatalf("the lock is %s", got)
	}
	next := make(chan error, 1)
	go func() {
		_, err := w.Enqueue(t.Context(), "mail", small("next"))
		next <- err
	}()
	until(func() bool { return w.queued() == 1 })
	w.lock.unlock(t)
	if err := <-next; err != nil {
		t.Fatal(err)
	}
	if got := w.locks(); got != "2 turnstile, 2 lock" { // asked for without waiting, and then waited for
		t.Errorf("two waits took %s", got)
	}
	page, err := w.List(t.Context(), "mail", queue.ListOptions{})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != "next" {
		t.Errorf("%+v %v", page, err)
	}
}

// An abandoned wait that serves nobody lets the lock go as soon as it obtains it.
func TestAbandonedWaitLetsGo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w, first := newWaiter(t, ctx)
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	w.lock.unlock(t)
	if got := w.lock.probe(t, "wait"); got != "taken" {
		t.Fatalf("the lock is %s", got)
	}
	until(func() bool { w.mu.Lock(); defer w.mu.Unlock(); return !w.running })
	if got := w.w.Count(fsguard.OpWrite, fsguard.OpCreate); got != 0 {
		t.Errorf("the abandoned wait wrote:\n%s", w.w.Trace())
	}
}

// Many callers wait in one place of the kernel's queue, and do not poll.
func TestManyWaitAsOne(t *testing.T) {
	t.Parallel()
	w, first := newWaiter(t, t.Context())
	const callers = 50
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if _, err := w.Enqueue(t.Context(), "mail", small(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	until(func() bool { return w.queued() == callers+1 })
	if got := w.lock.probe(t, "try"); got != "held" { // a process's life later
		t.Fatalf("the lock is %s", got)
	}
	if got := w.locks(); got != "2 turnstile, 2 lock" { // asked for without waiting, and then waited for
		t.Errorf("while %d callers wait: %s", callers+1, got)
	}
	before := w.commits.Load()
	w.lock.unlock(t)
	wg.Wait()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if got := w.commits.Load() - before; got != 1 {
		t.Errorf("%d callers that waited together took %d commits", callers+1, got)
	}
}

// Close returns although the lock is not free; who waits learns it, and the lock is
// let go when its turn comes.
func TestCloseWhileWaiting(t *testing.T) {
	t.Parallel()
	w, first := newWaiter(t, t.Context())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-first; !errors.Is(err, queue.ErrClosed) {
		t.Fatalf("the waiting call: %v", err)
	}
	if got := w.lock.probe(t, "try"); got != "held" {
		t.Fatalf("the lock is %s", got)
	}
	w.lock.unlock(t)
	if got := w.lock.probe(t, "wait"); got != "taken" {
		t.Fatalf("the lock is %s", got)
	}
	until(func() bool { return len(w.w.Open()) == 0 })
	if _, err := w.Enqueue(t.Context(), "mail", small("late")); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("enqueue after close: %v", err)
	}
}

// A context that is cancelled once the call has entered a commit no longer counts.
func TestCancelledInsideACommit(t *testing.T) {
	s, w := counted(t)
	s.company.want = 2 // so that the caller does not make the commit itself
	ctx, cancel := context.WithCancel(t.Context())
	w.Arm(watch(func(op fsguard.Op, path string) {
		if op == fsguard.OpCreate { // of the object: the lock is held, the commit under way
			cancel()
		}
	}))
	if _, err := s.Enqueue(ctx, "mail", small("a")); err != nil {
		t.Fatalf("the commit happened, the call says %v", err)
	}
	if _, err := s.Enqueue(ctx, "mail", small("b")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	if _, err := s.Show(t.Context(), "mail", "a"); err != nil {
		t.Error(err)
	}
}

// lastSync matches the sync of the namespace that is the last of a commit, after its rename or
// exchange. Few commits by exchange have one: see loseSpares.
func lastSync() func(op fsguard.Op, path string) bool {
	committed := false
	return func(op fsguard.Op, path string) bool {
		committed = committed || isCommitPoint(op, path)
		return committed && op == fsguard.OpSyncDir && path == namespaceDir
	}
}

// T15: EIO at the sync after the rename. The callers get what they would have got,
// marked uncertain; every other process stops; this process resolves it with its
// next call, by a fresh revision, and nothing happens twice.
func TestTrial15UncertainCommit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op   history.Step
		want func(u *queue.UncertainError) bool
	}{
		{history.Step{Op: "enqueue", IDs: []string{"m4"}}, func(u *queue.UncertainError) bool {
			return len(u.Enqueued) == 1 && u.Enqueued[0].ID == "m4" && strings.HasPrefix(u.Enqueued[0].Generation, u.Commit) && u.Enqueued[0].Revision == u.Revision
		}},
		{history.Step{Op: "enqueue", IDs: []string{"m4", "m5"}}, func(u *queue.UncertainError) bool {
			return len(u.Enqueued) == 2 && u.Enqueued[1].ID == "m5"
		}},
		{history.Step{Op: "claim", N: 2}, func(u *queue.UncertainError) bool {
			return len(u.Deliveries) == 2 && u.Deliveries[0].Receipt.ID == "m2" && string(u.Deliveries[1].Payload) == string(payloadOf("m3"))
		}},
		{history.Step{Op: "load", IDs: []string{"m1"}}, func(u *queue.UncertainError) bool {
			return len(u.Deliveries) == 1 && u.Deliveries[0].Receipt.Attempt == 2
		}},
		{history.Step{Op: "ack"}, func(u *queue.UncertainError) bool {
			return u.Enqueued == nil && u.Deliveries == nil && u.Refused == nil
		}},
		{history.Step{Op: "fail"}, func(*queue.UncertainError) bool { return true }},
		{history.Step{Op: "release"}, func(*queue.UncertainError) bool { return true }},
	} {
		t.Run(tt.op.Op, func(t *testing.T) {
			ctx := t.Context()
			s, w := counted(t)
			m := &history.Model{Timeless: true}
			do := func(st history.Step) history.Answer {
				st.Queue = "mail"
				a, err := history.Perform(ctx, s, st)
				if want, ok := m.Apply(st, &a); err != nil || !ok {
					t.Fatalf("%+v: %+v %v, want %+v", st, a, err, want)
				}
				return a
			}
			do(history.Step{Op: "enqueue", IDs: []string{"m1", "m2", "m3"}})
			tt.op.Queue, tt.op.Receipt = "mail", do(history.Step{Op: "claim", N: 1}).Receipts()[0]

			loseSpares(s)
			w.Arm(crashtest.FailMatching(lastSync(), unix.EIO, 1))
			_, err := history.Perform(ctx, s, tt.op)
			var u *queue.UncertainError
			if !errors.As(err, &u) || !errors.Is(err, queue.ErrUncertain) || !errors.Is(err, unix.EIO) || !tt.want(u) {
				t.Fatalf("%v: %+v", err, u)
			}
			lock := openLock(t, s.dir)
			owner, _ := decodeRecord([]byte(lock.record(t)))
			if !owner.Uncertain || owner.PID != os.Getpid() {
				t.Errorf("the record left: %+v", owner)
			}
			other, err := Open(ctx, s.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			mustStop(t, other, lock, owner)
			if lines, err := start(t, "try", s.dir).Rest(); err != nil || len(lines) != 1 || lines[0] != "stale true" {
				t.Errorf("another process: %q %v", lines, err)
			}

			st, err := s.Status(ctx, queue.StatusOptions{})
			if err != nil || !st.Settled || st.Revision != u.Revision+1 || lock.record(t) != blankRecord {
				t.Fatalf("this process's next call: %+v %v, record %q", st, err, lock.record(t))
			}
			m, happened := settled(t, m, s, []string{"mail"}, &tt.op)
			if !happened {
				t.Error("the rename had been done, and it did not happen")
			}
			for _, s := range []*Store{s, other} {
				if yes, err := s.Resolve(ctx, u); !yes || err != nil {
					t.Errorf("resolve: %t %v", yes, err)
				}
			}
			do(tt.op) // the same call again answers as after a success
			settled(t, m, other, []string{"mail"}, nil)
		})
	}
}

// T15: a refusal rests on the commit that it was decided in, and shares its doubt.
func TestTrial15UncertainRefusal(t *testing.T) {
	w, first := newWaiter(t, t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := w.Enqueue(t.Context(), "mail", small("first"))
		second <- err
	}()
	until(func() bool { return w.queued() == 2 })
	w.w.Arm(crashtest.FailMatching(lastSync(), unix.EIO, 1))
	w.lock.unlock(t)
	if err := <-first; !errors.Is(err, queue.ErrUncertain) {
		t.Errorf("the enqueue: %v", err)
	}
	var u *queue.UncertainError
	if err := <-second; !errors.As(err, &u) || !errors.Is(u.Refused, queue.ErrDuplicate) || errors.Is(err, queue.ErrDuplicate) {
		t.Errorf("the duplicate: %+v", u)
	}
	if yes, err := w.Resolve(t.Context(), u); !yes || err != nil {
		t.Errorf("resolve: %t %v", yes, err)
	}
}

// try enqueues and says what comes of it.
func try(args []string) error {
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	_, err = s.Enqueue(context.Background(), "other", small("x"))
	var stale *StaleLockError
	if errors.As(err, &stale) {
		fmt.Println("stale", stale.Owner.Uncertain)
		return nil
	}
	fmt.Println("enqueued")
	return err
}

// T15: the process that was told dies. Others stop until the operator recovers; then
// the store still knows whether it happened.
func TestTrial15UncertainAndDead(t *testing.T) {
	t.Parallel()
	for _, consent := range []OnDeadOwner{Stop, AutoRecover} {
		s, dir := newTestStore(t, &Options{OnDeadOwner: consent})
		ctx := t.Context()
		p := start(t, "die uncertain", dir)
		lines, err := p.Rest()
		u := &queue.UncertainError{}
		if killedBy(err) != unix.SIGKILL || len(lines) != 1 || json.Unmarshal([]byte(lines[0]), u) != nil {
			t.Fatalf("%v %q", err, lines)
		}
		if consent == Stop {
			lock := openLock(t, dir)
			owner, _ := decodeRecord([]byte(lock.record(t)))
			if !owner.Uncertain || owner.PID != p.Cmd.Process.Pid {
				t.Errorf("the record left: %+v", owner)
			}
			mustStop(t, s, lock, owner)
			if _, err := s.Resolve(ctx, u); !errors.Is(err, ErrStaleLock) {
				t.Errorf("resolve before recover: %v", err)
			}
			if r, err := s.Recover(ctx); err != nil || r.Revision != u.Revision+1 {
				t.Fatalf("recover: %+v %v", r, err)
			}
		}
		if yes, err := s.Resolve(ctx, u); !yes || err != nil {
			t.Errorf("%s: resolve: %t %v", consent, yes, err)
		}
		if _, err := s.Show(ctx, "mail", "a"); err != nil {
			t.Errorf("%s: it is not there: %v", consent, err)
		}
		never := *u
		never.Commit = u.Base
		if yes, err := s.Resolve(ctx, &never); yes || err != nil {
			t.Errorf("%s: resolve a commit that never was: %t %v", consent, yes, err)
		}
	}
}

// dieUncertain meets EIO at the parent's sync, prints what it was told, and dies.
func dieUncertain(args []string) error {
	w := crashtest.Wrap(fsguard.OS(), crashtest.FailMatching(lastSync(), unix.EIO, 1))
	s, err := Open(context.Background(), args[0], &Options{fs: w})
	if err != nil {
		return err
	}
	_, err = s.Enqueue(context.Background(), "mail", small("a"))
	var u *queue.UncertainError
	if !errors.As(err, &u) {
		return fmt.Errorf("enqueue: %v", err)
	}
	u.Err = nil
	fmt.Println(jsonOf(u))
	crashtest.KillSelf()
	return nil
}
