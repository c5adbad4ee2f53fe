//go:build unix

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// A stuckStore waits for the lock until it is let in or the call is withdrawn.
type stuckStore struct {
	store
	waiting chan struct{} // closed when the call waits
	letIn   chan struct{}
}

func (f *stuckStore) wait(ctx context.Context) error {
	close(f.waiting)
	select {
	case <-f.letIn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *stuckStore) Enqueue(ctx context.Context, q string, m queue.Message) (queue.Enqueued, error) {
	return queue.Enqueued{Queue: q, ID: "m"}, f.wait(ctx)
}

func (f *stuckStore) Recover(ctx context.Context) (holdfast.Recovery, error) {
	return holdfast.Recovery{}, f.wait(ctx)
}

func (f *stuckStore) Close() error { return nil }

// A signalled buffer tells of every write.
type signalled struct {
	bytes.Buffer
	wrote chan struct{}
}

func (s *signalled) Write(p []byte) (int, error) {
	defer func() { s.wrote <- struct{}{} }()
	return s.Buffer.Write(p)
}

func TestALongWaitForTheLockIsTold(t *testing.T) {
	owner := &queue.Owner{Token: "abc", PID: 42, Host: "phone", Since: time.Unix(1, 0)}
	for _, try := range []struct {
		name      string
		args      []string
		owner     *queue.Owner
		interrupt bool
		want      string
	}{
		{"enqueue", []string{"enqueue", "mail", "1"}, owner, false, "holdfast: waiting for the store's lock, held by pid 42 on phone since " + when(owner.Since) + "\n"},
		{"recover", []string{"recover"}, owner, false, "holdfast: waiting for the store's lock, held by pid 42 on phone since " + when(owner.Since) + "\n"},
		{"nobody known", []string{"recover"}, nil, false, "holdfast: waiting for the store's lock\n"},
		{"interrupted", []string{"enqueue", "mail", "1"}, nil, true, "holdfast: waiting for the store's lock\n" +
			"holdfast: /fake: stopped while waiting for the store's lock; nothing was changed\n"},
	} {
		t.Run(try.name, func(t *testing.T) {
			f := &stuckStore{waiting: make(chan struct{}), letIn: make(chan struct{})}
			var out bytes.Buffer
			errs := &signalled{wrote: make(chan struct{}, 10)}
			a := newApp(strings.NewReader(""), &out, errs)
			a.engine = *with(f)
			a.engine.look = with(&lookStore{owner: try.owner}).look
			timer := make(chan time.Time)
			a.after = func(d time.Duration) <-chan time.Time {
				if d != sayAfter {
					t.Errorf("a timer of %v", d)
				}
				return timer
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			code := make(chan int)
			go func() { code <- a.run(ctx, append([]string{"--dir", "/fake"}, try.args...)) }()
			<-f.waiting
			timer <- time.Time{}
			<-errs.wrote
			wantCode := exitDone
			if try.interrupt {
				wantCode = exitIO
				interrupt()
			} else {
				close(f.letIn)
			}
			if got := <-code; got != wantCode || errs.String() != try.want {
				t.Errorf("exit %d, %q; want %q", got, errs.String(), try.want)
			}
		})
	}
}

// With --json nothing is watched; when the lock is free, or ours, nothing is said.
func TestAShortWaitIsNotTold(t *testing.T) {
	s := newStore(t)
	a := newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	a.dir, a.json = s.dir, true
	a.after = func(time.Duration) <-chan time.Time { t.Error("a timer with --json"); return nil }
	a.watchLock(t.Context())()
	if held, who := a.holder(t.Context()); held {
		t.Errorf("a free lock is held%s", who)
	}
}
