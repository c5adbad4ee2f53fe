package worker

import (
	"context"
	"fmt"
	"reflect"

	"example.com/holdfast/queue"
)

// Run consumes a queue until ctx is cancelled, drains, and returns nil: every message
// that it claimed is then settled or released, durably. A message whose handler was
// still running when the drain was over has been released too; that handler may run on.
//
// An error says that going on is useless, or that something is left: queue.ErrInvalid
// for bad options, a *[StoreError] when the store needs someone, an *[UnsettledError]
// for claims that the store let nobody settle in the end. Run may be called again.
func Run[T any](ctx context.Context, q queue.Queue[T], h Handler[T], o Options) error {
	g := NewGroup(q.Store(), o.group())
	Add(g, q, h, o.queue())
	return g.Run(ctx)
}

// A Group consumes several queues of one store with one set of slots. It is made with
// [NewGroup], filled with [Add], and then run.
type Group struct {
	store   queue.Store
	o       GroupOptions
	sources []source
	err     error // the first that Add met
}

// NewGroup makes a group without queues. Options are checked by [Group.Run].
func NewGroup(store queue.Store, o GroupOptions) *Group { return &Group{store: store, o: o} }

// Add puts a queue into a group, before it is run. In a strict group the order of Add
// is that of priority. What is wrong with the arguments is an error of [Group.Run].
func Add[T any](g *Group, q queue.Queue[T], h Handler[T], o QueueOptions) {
	s := source{name: q.Name(), o: o}
	if h != nil {
		s.run = typed(q, h)
	}
	if err := g.add(s, q.Store()); err != nil && g.err == nil {
		g.err = fmt.Errorf("queue %q: %w", q.Name(), err)
	}
}

// Run is [Run] for the queues of the group.
func (g *Group) Run(ctx context.Context) error {
	if g.err != nil {
		return g.err
	}
	o, err := g.o.checked()
	if err != nil {
		return err
	}
	if len(g.sources) == 0 {
		return fmt.Errorf("a group without a queue: %w", queue.ErrInvalid)
	}
	return newWorker(ctx, g.store, g.sources, o).run(ctx)
}

func (g *Group) add(s source, store queue.Store) error {
	switch {
	case store == nil || g.store == nil:
		return fmt.Errorf("no store: %w", queue.ErrInvalid)
	case !same(store, g.store):
		return fmt.Errorf("it belongs to another store than the group: %w", queue.ErrInvalid)
	case s.run == nil:
		return fmt.Errorf("no handler: %w", queue.ErrInvalid)
	}
	if err := queue.CheckQueue(s.name); err != nil {
		return err
	}
	for _, other := range g.sources {
		if other.name == s.name {
			return fmt.Errorf("it is in the group already: %w", queue.ErrInvalid)
		}
	}
	var err error
	if s.o, err = s.o.checked(); err != nil {
		return err
	}
	g.sources = append(g.sources, s)
	return nil
}

// same compares two stores; of a type that cannot be compared any two pass.
func same(a, b queue.Store) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && (!reflect.TypeOf(a).Comparable() || a == b)
}

// A source is one queue of a group, the type of its values erased.
type source struct {
	name string
	o    QueueOptions
	run  func(context.Context, queue.Delivery) error

	// The loop's own from here on.
	dry    bool     // a claim found less than it asked for, and nothing became due since
	claims patience // with claims that fail
}

// typed makes the function that decodes a delivery and calls the handler. It runs in
// the handler's goroutine: decoding calls methods of T, which are foreign code too.
func typed[T any](q queue.Queue[T], h Handler[T]) func(context.Context, queue.Delivery) error {
	return func(ctx context.Context, d queue.Delivery) error {
		value, err := q.Decode(d)
		if err != nil {
			return Fail(err) // no later attempt could do better; the bytes stay
		}
		return h(ctx, &queue.Received[T]{Delivery: d, Value: value})
	}
}
