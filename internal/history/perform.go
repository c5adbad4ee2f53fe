package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// refusals are the errors that are answers: the model knows when they are due.
var refusals = []error{
	queue.ErrDuplicate, queue.ErrStale, queue.ErrGone, queue.ErrFailedExists, queue.ErrNotFailed,
	queue.ErrNotFound, queue.ErrLeased, queue.ErrInFlight,
}

// Perform makes the call of a step. A refusal is part of the answer; an error is
// anything else that a call can meet, a payload among it that is not what it was.
func Perform(ctx context.Context, s queue.Store, st Step) (Answer, error) {
	a, err := perform(ctx, s, st)
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return refusedWith(err, refusal), nil
		}
	}
	return a, err
}

func refusedWith(err, refusal error) Answer {
	a := Answer{Refused: refusal.Error()}
	var batch *queue.BatchError
	var update *queue.UpdateError
	var lost *queue.LostError
	if errors.As(err, &batch) {
		for _, r := range batch.Refused {
			a.At = append(a.At, r.Index)
		}
	}
	if errors.As(err, &update) {
		a.At = append(a.At, update.Index)
	}
	if errors.As(err, &lost) {
		a.Current = lost.Current
	}
	return a
}

func perform(ctx context.Context, s queue.Store, st Step) (a Answer, err error) {
	var r queue.Receipt
	if st.Receipt != "" {
		if r, err = queue.ParseReceipt(st.Receipt); err != nil {
			return a, err
		}
	}
	switch st.Op {
	case Enqueue:
		return enqueue(ctx, s, st)
	case Load:
		d, err := s.Load(ctx, st.Queue, st.IDs[0], queue.LoadOptions{Lease: leaseOf(st), WithoutHolder: st.Holder == ""})
		if err != nil {
			return a, err
		}
		return a, a.deliver(d)
	case Fail:
		a.Failed, err = s.Fail(ctx, r, queue.FailOptions{Cause: st.Cause, As: st.As})
	case Claim, Ack, Release, Retry, Extend:
		// The outcome of a change of one is what the call returns.
		var out queue.Outcome
		if out, err = single(ctx, s, st, r); err == nil {
			a, err = outcome(st, out)
		}
	case ReplacePayload:
		err = s.ReplacePayload(ctx, r, Payload(r.ID, st.Version))
	case Reap:
		return reap(ctx, s, st, r)
	case Reprocess:
		err = s.Reprocess(ctx, st.IDs[0], queue.ReprocessOptions{Namespace: st.Space})
	case Purge:
		err = s.Purge(ctx, st.IDs[0], queue.PurgeOptions{Namespace: st.Space})
	case Clear:
		a.Count, err = s.Clear(ctx, st.Queue, queue.ClearOptions{Leased: st.Leased})
	case Pause:
		err = s.Pause(ctx, st.Queue)
	case Resume:
		err = s.Resume(ctx, st.Queue)
	case Namespace:
		err = s.SetFailedNamespace(ctx, st.Queue, st.Space)
	case Update:
		return update(ctx, s, st)
	default:
		return look(ctx, s, st)
	}
	return a, err
}

func enqueue(ctx context.Context, s queue.Store, st Step) (a Answer, err error) {
	ms := messages(st)
	es := make([]queue.Enqueued, 1)
	if len(ms) == 1 {
		es[0], err = s.Enqueue(ctx, st.Queue, ms[0])
	} else {
		es, err = s.EnqueueBatch(ctx, st.Queue, ms)
	}
	if err != nil {
		return a, err
	}
	for _, e := range es {
		a.accept(e)
	}
	return a, nil
}

func messages(st Step) []queue.Message {
	var ms []queue.Message
	for i, id := range st.IDs {
		m := queue.Message{ID: id, Payload: Payload(id, 0), IfExists: st.IfExists}
		if i < len(st.Keys) {
			m.Key = st.Keys[i]
		}
		if st.NotBefore != 0 {
			m.NotBefore = time.UnixMilli(st.NotBefore)
		}
		ms = append(ms, m)
	}
	return ms
}

// accept notes an accepted message. The revision of a kept one is any in which it was
// live: nothing to compare.
func (a *Answer) accept(e queue.Enqueued) {
	a.Gens, a.Kept = append(a.Gens, e.Generation), append(a.Kept, e.Kept)
	if !e.Kept {
		a.Revision = e.Revision
	}
}

func (a *Answer) deliver(ds ...queue.Delivery) error {
	for _, d := range ds {
		version, err := versionOf(d.Receipt.ID, d.Payload)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Receipt, err)
		}
		a.Deliveries = append(a.Deliveries, Delivered{
			Receipt: d.Receipt.String(), Version: version, Key: d.Key, Fence: d.Fence,
			Deadline: millis(d.Deadline), EnqueuedAt: millis(d.EnqueuedAt),
			LastError: d.LastError, Failures: d.Failures, Lapses: d.Lapses,
		})
	}
	return nil
}

func reap(ctx context.Context, s queue.Store, st Step, r queue.Receipt) (a Answer, err error) {
	o := queue.ReapOptions{Queues: st.Queues, Limit: st.N, MaxLapses: st.Most}
	if st.Receipt != "" {
		o.Receipt = &r
	}
	out, err := s.Reap(ctx, o)
	for _, x := range out {
		a.Reaped = append(a.Reaped, Reaped{x.Queue, x.ID, x.Attempt, x.Cause, x.Lapses, x.FailedName})
	}
	return a, err
}

// leaseOf gives a step's lease as a call takes it.
func leaseOf(st Step) time.Duration {
	if st.Lease == 0 {
		return queue.NoDeadline
	}
	return st.Lease
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
