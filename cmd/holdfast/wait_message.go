//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"example.com/holdfast/queue"
)

// A messageLine says what became of the one message that wait waited for. Nothing keeps
// what was settled: without a failed name it was settled, or never there.
type messageLine struct {
	Queue string `json:"queue"`
	ID    string `json:"id"`
	Live  bool   `json:"live"`                  // true: put off to later, with --ignore-scheduled
	Name  string `json:"failed_name,omitempty"` // the latest of this ID in failed
	Space string `json:"namespace,omitempty"`   // where that is; empty: the default one

	putOff bool // live, and not due yet
}

// messageOf looks for the message that o names: nil where it names none. A failed one is
// looked for where those of its queue that fail now are kept.
func messageOf(ctx context.Context, s store, o queue.WaitOptions) (*messageLine, error) {
	if o.Message == "" {
		return nil, nil
	}
	m := &messageLine{Queue: o.Queues[0], ID: o.Message}
	live, err := s.Show(ctx, m.Queue, m.ID)
	switch {
	case err == nil, errors.Is(err, queue.ErrDamaged):
		m.Live = true
		m.putOff = len(live) > 0 && live[0].State == queue.Scheduled // the older decides
		return m, nil
	case !errors.Is(err, queue.ErrNotFound):
		return nil, err
	}
	from := queue.FailedOptions{Queue: m.Queue, Namespace: spaceOf(ctx, s, m.Queue)}
	var last time.Time
	err = eachFailed(ctx, s, from, func(e queue.Entry) {
		if e.ID == m.ID && (m.Name == "" || e.FailedAt.After(last)) {
			m.Name, m.Space, last = e.FailedName, from.Namespace, e.FailedAt
		}
	})
	return m, err
}

// printWaited prints the final status, and what became of the message that was named.
func (a *app) printWaited(ctx context.Context, st queue.Status, m *messageLine) {
	if a.json {
		l := statusLineOf(st)
		l.Message = m
		a.printJSON(l)
		return
	}
	a.printStatus(ctx, st)
	switch {
	case m == nil:
	case m.Live:
		a.printf("%s %s: live, not due yet\n", m.Queue, m.ID)
	case m.Name != "":
		a.printf("%s %s: not live: failed as %s\n", m.Queue, m.ID, m.Name)
	default:
		a.printf("%s %s: not live: settled, or never seen\n", m.Queue, m.ID)
	}
}

// lookOnce is a wait without waiting.
func (a *app) lookOnce(ctx context.Context, o queue.WaitOptions, within time.Duration) error {
	var late error
	err := a.withLook(ctx, func(s store) error {
		st, err := s.Status(ctx, queue.StatusOptions{Queues: o.Queues})
		if err != nil {
			return err
		}
		done, m, err := isComplete(ctx, s, st, o)
		switch {
		case err != nil:
			return err
		case done:
			a.printWaited(ctx, st, m)
		default:
			late = a.notComplete(ctx, o, st, within)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return late
}

// isComplete answers what Wait waits for, of a status that was just taken. The message
// is looked for after the status.
func isComplete(ctx context.Context, s store, st queue.Status, o queue.WaitOptions) (bool, *messageLine, error) {
	if !st.Settled {
		return false, nil, nil
	}
	if o.Message != "" {
		m, err := messageOf(ctx, s, o)
		if err != nil || !m.Live {
			return err == nil, m, err
		}
		return o.IgnoreScheduled && m.putOff, m, nil
	}
	if !o.IgnoreScheduled {
		return st.Complete(), nil, nil
	}
	for _, q := range st.Queues {
		if q.Processing > 0 || q.Ready > 0 {
			return false, nil, nil
		}
	}
	return true, nil, nil
}
