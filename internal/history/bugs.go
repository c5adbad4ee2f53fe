package history

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"example.com/holdfast/queue"
)

// Bugs are what Check must find out within a few histories of the standard mix, on
// every engine.
var Bugs = []Bug{
	{"an ack with a stale receipt is taken", nil, func(f *faulty) {
		f.ack = func(ctx context.Context, r queue.Receipt) error {
			err := f.Store.Ack(ctx, r)
			if !errors.Is(err, queue.ErrStale) {
				return err
			}
			if e, ok := out(ctx, f.Store, r.Queue, func(e queue.Entry) bool { return e.Generation == r.Generation }); ok {
				return f.Store.Ack(ctx, e.Receipt)
			}
			d, err := f.Load(ctx, r.Queue, r.ID, queue.LoadOptions{WithoutHolder: true})
			if err != nil {
				return err
			}
			return f.Store.Ack(ctx, d.Receipt)
		}
	}},
	{"a claim gives a message twice", nil, func(f *faulty) {
		last := map[string]queue.Claimed{}
		f.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			c, err := f.Store.Claim(ctx, name, o)
			if again := last[name]; err == nil && len(c.Deliveries) == 0 && len(again.Deliveries) > 0 {
				return again, nil
			}
			last[name] = c
			return c, err
		}
	}},
	{"a key is delivered out of order", nil, func(f *faulty) {
		f.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			page, err := f.List(ctx, name, queue.ListOptions{})
			if err != nil {
				return queue.Claimed{}, err
			}
			for _, e := range slices.Backward(page.Entries) {
				if e.State == queue.Blocked && e.Key != "" {
					d, err := f.Load(ctx, name, e.ID, queue.LoadOptions{Lease: o.Lease, WithoutHolder: o.WithoutHolder})
					if err == nil {
						return queue.Claimed{Deliveries: []queue.Delivery{d}}, nil
					}
				}
			}
			return f.Store.Claim(ctx, name, o)
		}
	}},
	{"an update shows half done", []string{Update, Update, Status}, func(f *faulty) {
		f.update = func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
			if slices.ContainsFunc(changes[1:], mayBeRefused) { // or something of it would stay
				return f.Store.Update(ctx, changes...)
			}
			return oneByOne(ctx, f.Store, changes)
		}
	}},
	{"a status mixes two revisions", []string{Enqueue, Claim, Update, Status, Status}, func(f *faulty) {
		f.status = func(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
			all, err := f.Store.Status(ctx, o)
			for _, name := range o.Queues[1:] {
				yield()
				var one queue.Status
				if one, err = f.Store.Status(ctx, queue.StatusOptions{Queues: []string{name}}); err == nil {
					all.Queues[name] = one.Queues[name]
				}
			}
			return all, err
		}
	}},
}

// MoreBugs are found out too.
var MoreBugs = []Bug{
	{"a claim number comes twice", nil, func(f *faulty) {
		f.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			c, err := f.Store.Claim(ctx, name, o)
			for i, d := range c.Deliveries {
				c.Deliveries[i].Fence -= d.Fence % 2
			}
			return c, err
		}
	}},
	{"a fair claim takes the oldest", nil, func(f *faulty) {
		f.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			o.Fair = false
			return f.Store.Claim(ctx, name, o)
		}
	}},
	{"an update that is refused leaves a trace", nil, func(f *faulty) {
		f.update = func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
			out, err := f.Store.Update(ctx, changes...)
			if err != nil {
				_, _ = oneByOne(ctx, f.Store, changes)
			}
			return out, err
		}
	}},
	{"a status is late", nil, func(f *faulty) {
		var last queue.Status
		f.status = func(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			now, err := f.Store.Status(ctx, o)
			before := last
			if last = now; before.Revision+1 == now.Revision {
				return before, err
			}
			return now, err
		}
	}},
	{"an enqueue is forgotten", nil, func(f *faulty) {
		f.enqueue = func(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
			e, err := f.Store.Enqueue(ctx, name, m)
			if err == nil && !e.Kept && m.ID == "b" {
				_, err = f.Clear(ctx, name, queue.ClearOptions{})
			}
			return e, err
		}
	}},
	{"a reaping takes a lease that is not over", nil, func(f *faulty) {
		f.reap = func(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
			rs, err := f.Store.Reap(ctx, o)
			if err != nil || len(rs) > 0 || o.Receipt != nil {
				return rs, err
			}
			for _, name := range o.Queues {
				if e, ok := out(ctx, f.Store, name, func(queue.Entry) bool { return true }); ok {
					return f.Store.Reap(ctx, queue.ReapOptions{Receipt: &e.Receipt, MaxLapses: o.MaxLapses})
				}
			}
			return rs, err
		}
	}},
	{"a retry knows no cap", nil, func(f *faulty) {
		f.retry = func(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			o.MaxFailures = 0
			return f.Store.Retry(ctx, r, o)
		}
	}},
	{"a snooze knows no delay", nil, func(f *faulty) {
		f.release = func(ctx context.Context, r queue.Receipt, _ queue.ReleaseOptions) error {
			return f.Store.Release(ctx, r, queue.ReleaseOptions{})
		}
	}},
	{"a pause holds nobody", nil, func(f *faulty) {
		f.pause = func(context.Context, string) error { return nil }
	}},
}

// out gives a message of a queue that is leased.
func out(ctx context.Context, s queue.Store, name string, which func(queue.Entry) bool) (queue.Entry, bool) {
	page, _ := s.List(ctx, name, queue.ListOptions{})
	for _, e := range page.Entries {
		if e.State == queue.Processing && which(e) {
			return e, true
		}
	}
	return queue.Entry{}, false
}

// mayBeRefused reports whether the state can be against a change.
func mayBeRefused(c queue.Change) bool {
	switch c := c.(type) {
	case queue.EnqueueChange:
		return c.Message.IfExists == queue.Refuse
	case queue.ClaimChange, queue.CursorChange:
		return false
	}
	return true
}

// oneByOne makes the changes of an update each by itself.
func oneByOne(ctx context.Context, s queue.Store, changes []queue.Change) ([]queue.Outcome, error) {
	var outs []queue.Outcome
	for i, c := range changes {
		one, err := s.Update(ctx, c)
		if err != nil {
			return nil, &queue.UpdateError{Index: i, Err: errors.Unwrap(err)}
		}
		outs = append(outs, one...)
		yield()
	}
	return outs, nil
}

// yield lets others make their calls in between.
func yield() {
	for range 8 {
		runtime.Gosched()
	}
}
