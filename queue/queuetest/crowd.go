package queuetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"example.com/holdfast/queue"
)

var crowdTrials = []trial{
	{"T13 every snapshot adds up", crowdSnapshots},
	{"T13 never complete while a message is unacked", crowdComplete},
	{"each message is settled once", crowdOnce},
}

// A crowd is many workers on one queue, and what they have begun and done.
type crowd struct {
	s        *scene
	messages int
	begun    atomic.Int64 // settlements for good, counted before the call
	acked    sync.Map     // by ID
	twice    atomic.Value // an ID that was acked twice
	polled   atomic.Int64 // snapshots so far
	blind    atomic.Bool  // nobody polls any more
}

// crowded enqueues the messages and lets the workers at them, until all have left
// the queue. Some retry, some release, some fail, some stall and are reaped.
func (s *scene) crowded(messages, workers int, beside func(c *crowd, done <-chan struct{}) error) *crowd {
	s.Helper()
	c := &crowd{s: s, messages: messages}
	var ms []queue.Message
	for i := range messages {
		m := message(strconv.Itoa(i))
		if i%3 == 0 {
			m.Key = fmt.Sprint("key ", i%7)
		}
		ms = append(ms, m)
	}
	s.enqueueBatch(mail, ms...)
	done := make(chan struct{})
	var left atomic.Int64
	left.Store(int64(workers))
	errs := s.together(workers+1, func(i int) error {
		if i == workers {
			return beside(c, done)
		}
		err := c.work()
		if left.Add(-1) == 0 {
			close(done)
		}
		return err
	})
	for _, err := range errs {
		s.must(err)
	}
	return c
}

// work settles messages until nothing is unacked.
func (c *crowd) work() error {
	ctx, store := c.s.ctx, c.s.Store
	for c.begun.Load() < int64(c.messages) {
		claimed, err := store.Claim(ctx, mail, queue.ClaimOptions{Max: 3})
		if err != nil {
			return err
		}
		for _, d := range claimed.Deliveries {
			if err := c.settle(ctx, store, d); err != nil {
				return fmt.Errorf("%s: %w", d.Receipt, err)
			}
		}
		runtime.Gosched()
	}
	return nil
}

// settle treats a message by its number and attempt.
func (c *crowd) settle(ctx context.Context, store queue.Store, d queue.Delivery) error {
	n, err := strconv.Atoi(d.Receipt.ID)
	if err != nil {
		return err
	}
	if n%4 == 0 || n > c.messages-16 {
		c.awaitSnapshot()
	}
	switch first := d.Attempt() == 1; {
	case first && n%5 == 1:
		_, err = store.Retry(ctx, d.Receipt, queue.RetryOptions{Cause: "no"})
		return err
	case first && n%5 == 2:
		return store.Release(ctx, d.Receipt, queue.ReleaseOptions{})
	case first && n%5 == 3:
		_, err = store.Reap(ctx, queue.ReapOptions{Receipt: &d.Receipt})
		return err
	case n%20 == 4:
		c.begun.Add(1)
		_, err = store.Fail(ctx, d.Receipt, queue.FailOptions{Cause: "no"})
		return err
	}
	if _, twice := c.acked.LoadOrStore(d.Receipt.ID, true); twice {
		c.twice.Store(d.Receipt.ID)
	}
	c.begun.Add(1)
	if n%2 == 0 {
		_, err = store.Update(ctx, queue.AckChange{Receipt: d.Receipt})
		return err
	}
	return store.Ack(ctx, d.Receipt)
}

// awaitSnapshot returns when a whole snapshot was taken since it was called, so that
// claims are seen by one, the last of them while nothing else is left.
func (c *crowd) awaitSnapshot() {
	for before := c.polled.Load(); c.polled.Load() < before+2 && !c.blind.Load(); {
		runtime.Gosched()
	}
}

// poll asks for the status in a tight loop and once more at the end.
func (c *crowd) poll(done <-chan struct{}, see func(st queue.Status) error) error {
	defer c.blind.Store(true)
	for last := false; ; c.polled.Add(1) {
		select {
		case <-done:
			last = true
		default:
		}
		st, err := c.s.Store.Status(c.s.ctx, queue.StatusOptions{Queues: []string{mail}})
		if err != nil {
			return err
		}
		if err := see(st); err != nil || last {
			return err
		}
	}
}

func crowdSnapshots(s *scene) {
	var revision uint64
	var before queue.Counters
	s.crowded(200, 8, func(c *crowd, done <-chan struct{}) error {
		return c.poll(done, func(st queue.Status) error {
			q := st.Queues[mail]
			n := q.Counters
			switch {
			case q.Pending != q.Ready+q.Scheduled+q.Blocked,
				n.Enqueued+n.Reprocessed-n.Superseded-n.Completed-n.Failed-n.Cleared != q.Unacked(),
				n.Failed-n.Reprocessed-n.Purged != q.Failed,
				n.Claimed-n.Completed-n.Retried-n.Released-n.Reaped-n.Failed != q.Processing:
				return fmt.Errorf("a snapshot does not add up: %+v", q)
			case st.Revision < revision, n.Claimed < before.Claimed, n.Completed < before.Completed:
				return fmt.Errorf("a snapshot of revision %d, %+v, came after one of %d, %+v", st.Revision, n, revision, before)
			}
			revision, before = st.Revision, n
			return nil
		})
	})
	s.gauged(mail, gauges{failed: 10})
}

func crowdComplete(s *scene) {
	s.crowded(100, 8, func(c *crowd, done <-chan struct{}) error {
		return c.poll(done, func(st queue.Status) error {
			if begun := c.begun.Load(); st.Complete() && begun < int64(c.messages) {
				return fmt.Errorf("complete, with %d of %d settled: %+v", begun, c.messages, st.Queues[mail])
			}
			return nil
		})
	})
	equal(s, "complete", s.status(mail).Complete(), true)
}

func crowdOnce(s *scene) {
	c := s.crowded(100, 8, func(c *crowd, _ <-chan struct{}) error {
		c.blind.Store(true)
		st, err := s.Store.Wait(s.ctx, queue.WaitOptions{Queues: []string{mail}})
		if begun := c.begun.Load(); err == nil && begun < int64(c.messages) {
			return fmt.Errorf("wait returned with %d of %d settled: %+v", begun, c.messages, st.Queues[mail])
		}
		return err
	})
	if id := c.twice.Load(); id != nil {
		s.Fatalf("%v was delivered again after its ack", id)
	}
	n := s.status(mail).Counters
	if n.Completed != 95 || n.Failed != 5 || n.Retried != 20 || n.Released != 20 || n.Reaped != 20 {
		s.Fatalf("counters %+v", n)
	}
	errs := []error{}
	c.acked.Range(func(id, _ any) bool {
		_, err := s.Store.Show(s.ctx, mail, id.(string))
		errs = append(errs, err)
		return true
	})
	for _, err := range errs {
		if !errors.Is(err, queue.ErrNotFound) {
			s.Fatalf("an acked message shows: %v", err)
		}
	}
}
