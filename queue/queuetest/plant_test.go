package queuetest_test

import (
	"context"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/queuetest"
)

// A bent store is a sound one of which some calls are bent.
type bent struct {
	queue.Store
	e queuetest.Engine // the sound one

	enqueue     func(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error)
	batch       func(ctx context.Context, name string, ms []queue.Message) ([]queue.Enqueued, error)
	claim       func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error)
	load        func(ctx context.Context, name, id string, o queue.LoadOptions) (queue.Delivery, error)
	ack         func(ctx context.Context, r queue.Receipt) error
	release     func(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error
	retry       func(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error)
	fail        func(ctx context.Context, r queue.Receipt, o queue.FailOptions) (string, error)
	reap        func(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error)
	reprocess   func(ctx context.Context, name string, o queue.ReprocessOptions) error
	clear       func(ctx context.Context, name string, o queue.ClearOptions) (uint64, error)
	pause       func(ctx context.Context, name string) error
	namespace   func(ctx context.Context, name, space string) error
	update      func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error)
	peek        func(ctx context.Context, name string, n int) ([]queue.Entry, error)
	listFailed  func(ctx context.Context, f queue.FailedOptions, o queue.ListOptions) (queue.Page, error)
	status      func(ctx context.Context, o queue.StatusOptions) (queue.Status, error)
	wait        func(ctx context.Context, o queue.WaitOptions) (queue.Status, error)
	waitDue     func(ctx context.Context, names ...string) error
	closeItself func() error
}

// bend gives a store that is sound until bends bends it.
func bend(bends func(b *bent)) func(e queuetest.Engine) queue.Store {
	return func(e queuetest.Engine) queue.Store {
		s := e.Store
		b := &bent{
			Store: s, e: e,
			enqueue: s.Enqueue, batch: s.EnqueueBatch, claim: s.Claim, load: s.Load, ack: s.Ack, release: s.Release, retry: s.Retry,
			fail: s.Fail, reap: s.Reap, reprocess: s.Reprocess, clear: s.Clear, pause: s.Pause, namespace: s.SetFailedNamespace,
			update: s.Update, peek: s.Peek, listFailed: s.ListFailed, status: s.Status, wait: s.Wait, waitDue: s.WaitDue, closeItself: s.Close,
		}
		bends(b)
		return b
	}
}

func (b *bent) Enqueue(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
	return b.enqueue(ctx, name, m)
}

func (b *bent) EnqueueBatch(ctx context.Context, name string, ms []queue.Message) ([]queue.Enqueued, error) {
	return b.batch(ctx, name, ms)
}

func (b *bent) Claim(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
	return b.claim(ctx, name, o)
}

func (b *bent) Load(ctx context.Context, name, id string, o queue.LoadOptions) (queue.Delivery, error) {
	return b.load(ctx, name, id, o)
}

func (b *bent) Ack(ctx context.Context, r queue.Receipt) error { return b.ack(ctx, r) }

func (b *bent) Release(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
	return b.release(ctx, r, o)
}

func (b *bent) Retry(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	return b.retry(ctx, r, o)
}

func (b *bent) Fail(ctx context.Context, r queue.Receipt, o queue.FailOptions) (string, error) {
	return b.fail(ctx, r, o)
}

func (b *bent) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	return b.reap(ctx, o)
}

func (b *bent) Reprocess(ctx context.Context, name string, o queue.ReprocessOptions) error {
	return b.reprocess(ctx, name, o)
}

func (b *bent) Clear(ctx context.Context, name string, o queue.ClearOptions) (uint64, error) {
	return b.clear(ctx, name, o)
}

func (b *bent) Pause(ctx context.Context, name string) error { return b.pause(ctx, name) }

func (b *bent) SetFailedNamespace(ctx context.Context, name, space string) error {
	return b.namespace(ctx, name, space)
}

func (b *bent) Update(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
	return b.update(ctx, changes...)
}

func (b *bent) Peek(ctx context.Context, name string, n int) ([]queue.Entry, error) {
	return b.peek(ctx, name, n)
}

func (b *bent) ListFailed(ctx context.Context, f queue.FailedOptions, o queue.ListOptions) (queue.Page, error) {
	return b.listFailed(ctx, f, o)
}

func (b *bent) Status(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
	return b.status(ctx, o)
}

func (b *bent) Wait(ctx context.Context, o queue.WaitOptions) (queue.Status, error) {
	return b.wait(ctx, o)
}

func (b *bent) WaitDue(ctx context.Context, names ...string) error { return b.waitDue(ctx, names...) }

func (b *bent) Close() error { return b.closeItself() }
