package queuetest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/queuetest"
)

// commitPlants do by halves what must be done whole.
var commitPlants = []plant{
	{"an update is not undone", "undone/whatever is refused, and wherever/enqueue of a live ID", bend(func(b *bent) {
		b.update = func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
			var outs []queue.Outcome
			for i, c := range changes {
				out, err := b.Store.Update(ctx, c)
				if err != nil {
					return nil, &queue.UpdateError{Index: i, Err: err}
				}
				outs = append(outs, out...)
			}
			return outs, nil
		}
	})},
	{"an update is several commits", "update/ack and claim the next in one", bend(func(b *bent) {
		b.update = func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
			var outs []queue.Outcome
			for _, c := range changes {
				out, err := b.Store.Update(ctx, c)
				if err != nil {
					return nil, err
				}
				outs = append(outs, out...)
			}
			return outs, nil
		}
	})},
	{"an update names the wrong change", "undone/whatever is refused, and wherever/ack of a stale receipt", bend(func(b *bent) {
		b.update = func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
			out, err := b.Store.Update(ctx, changes...)
			var refused *queue.UpdateError
			if errors.As(err, &refused) {
				refused.Index++
			}
			return out, err
		}
	})},
	{"a large update is two commits", "joint/a hundred of each call in one commit", bend(func(b *bent) {
		b.update = func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
			n := min(len(changes), 50)
			outs, err := b.Store.Update(ctx, changes[:n]...)
			if err != nil || n == len(changes) {
				return outs, err
			}
			more, err := b.Store.Update(ctx, changes[n:]...)
			return append(outs, more...), err
		}
	})},
	{"an update replaces no payload", "joint/another payload and what follows", leavesOut(func(c queue.Change) bool {
		_, is := c.(queue.ReplacePayloadChange)
		return is
	})},
	{"an update purges nothing", "joint/what each brings back", leavesOut(func(c queue.Change) bool {
		_, is := c.(queue.PurgeChange)
		return is
	})},
	{"an update reaps what came back", "matrix/reaped/reap", bend(func(b *bent) {
		b.update = func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
			out, err := b.Store.Update(ctx, changes...)
			if _, reaps := changes[0].(queue.ReapChange); reaps && len(changes) == 1 && errors.Is(err, queue.ErrStale) {
				return make([]queue.Outcome, 1), nil
			}
			return out, err
		}
	})},
	{"the good ones of a batch are kept", "batch/refused whole, live ones named", bend(func(b *bent) {
		b.batch = func(ctx context.Context, name string, ms []queue.Message) ([]queue.Enqueued, error) {
			out, err := b.Store.EnqueueBatch(ctx, name, ms)
			if err != nil {
				for _, m := range ms {
					b.Store.Enqueue(ctx, name, m)
				}
			}
			return out, err
		}
	})},
	{"a batch names the first refusal only", "batch/refused whole, invalid ones named", bend(func(b *bent) {
		b.batch = func(ctx context.Context, name string, ms []queue.Message) ([]queue.Enqueued, error) {
			out, err := b.Store.EnqueueBatch(ctx, name, ms)
			var refused *queue.BatchError
			if errors.As(err, &refused) {
				refused.Refused = refused.Refused[:1]
			}
			return out, err
		}
	})},
	{"clear takes leased ones without being asked", "clear/pending and returned ones", bend(func(b *bent) {
		b.clear = func(ctx context.Context, name string, o queue.ClearOptions) (uint64, error) {
			return b.Store.Clear(ctx, name, queue.ClearOptions{Leased: true})
		}
	})},
	{"a cancelled context is not heard", "contexts/cancelled before the call", bend(func(b *bent) {
		b.ack = func(ctx context.Context, r queue.Receipt) error {
			return b.Store.Ack(context.WithoutCancel(ctx), r)
		}
	})},
	{"a closed store goes on", "close/calls answer ErrClosed", bend(func(b *bent) {
		b.closeItself = func() error { return nil }
	})},
}

// lookPlants say what is not so.
var lookPlants = []plant{
	{"blocked counts as ready", "keys/in order, one at a time", bend(func(b *bent) {
		b.status = func(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
			st, err := b.Store.Status(ctx, o)
			for name, q := range st.Queues {
				q.Ready, q.Blocked = q.Ready+q.Blocked, 0
				st.Queues[name] = q
			}
			return st, err
		}
	})},
	{"a status of two snapshots", "crowd/T13 every snapshot adds up", bend(func(b *bent) {
		b.status = func(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
			first, err := b.Store.Status(ctx, o)
			if err != nil {
				return first, err
			}
			runtime.Gosched()
			second, err := b.Store.Status(ctx, o)
			for name, q := range second.Queues {
				q.Processing = first.Queues[name].Processing
				second.Queues[name] = q
			}
			return second, err
		}
	})},
	{"complete once nothing is pending", "crowd/T13 never complete while a message is unacked", bend(func(b *bent) {
		b.status = func(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
			st, err := b.Store.Status(ctx, o)
			for name, q := range st.Queues {
				q.Processing = 0
				st.Queues[name] = q
			}
			return st, err
		}
	})},
	{"peek shows what a pause holds back", "pause/claims find nothing until it is resumed", bend(func(b *bent) {
		b.peek = func(ctx context.Context, name string, n int) ([]queue.Entry, error) {
			page, err := b.Store.List(ctx, name, queue.ListOptions{})
			return page.Entries, err
		}
	})},
	{"failed messages of other queues are listed", "namespaces/listed in order and by queue", bend(func(b *bent) {
		b.listFailed = func(ctx context.Context, f queue.FailedOptions, o queue.ListOptions) (queue.Page, error) {
			f.Queue = ""
			return b.Store.ListFailed(ctx, f, o)
		}
	})},
	{"wait does not wait", "wait/until the last settlement", bend(func(b *bent) {
		b.wait = func(ctx context.Context, o queue.WaitOptions) (queue.Status, error) {
			return b.Store.Status(ctx, queue.StatusOptions{Queues: o.Queues})
		}
	})},
	{"wait looks at what is pending only", "wait/until the last settlement", bend(func(b *bent) {
		b.wait = func(ctx context.Context, o queue.WaitOptions) (queue.Status, error) {
			for {
				st, err := b.Store.Status(ctx, queue.StatusOptions{Queues: o.Queues})
				pending := uint64(0)
				for _, q := range st.Queues {
					pending += q.Pending
				}
				if err != nil || pending == 0 {
					return st, err
				}
				runtime.Gosched()
			}
		}
	})},
	{"a parked call is not woken", "due/an enqueue wakes", bend(func(b *bent) {
		b.waitDue = func(ctx context.Context, names ...string) error {
			for _, name := range names {
				if es, err := b.Store.Peek(ctx, name, 1); err != nil || len(es) > 0 {
					return err
				}
			}
			<-ctx.Done()
			return ctx.Err()
		}
	})},
	{"a parked call does not hear its context", "contexts/cancelled while parked", bend(func(b *bent) {
		b.waitDue = func(ctx context.Context, names ...string) error {
			return b.Store.WaitDue(context.WithoutCancel(ctx), names...)
		}
	})},
	{"whatever is enqueued wakes", "due/the time wakes", bend(func(b *bent) {
		b.waitDue = func(ctx context.Context, names ...string) error {
			for {
				if st, err := b.Store.Status(ctx, queue.StatusOptions{Queues: names}); err != nil || st.Queues["mail"].Pending > 0 {
					return err
				}
				runtime.Gosched()
			}
		}
	})},
}

// leavesOut makes updates pass by some changes.
func leavesOut(which func(c queue.Change) bool) func(queuetest.Engine) queue.Store {
	return bend(func(b *bent) {
		b.update = func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
			made := slices.Clone(changes)
			for i, c := range made {
				if which(c) {
					made[i] = queue.CursorChange{Queue: "no/such"} // which is unset as it is
				}
			}
			return b.Store.Update(ctx, made...)
		}
	})
}
