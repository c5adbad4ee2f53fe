package queuetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

var plants = slices.Concat(receiptPlants, deliveryPlants, commitPlants, lookPlants)

// receiptPlants are wrong about who may still settle, and how.
var receiptPlants = []plant{
	{"a stale receipt acks", "fence/T04 a late worker", bend(func(b *bent) {
		b.ack = func(ctx context.Context, r queue.Receipt) error {
			if err := b.Store.Ack(ctx, r); !errors.Is(err, queue.ErrStale) {
				return err
			}
			return nil
		}
	})},
	{"a receipt acks after retry", "matrix/retried/ack", bend(func(b *bent) {
		b.ack = func(ctx context.Context, r queue.Receipt) error {
			es, _ := b.Store.Show(ctx, r.Queue, r.ID)
			if len(es) > 0 && es[0].Returned == "retried" {
				d, err := b.Store.Load(ctx, r.Queue, r.ID, queue.LoadOptions{})
				if err != nil {
					return err
				}
				r = d.Receipt
			}
			return b.Store.Ack(ctx, r)
		}
	})},
	{"a reaped one's receipt is refused", "matrix/reaped/ack", bend(func(b *bent) {
		b.ack = func(ctx context.Context, r queue.Receipt) error {
			es, _ := b.Store.Show(ctx, r.Queue, r.ID)
			if len(es) > 0 && es[0].Returned == "reaped" {
				return &queue.LostError{Queue: r.Queue, ID: r.ID, Attempt: r.Attempt, Current: r.Attempt, Reason: "reaped", Err: queue.ErrStale}
			}
			return b.Store.Ack(ctx, r)
		}
	})},
	{"a refusal without its facts", "matrix/released/release", bend(func(b *bent) {
		b.release = func(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
			err := b.Store.Release(ctx, r, o)
			if errors.Is(err, queue.ErrStale) {
				return queue.ErrStale
			}
			return err
		}
	})},
	{"gone and stale are mixed up", "matrix/acked/retry", bend(func(b *bent) {
		b.retry = func(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			out, err := b.Store.Retry(ctx, r, o)
			var lost *queue.LostError
			if errors.As(err, &lost) {
				lost.Err = queue.ErrStale
			}
			return out, err
		}
	})},
	{"a release is a failure", "release/at once, excused", bend(func(b *bent) {
		b.release = func(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
			_, err := b.Store.Retry(ctx, r, queue.RetryOptions{Delay: o.Delay})
			return err
		}
	})},
	{"the cap counts every attempt", "retry/the cap counts real failures", bend(func(b *bent) {
		b.retry = func(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			if o.MaxFailures > 0 && r.Attempt >= o.MaxFailures {
				o.MaxFailures = 1
			}
			return b.Store.Retry(ctx, r, o)
		}
	})},
	{"the cap meets a taken name", "retry/at the cap under a name that is free", bend(func(b *bent) {
		b.retry = func(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			if o.MaxFailures != 1 {
				return b.Store.Retry(ctx, r, o)
			}
			name, err := b.Store.Fail(ctx, r, queue.FailOptions{Cause: o.Cause})
			return queue.Returned{Queue: r.Queue, ID: r.ID, Attempt: r.Attempt, FailedName: name}, err
		}
	})},
	{"a failed name is not kept", "fail/a taken name leaves the claim as it was", bend(func(b *bent) {
		b.fail = func(ctx context.Context, r queue.Receipt, o queue.FailOptions) (string, error) {
			name, err := b.Store.Fail(ctx, r, o)
			if errors.Is(err, queue.ErrFailedExists) {
				returned, err := b.Store.Retry(ctx, r, queue.RetryOptions{MaxFailures: 1, Cause: o.Cause})
				return returned.FailedName, err
			}
			return name, err
		}
	})},
	{"a lease is over a moment after its deadline", "reap/exactly at the deadline", bend(func(b *bent) {
		b.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			if o.Lease > 0 {
				o.Lease += time.Millisecond
			}
			return b.Store.Claim(ctx, name, o)
		}
	})},
	{"reaping forgets the cap", "reap/to failed at the cap of lapses", bend(func(b *bent) {
		b.reap = func(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
			o.MaxLapses = 0
			return b.Store.Reap(ctx, o)
		}
	})},
	{"reaping takes those of every queue", "reap/the queues that are named", bend(func(b *bent) {
		b.reap = func(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
			o.Queues = nil
			return b.Store.Reap(ctx, o)
		}
	})},
	{"reprocessing makes another generation", "reprocess/back in its old place", bend(func(b *bent) {
		b.reprocess = func(ctx context.Context, name string, o queue.ReprocessOptions) error {
			e, err := b.Store.ShowFailed(ctx, name, queue.FailedOptions{Namespace: o.Namespace})
			if err != nil {
				return err
			}
			if _, err := b.Store.Enqueue(ctx, e.Queue, queue.Message{ID: e.ID, Payload: e.Payload, Key: e.Key}); err != nil {
				return err
			}
			return b.Store.Purge(ctx, name, queue.PurgeOptions(o))
		}
	})},
	{"namespaces are not kept apart", "namespaces/failed messages of a namespace are apart", bend(func(b *bent) {
		b.namespace = func(ctx context.Context, name, space string) error {
			if err := b.Store.SetFailedNamespace(ctx, name, space); err != nil {
				return err
			}
			return b.Store.SetFailedNamespace(ctx, name, "")
		}
	})},
}

// deliveryPlants are wrong about who gets what, and when.
var deliveryPlants = []plant{
	{"fair is ignored", "fair/a turn for each key", bend(func(b *bent) {
		b.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			o.Fair = false
			return b.Store.Claim(ctx, name, o)
		}
	})},
	{"the bound of bytes is ignored", "claim/as many bytes as asked", bend(func(b *bent) {
		b.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			o.MaxBytes = 0
			return b.Store.Claim(ctx, name, o)
		}
	})},
	{"the newest first", "order/first in, first out", bend(func(b *bent) {
		b.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			es, err := b.Store.Peek(ctx, name, queue.MaxClaim)
			if err != nil || len(es) == 0 {
				return queue.Claimed{}, err
			}
			d, err := b.Store.Load(ctx, name, es[len(es)-1].ID, queue.LoadOptions{Lease: o.Lease})
			return queue.Claimed{Deliveries: []queue.Delivery{d}}, err
		}
	})},
	{"an overdue one is given out again", "claim/a leased one is not given out, not even an overdue one", bend(func(b *bent) {
		b.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			if _, err := b.Store.Reap(ctx, queue.ReapOptions{}); err != nil {
				return queue.Claimed{}, err
			}
			return b.Store.Claim(ctx, name, o)
		}
	})},
	{"the fence begins anew with each message", "fence/fences grow in the whole store and never repeat", bend(func(b *bent) {
		b.claim = func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
			c, err := b.Store.Claim(ctx, name, o)
			for i, d := range c.Deliveries {
				c.Deliveries[i].Fence = d.Attempt()
			}
			return c, err
		}
	})},
	{"load keeps to the schedule", "load/whatever the schedule", bend(func(b *bent) {
		b.load = func(ctx context.Context, name, id string, o queue.LoadOptions) (queue.Delivery, error) {
			es, err := b.Store.Show(ctx, name, id)
			if err != nil || es[0].State == queue.Scheduled {
				return queue.Delivery{}, queue.ErrNotFound
			}
			return b.Store.Load(ctx, name, id, o)
		}
	})},
	{"load takes over before the deadline", "load/a leased one is refused until its deadline", bend(func(b *bent) {
		b.load = func(ctx context.Context, name, id string, o queue.LoadOptions) (queue.Delivery, error) {
			es, _ := b.Store.Show(ctx, name, id)
			if len(es) > 0 && es[0].State == queue.Processing {
				if _, err := b.Store.Reap(ctx, queue.ReapOptions{Receipt: &es[0].Receipt}); err != nil {
					return queue.Delivery{}, err
				}
			}
			return b.Store.Load(ctx, name, id, o)
		}
	})},
	{"keys are forgotten", "keys/in order, one at a time", bend(func(b *bent) {
		b.enqueue = func(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
			m.Key = ""
			return b.Store.Enqueue(ctx, name, m)
		}
	})},
	{"a delay is rounded down", "enqueue/not before is rounded up to the millisecond", bend(func(b *bent) {
		b.enqueue = func(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
			m.NotBefore = m.NotBefore.Truncate(time.Millisecond)
			return b.Store.Enqueue(ctx, name, m)
		}
	})},
	{"keep replaces", "replace/keep gives the live one", bend(func(b *bent) {
		b.enqueue = func(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
			if m.IfExists == queue.Keep {
				m.IfExists = queue.Replace
			}
			return b.Store.Enqueue(ctx, name, m)
		}
	})},
	{"two of sixteen win", "enqueue/T22 sixteen at once", bend(func(b *bent) {
		b.enqueue = func(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
			if m.IfExists != queue.Refuse {
				return b.Store.Enqueue(ctx, name, m)
			}
			if _, err := b.Store.Show(ctx, name, m.ID); err == nil { // looked before it leapt
				return queue.Enqueued{}, queue.ErrDuplicate
			}
			runtime.Gosched()
			m.IfExists = queue.Replace
			return b.Store.Enqueue(ctx, name, m)
		}
	})},
	{"payloads are tidied", "payloads/T01 the same bytes at every stage", bend(func(b *bent) {
		b.enqueue = func(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
			var tidy bytes.Buffer
			if json.Compact(&tidy, m.Payload) == nil {
				m.Payload = tidy.Bytes()
			}
			return b.Store.Enqueue(ctx, name, m)
		}
	})},
	{"a pause does nothing", "pause/claims find nothing until it is resumed", bend(func(b *bent) {
		b.pause = func(context.Context, string) error { return nil }
	})},
}
