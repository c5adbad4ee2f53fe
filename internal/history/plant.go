package history

import (
	"context"
	"sync"

	"example.com/holdfast/queue"
)

// A Bug makes a store wrong in one way, to prove that Check finds it out.
type Bug struct {
	Name string

	// Among are the steps among which it is found soonest. Nil: all. A bug that has some
	// is never met by a caller who is alone.
	Among []string

	plant func(f *faulty)
}

// Plant gives the store with the bug. The zero Bug is none.
func (b Bug) Plant(s queue.Store) queue.Store {
	f := &faulty{
		Store: s, enqueue: s.Enqueue, claim: s.Claim, ack: s.Ack, release: s.Release, retry: s.Retry,
		reap: s.Reap, pause: s.Pause, update: s.Update, status: s.Status,
	}
	if b.plant != nil {
		b.plant(f)
	}
	return f
}

// A faulty store makes some of its calls in a way of its own.
type faulty struct {
	queue.Store
	mu sync.Mutex

	enqueue func(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error)
	claim   func(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error)
	ack     func(ctx context.Context, r queue.Receipt) error
	release func(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error
	retry   func(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error)
	reap    func(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error)
	pause   func(ctx context.Context, name string) error
	update  func(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error)
	status  func(ctx context.Context, o queue.StatusOptions) (queue.Status, error)
}

func (f *faulty) Enqueue(ctx context.Context, name string, m queue.Message) (queue.Enqueued, error) {
	return f.enqueue(ctx, name, m)
}

func (f *faulty) Claim(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
	return f.claim(ctx, name, o)
}

func (f *faulty) Ack(ctx context.Context, r queue.Receipt) error {
	return f.ack(ctx, r)
}

func (f *faulty) Release(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
	return f.release(ctx, r, o)
}

func (f *faulty) Retry(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	return f.retry(ctx, r, o)
}

func (f *faulty) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	return f.reap(ctx, o)
}

func (f *faulty) Pause(ctx context.Context, name string) error {
	return f.pause(ctx, name)
}

func (f *faulty) Update(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
	return f.update(ctx, changes...)
}

func (f *faulty) Status(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
	return f.status(ctx, o)
}
