//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// actWithin bounds how long a change waits for the lock.
const actWithin = 10 * time.Second

// A deed is a change that top can make, with what it is made to as it was shown.
type deed struct {
	verb  string // reprocess, purge, release, pause or resume
	queue string
	entry queue.Entry // of reprocess, purge and release
}

// question asks for the deed in a line that ends with what to press.
func (d deed) question() string {
	switch e := d.entry; d.verb {
	case "reprocess":
		return fmt.Sprintf("return failed %s to %s?", e.FailedName, e.Queue)
	case "purge":
		return fmt.Sprintf("remove failed %s of %s for good?", e.FailedName, e.Queue)
	case "release":
		return fmt.Sprintf("end the claim of %s %s%s and return it? Its worker loses it.", e.Queue, e.ID, by(e.Label))
	case "pause":
		return fmt.Sprintf("pause %s? Claims will find nothing.", d.queue)
	}
	return fmt.Sprintf("%s %s?", d.verb, d.queue)
}

func by(label string) string {
	if label == "" {
		return ""
	}
	return " by " + label
}

// do makes the change and says what it did. What it did not do is an error.
func (l *liveStore) do(ctx context.Context, d deed) (said string, err error) {
	l.acting.RLock()
	defer l.acting.RUnlock()
	if l.ended {
		return "", context.Canceled
	}
	short, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	err = l.app.withStore(short, func(s store) error {
		said, err = d.on(short, s)
		return err
	})
	switch {
	case err == nil:
		return said, nil
	case outOfTime(err):
		_, who := l.app.holder(ctx)
		return "", fmt.Errorf("store busy for %s%s; nothing was changed", actWithin, who)
	case interrupted(err):
		return "", fmt.Errorf("stopped while waiting for the store's lock; nothing was changed")
	}
	return "", err
}

func (d deed) on(ctx context.Context, s store) (string, error) {
	e := d.entry
	switch d.verb {
	case "pause":
		_, err := certain(ctx, s, s.Pause(ctx, d.queue))
		return "paused " + d.queue, err
	case "resume":
		_, err := certain(ctx, s, s.Resume(ctx, d.queue))
		return "resumed " + d.queue, err
	case "release":
		return d.release(ctx, s)
	}
	// A failed name says which message is meant only as long as that one has it.
	now, err := s.ShowFailed(ctx, e.FailedName, queue.FailedOptions{Namespace: e.Namespace})
	switch {
	case err != nil:
		return "", err
	case now.Generation != e.Generation || !now.FailedAt.Equal(e.FailedAt):
		return "", fmt.Errorf("failed %s is another message by now; look again: nothing was changed", e.FailedName)
	case d.verb == "purge":
		_, err := certain(ctx, s, s.Purge(ctx, e.FailedName, queue.PurgeOptions{Namespace: e.Namespace}))
		return "purged " + e.FailedName, err
	}
	_, err = certain(ctx, s, s.Reprocess(ctx, e.FailedName, queue.ReprocessOptions{Namespace: e.Namespace}))
	return fmt.Sprintf("reprocessed %s: %s %s is pending", e.FailedName, e.Queue, e.ID), err
}

// release is the operator's reap of one claim, whatever its deadline.
func (d deed) release(ctx context.Context, s store) (string, error) {
	reaped, err := s.Reap(ctx, queue.ReapOptions{Receipt: &d.entry.Receipt, Limit: 1, MaxLapses: queue.DefaultMaxLapses})
	u, err := certain(ctx, s, err)
	if u != nil {
		reaped = u.Returned
	}
	said := fmt.Sprintf("returned %s %s", d.queue, d.entry.ID)
	for _, r := range reaped {
		if r.FailedName != "" {
			said = fmt.Sprintf("%s %s was reaped too often: kept as failed %s", r.Queue, r.ID, r.FailedName)
		}
	}
	return said, err
}
