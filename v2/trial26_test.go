//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

func init() { roles["trial 26 waiter"] = trial26Waiter }

// trial26Waiter takes a directory and enqueues. It says when it is about to wait for the
// lock, each signal that reaches it, and when it is done.
func trial26Waiter(args []string) error {
	var mu sync.Mutex
	say := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			say("signal")
		}
	}()
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, err := Open(context.Background(), args[0], &Options{fs: w})
	if err != nil {
		return err
	}
	var asked atomic.Int32
	w.Arm(watch(func(op fsguard.Op, path string) {
		// The first time it is asked for without waiting.
		if op == fsguard.OpLock && path == lockPath && asked.Add(1) == 2 {
			say("waiting")
		}
	}))
	if _, err := s.Enqueue(context.Background(), "mail", small("late")); err != nil {
		return err
	}
	say("done")
	return nil
}

// T26: a signal ends no wait for the lock. (That EINTR itself is tried again is the
// business of fsguard's TestRetry: the runtime's handlers rarely let it through.)
func TestTrial26SignalsWhileWaiting(t *testing.T) {
	t.Parallel()
	s, dir := newTestStore(t, nil)
	lock := openLock(t, dir)
	lock.lock(t)
	p := start(t, "trial 26 waiter", dir)
	if got := p.Line(t); got != "waiting" {
		t.Fatalf("%q, want that it waits", got)
	}
	for range 50 {
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGUSR1} {
			mustDo(t, p.Cmd.Process.Signal(sig))
		}
		if got := p.Line(t); got != "signal" { // it has come, and the wait goes on
			t.Fatalf("%q while the lock is held", got)
		}
	}
	lock.unlock(t)
	if lines, err := p.Rest(); err != nil || len(lines) != 1 || lines[0] != "done" {
		t.Fatalf("%q %v", lines, err)
	}
	if q := gaugesOf(t, s); q.Ready != 1 {
		t.Errorf("%+v", q)
	}
}
