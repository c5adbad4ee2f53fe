//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"

	"example.com/holdfast/queue"
)

// reapReturns is what a hint to reap says of it.
const reapReturns = "reap returns what is overdue or whose process is gone"

// nothingDue says that nothing is due, what is there all the same, and what brings it
// back.
func nothingDue(ctx context.Context, s store, name string) error {
	nothing := fmt.Errorf("queue %s: %w", name, errEmpty)
	st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{name}})
	if err != nil {
		return nothing
	}
	q := st.Queues[name]
	f := facts{ready: q.Ready, processing: q.Processing, blocked: q.Blocked, scheduled: q.Scheduled, overdue: q.Overdue}
	if q.Paused {
		nothing = fmt.Errorf("%w: it is paused", nothing)
	} else {
		f.ready = 0 // it came after the look for it
	}
	if there := f.there(); there != "" {
		nothing = fmt.Errorf("%w; %s", nothing, there)
	}
	switch {
	case q.Paused:
		f.run = "holdfast resume {queue} --dir {dir}"
	case q.Processing > 0:
		nothing = fmt.Errorf("%w; %s", nothing, reapReturns)
		f.run = "holdfast reap {queue} --dir {dir}"
	}
	return about(nothing, f)
}

// there counts what a queue holds though nothing is due; what is overdue is among what
// is processing.
func (f facts) there() string {
	var parts []string
	for _, part := range []struct {
		n    uint64
		what string
	}{{f.ready, "ready"}, {f.processing, "processing"}, {f.blocked, "blocked"}, {f.scheduled, "scheduled"}, {f.overdue, "overdue"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}
