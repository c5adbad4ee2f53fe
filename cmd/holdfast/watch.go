//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// sayAfter is how long a command waits for the lock before it says so.
const sayAfter = 2 * time.Second

// glanceAfter is how long a look at who holds the lock waits for the lock itself.
const glanceAfter = 50 * time.Millisecond

// withChange is withStore for a command that makes one change and ends: if it has
// to wait long for the lock it says who holds it, and if it is interrupted, that
// nothing was changed.
func (a *app) withChange(ctx context.Context, do func(s store) error) error {
	stop := a.watchLock(ctx)
	err := a.withStore(ctx, do)
	stop()
	var stopped *stoppedError
	if interrupted(err) && !errors.As(err, &stopped) {
		return &stoppedError{"stopped while waiting for the store's lock; nothing was changed"}
	}
	return err
}

// watchLock says once, on stderr, that the lock is in other hands for long. The
// function it gives ends the watch.
func (a *app) watchLock(ctx context.Context) (stop func()) {
	if a.json {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.after(sayAfter):
			}
			held, who := a.holder(ctx)
			if ctx.Err() != nil {
				return
			}
			if held {
				fmt.Fprintf(a.stderr, "holdfast: waiting for the store's lock%s\n", printable(who))
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// holder tells whether another process holds the lock, and what its record says.
// One that only looks leaves no record.
func (a *app) holder(ctx context.Context) (held bool, who string) {
	var st queue.Status
	err := a.glance(ctx, func(s store) (err error) {
		st, err = s.Status(ctx, queue.StatusOptions{})
		return err
	})
	switch {
	case err != nil || st.Settled:
		return false, ""
	case st.Owner == nil || st.Owner.Token == "":
		return true, ""
	case st.Owner.PID == os.Getpid():
		return false, "" // our own commit is slow
	}
	return true, fmt.Sprintf(", held by pid %d on %s since %s", st.Owner.PID, st.Owner.Host, when(st.Owner.Since))
}

// lockOwner gives the record in the lock, which a listing does not carry.
func (a *app) lockOwner(ctx context.Context) (o *queue.Owner) {
	a.glance(ctx, func(s store) error { // without an answer the owner is unknown
		st, err := s.Status(ctx, queue.StatusOptions{})
		o = st.Owner
		return err
	})
	return o
}

// glance runs do on the store, opened for a look that hardly waits.
func (a *app) glance(ctx context.Context, do func(s store) error) error {
	return a.lookWithin(ctx, glanceAfter, do)
}

// lookWithin runs do on the store, opened for looks each of which waits so long for the
// lock at most.
func (a *app) lookWithin(ctx context.Context, wait time.Duration, do func(s store) error) error {
	o := a.lookOptions()
	o.LookAfter = wait
	return use(ctx, a.engine.look, a.dir, o, do)
}

// markUnsettled says first what keeps a look from being the last word.
func (a *app) markUnsettled(ctx context.Context, settled bool, owner *queue.Owner) {
	switch {
	case settled || a.json: // in JSON every line carries it
	case owner != nil:
		a.printf("UNSETTLED: %s\n", printable(a.unfinished(ctx, *owner)))
	default:
		a.printf("UNSETTLED: %s\n", notUnderLock)
	}
}

const notUnderLock = "the last committed state; another process holds the lock; try again"

// unfinished says what a record in the lock means. A look that did not get the lock
// cannot tell a dead owner from one at work; recover can: it waits for the lock.
func (a *app) unfinished(ctx context.Context, o queue.Owner) string {
	way := "holdfast recover --dir " + shellWord(a.dir)
	var set holdfast.Settings
	err := a.glance(ctx, func(s store) (err error) {
		set, err = s.Settings(ctx)
		return err
	})
	if err == nil && set.OnDeadOwner == holdfast.AutoRecover {
		way = "the next change recovers it"
	}
	if o.Token == "" || o.Uncertain {
		return (&holdfast.StaleLockError{Owner: o}).Error() + ". If it still runs, wait; otherwise: " + way
	}
	return fmt.Sprintf("what pid %d on %s began at %s is not finished. If it still runs, wait; otherwise: %s",
		o.PID, o.Host, when(o.Since), way)
}
