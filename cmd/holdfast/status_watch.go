//go:build unix

package main

import (
	"context"
	"reflect"
	"time"

	"example.com/holdfast/queue"
)

// How often status --watch looks. A look takes the store's lock, shared with other
// looks: what looks without pause would keep writers waiting.
const (
	defaultInterval = 2 * time.Second
	minInterval     = 100 * time.Millisecond
)

// watchStatus prints the status at once, and then each time that a look finds
// another: by a commit of anybody, by the passing of time, or because a look could not
// be settled. An interrupt is its proper end.
func (a *app) watchStatus(ctx context.Context, queues []string, interval time.Duration) error {
	return a.withLook(ctx, func(s store) error {
		var shown *queue.Status
		for {
			st, err := s.Status(ctx, queue.StatusOptions{Queues: queues})
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			case shown == nil || !reflect.DeepEqual(*shown, st):
				a.printWatched(ctx, st, shown == nil)
				if err := a.out.Flush(); err != nil {
					return nil // run tells it
				}
				shown = &st
			}
			select {
			case <-ctx.Done():
				return nil
			case <-a.after(interval):
			}
		}
	})
}

// printWatched shows one status of many: in the same place on a terminal, else one
// after the other.
func (a *app) printWatched(ctx context.Context, st queue.Status, first bool) {
	if !a.json {
		switch {
		case a.tty(a.stdout):
			a.printf("\x1b[H\x1b[2J")
		case !first:
			a.printf("\n")
		}
		a.printf("%s, revision %d\n", when(time.Now()), st.Revision)
	}
	a.printStatus(ctx, st)
}
