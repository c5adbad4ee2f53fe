//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

func init() {
	roles["hand over"] = handOver
	roles["probe the lock"] = probeLock
}

// TestHandOvers counts how the lock goes round among processes that all want it all
// the time, readers between them.
func TestHandOvers(t *testing.T) {
	t.Parallel()
	const processes, commits = 3, 1500
	s, dir := newTestStore(t, nil)
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until := st.Revision + commits
	children := make([]*process, processes)
	for i := range children {
		children[i] = start(t, "hand over", dir, fmt.Sprint(until))
		children[i].line(t) // it is ready
	}
	for _, p := range children {
		if err := p.in.Close(); err != nil { // go
			t.Fatal(err)
		}
	}
	owner := map[uint64]int{}
	from, to := uint64(0), until // while all three contend
	looks := 0
	for i, p := range children {
		lines, err := p.rest()
		if err != nil || len(lines) < 2 {
			t.Fatalf("process %d: %v %q", i, err, lines)
		}
		var own []uint64
		for _, line := range lines[:len(lines)-1] {
			rev, err := strconv.ParseUint(line, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if first, twice := owner[rev]; twice {
				t.Fatalf("revision %d was made by %d and by %d", rev, first, i)
			}
			owner[rev] = i
			own = append(own, rev)
		}
		from, to = max(from, own[0]), min(to, own[len(own)-1])
		n, err := strconv.Atoi(strings.TrimPrefix(lines[len(lines)-1], "looks "))
		if err != nil {
			t.Fatal(err)
		}
		looks += n
	}
	handOvers, run, longest := 0, 0, 0
	for rev := from; rev <= to; rev++ {
		if _, ok := owner[rev]; !ok {
			t.Fatalf("nobody made revision %d", rev)
		}
		if rev > from && owner[rev] != owner[rev-1] {
			handOvers++
			run = 0
		}
		run++
		longest = max(longest, run)
	}
	t.Logf("%d processes, %d commits, %d hand-overs, %d looks between; the longest run of one holder: %d commits",
		processes, to-from+1, handOvers, looks, longest)
	if longest > 32 {
		t.Errorf("one process held the lock for %d commits in a row", longest)
	}
	if handOvers < 1000 || looks == 0 {
		t.Errorf("%d hand-overs, %d looks", handOvers, looks)
	}
}

// handOver commits and prints the revision, again and again up to the one given,
// while another handle looks.
func handOver(args []string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	until, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	s, err := Open(ctx, args[0], nil)
	if err != nil {
		return err
	}
	reader, err := OpenReadOnly(ctx, args[0], nil)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is closed
	looks, looked := 0, make(chan error, 1)
	go func() {
		for {
			_, err := reader.Status(ctx, queue.StatusOptions{})
			if err != nil {
				if ctx.Err() != nil {
					err = nil
				}
				looked <- err
				return
			}
			looks++
		}
	}()
	for made := uint64(0); made < until; {
		err := s.submit(ctx, &call{writes: true, decide: func(v *view) error {
			v.draft.dirty = true // a revision that changes nothing else
			made = v.draft.st.revision
			return nil
		}})
		if err != nil {
			return err
		}
		fmt.Println(made)
	}
	stop()
	err = <-looked
	fmt.Println("looks", looks)
	return err
}

// probeLock waits for the transfer lock and takes it, or says that it is held.
func probeLock(args []string) error {
	f, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	how := unix.LOCK_EX
	if args[1] == "try" {
		how |= unix.LOCK_NB
	}
	switch err := unix.Flock(int(f.Fd()), how); err {
	case nil:
		fmt.Println("taken")
	case unix.EWOULDBLOCK:
		fmt.Println("held")
	default:
		return err
	}
	return nil
}

// probe asks another process about the lock: "try" says held or taken, "wait" waits
// until it was taken.
func (o outside) probe(t testing.TB, how string) string {
	t.Helper()
	p := start(t, "probe the lock", o.file.Name(), how)
	lines, err := p.rest()
	if err != nil || len(lines) != 1 {
		t.Fatalf("probe: %v %q", err, lines)
	}
	return lines[0]
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
	waits := make(chan struct{}, 1)
	w.Arm(watch(func(op fsguard.Op, path string) {
		if op == fsguard.OpLock && path == lockPath {
			waits <- struct{}{}
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
	if got := w.locks(); got != "1 turnstile, 1 lock" {
		t.Errorf("two waits took %s", got)
	}
	page, err := w.List(t.Context(), "mail", queue.ListOptions{})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != "next" {
		t.Errorf("%+v %v", page, err)
	}
}

// An abandoned wait that serves nobody lets the lock go as soon as it obtains it.
func TestAbandonedWaitLetsGo(t *testing.T) {
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
	if got := w.locks(); got != "1 turnstile, 1 lock" {
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

// Two handles of one process exclude each other as two processes do, and closing
// one does not give up the other's lock.
func TestTwoHandlesInOneProcess(t *testing.T) {
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
		if op == fsguard.OpRename && path == statePath {
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
