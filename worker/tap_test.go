package worker

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"example.com/holdfast/queue"
)

// A tap stands between a worker and its store: it notes the calls and lets a test
// put faults in their way.
type tap struct {
	queue.Store

	mu    sync.Mutex
	calls []string

	// before is asked before a call is made, with its text; an error is the answer.
	before func(call string) error
	// after may put another answer in the place of an Update's.
	after func(call string, outs []queue.Outcome, err error) ([]queue.Outcome, error)
}

func (c *tap) note(call string) error {
	c.mu.Lock()
	c.calls = append(c.calls, call)
	before := c.before
	c.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(call)
}

// heal ends the faults.
func (c *tap) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = nil
}

// made gives the calls so far and forgets them.
func (c *tap) made() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := c.calls
	c.calls = nil
	return made
}

func (c *tap) Update(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
	call := changesText(changes)
	if err := c.note(call); err != nil {
		return nil, err
	}
	outs, err := c.Store.Update(ctx, changes...)
	if c.after != nil {
		return c.after(call, outs, err)
	}
	return outs, err
}

func (c *tap) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	if err := c.note("reap " + strings.Join(o.Queues, " ")); err != nil {
		return nil, err
	}
	return c.Store.Reap(ctx, o)
}

func (c *tap) WaitDue(ctx context.Context, queues ...string) error {
	if err := c.note("wait " + strings.Join(queues, " ")); err != nil {
		return err
	}
	return c.Store.WaitDue(ctx, queues...)
}

func changesText(changes []queue.Change) string {
	var texts []string
	for _, c := range changes {
		switch c := c.(type) {
		case queue.ClaimChange:
			texts = append(texts, fmt.Sprintf("claim %s %d", c.Queue, c.Options.Max))
		case queue.AckChange:
			texts = append(texts, "ack "+c.Receipt.ID)
		case queue.RetryChange:
			texts = append(texts, "retry "+c.Receipt.ID)
		case queue.ReleaseChange:
			texts = append(texts, "release "+c.Receipt.ID)
		case queue.ExtendChange:
			texts = append(texts, "extend "+c.Receipt.ID)
		default:
			texts = append(texts, fmt.Sprintf("%T", c))
		}
	}
	return strings.Join(texts, ", ")
}
