//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// busyAfter is how long a survey waits for the lock. Whoever holds it longer is named, and
// what is shown is the last committed state.
const busyAfter = 300 * time.Millisecond

// atOnce is for the rest of a survey whose first look found the lock in other hands.
const atOnce = time.Millisecond

// surveyWithin ends a survey that a disk keeps from ending.
const surveyWithin = 10 * time.Second

// How much a survey lists. What is beyond is counted in the gauges.
const (
	mostListed  = 500  // claims, and failed messages
	mostScanned = 2000 // live messages of a queue, in search of its claims
)

// A survey is what people who watch a store are shown of it: some looks, one after the
// other, that hardly wait for the lock.
type survey struct {
	at     time.Time
	status queue.Status
	oldest map[string]time.Time // when the oldest live message of a queue was enqueued
	claims []queue.Entry        // messages in the hands of workers
	failed []queue.Entry        // the latest first
	more   bool                 // there are more claims or failed messages than are listed
}

// survey takes one of the queues named, or of all; whole says that claims and failed
// messages are listed too.
func (a *app) survey(ctx context.Context, queues []string, whole bool) (*survey, error) {
	ctx, cancel := context.WithTimeout(ctx, surveyWithin)
	defer cancel()
	v := &survey{oldest: map[string]time.Time{}}
	err := a.lookWithin(ctx, busyAfter, func(s store) (err error) {
		if v.status, err = s.Status(ctx, queue.StatusOptions{Queues: queues}); err != nil || !v.status.Settled {
			return err
		}
		return v.list(ctx, s, whole)
	})
	if err == nil && !v.status.Settled {
		err = a.lookWithin(ctx, atOnce, func(s store) error { return v.list(ctx, s, whole) })
	}
	if err != nil {
		return nil, err
	}
	v.at = a.now()
	return v, nil
}

func (v *survey) list(ctx context.Context, s store, whole bool) error {
	for _, name := range v.names() {
		q := v.status.Queues[name]
		if q.Unacked() == 0 {
			continue
		}
		if err := v.listQueue(ctx, s, name, q, whole); err != nil {
			return about(err, facts{queue: name})
		}
	}
	if !whole {
		return nil
	}
	return v.listFailed(ctx, s)
}

// listQueue finds the oldest live message of a queue, and its claims. Those that are
// claimed are mostly the oldest, so that few others are read.
func (v *survey) listQueue(ctx context.Context, s store, name string, q queue.QueueStatus, whole bool) error {
	o := queue.ListOptions{Limit: 1}
	claims := uint64(0)
	if whole && q.Processing > 0 {
		claims, o.Limit = q.Processing, mostListed
	}
	for scanned := 0; ; {
		p, err := s.List(ctx, name, o)
		if err != nil {
			return err
		}
		for _, e := range p.Entries {
			if first, ok := v.oldest[name]; !ok || e.EnqueuedAt.Before(first) {
				v.oldest[name] = e.EnqueuedAt
			}
			if e.State != queue.Processing || claims == 0 {
				continue
			}
			if len(v.claims) == mostListed {
				v.more = true
				return nil
			}
			v.claims = append(v.claims, e)
			claims--
		}
		scanned, o.After = scanned+len(p.Entries), p.Next
		if claims == 0 || p.Next == "" {
			return nil
		}
		if scanned >= mostScanned {
			v.more = true
			return nil
		}
	}
}

func (v *survey) listFailed(ctx context.Context, s store) error {
	spaces := map[string]bool{"": true}
	failed := uint64(0)
	for _, q := range v.status.Queues {
		spaces[q.FailedNamespace] = true
		failed += q.Failed
	}
	if failed == 0 {
		return nil
	}
	for _, space := range slices.Sorted(maps.Keys(spaces)) {
		o := queue.ListOptions{Limit: mostListed}
		p, err := s.ListFailed(ctx, queue.FailedOptions{Namespace: space}, o)
		if err != nil {
			return about(err, facts{space: space})
		}
		v.failed = append(v.failed, p.Entries...)
		v.more = v.more || p.Next != ""
	}
	slices.SortStableFunc(v.failed, func(a, b queue.Entry) int {
		return cmp.Or(b.FailedAt.Compare(a.FailedAt), cmp.Compare(a.FailedName, b.FailedName))
	})
	return nil
}

func (v *survey) names() []string { return slices.Sorted(maps.Keys(v.status.Queues)) }

// age tells how old the oldest live message of a queue is.
func (v *survey) age(name string) string {
	first, ok := v.oldest[name]
	if !ok || first.IsZero() {
		return "-"
	}
	return shortAge(v.at.Sub(first))
}

// busy says, of a survey that is not settled, whom the store waits for.
func (v *survey) busy(dir string) string {
	switch o := v.status.Owner; {
	case v.status.Settled:
		return ""
	case o == nil || o.Token == "":
		return "store busy: another process holds the lock; shown is the last committed state"
	default: // in a narrow window whom it waits for is what is left of it
		return "store busy: pid " + itoa(o.PID) + " on " + o.Host + " is inside a change since " + when(o.Since) +
			"; shown is the last committed state; if it does not run any more: holdfast recover --dir " + shellWord(dir)
	}
}

// outOfTime says of a call that was withdrawn for its time what that means.
func outOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, queue.ErrUncertain)
}
