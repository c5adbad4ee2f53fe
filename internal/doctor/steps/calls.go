package steps

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"example.com/holdfast/queue"
)

func enqueueOne(s *State, _ *rand.Rand) step {
	id, body := s.fresh(0)
	return step{"enqueue " + id, func(after *State) {
		after.bodies++
		after.enqueue(id, body)
	}, func(ctx context.Context, q queue.Store, _ *State) error {
		_, err := q.Enqueue(ctx, Queue, queue.Message{ID: id, Payload: payload(s.Seed, body)})
		return err
	}}
}

func enqueueSome(s *State, _ *rand.Rand) step {
	const n = 3
	first, _ := s.fresh(0)
	return step{"enqueue three from " + first, func(after *State) {
		for i := range uint64(n) {
			id, body := s.fresh(i)
			after.enqueue(id, body)
		}
		after.bodies += n
	}, func(ctx context.Context, q queue.Store, _ *State) error {
		var ms []queue.Message
		for i := range uint64(n) {
			id, body := s.fresh(i)
			ms = append(ms, queue.Message{ID: id, Payload: payload(s.Seed, body)})
		}
		_, err := q.EnqueueBatch(ctx, Queue, ms)
		return err
	}}
}

func replaceOne(s *State, r *rand.Rand) step {
	id := s.some(r, func(m message) bool { return !m.leased && !m.returned })
	_, body := s.fresh(0)
	return step{"replace " + id, func(after *State) {
		after.bodies++
		after.supersede(id, body)
	}, func(ctx context.Context, q queue.Store, _ *State) error {
		_, err := q.Enqueue(ctx, Queue, queue.Message{ID: id, Payload: payload(s.Seed, body), IfExists: queue.Replace})
		return err
	}}
}

func claimSome(_ *State, r *rand.Rand) step {
	n := 1 + r.IntN(2)
	var want []string
	return step{fmt.Sprintf("claim %d", n), func(after *State) {
		want = after.claim(n)
	}, func(ctx context.Context, q queue.Store, after *State) error {
		got, err := q.Claim(ctx, Queue, claiming(n))
		if err != nil {
			return err
		}
		return after.claimed(got, want)
	}}
}

// claimed compares what a claim gave with what it had to give.
func (s *State) claimed(got queue.Claimed, want []string) error {
	var ids []string
	for _, d := range got.Deliveries {
		ids = append(ids, d.Receipt.ID)
		if i := s.find(d.Receipt.ID); i >= 0 && string(d.Payload) != string(payload(s.Seed, s.live[i].body)) {
			return fmt.Errorf("%s came with another payload: %w", d.Receipt.ID, ErrDiverged)
		}
	}
	if !slices.Equal(ids, want) || len(got.Damaged) > 0 {
		return fmt.Errorf("it gave %v and %d damaged, not %v: %w", ids, len(got.Damaged), want, ErrDiverged)
	}
	return nil
}

// settle makes a step of a call that takes the receipt of a leased message.
func settle(name, id string, apply func(*State), call func(context.Context, queue.Store, queue.Receipt) error) step {
	return step{name + " " + id, apply, func(ctx context.Context, q queue.Store, _ *State) error {
		r, err := receiptOf(ctx, q, id)
		if err != nil {
			return err
		}
		return call(ctx, q, r)
	}}
}

// receiptOf asks the store for the receipt of a leased message: who began with the script
// may be dead.
func receiptOf(ctx context.Context, q queue.Store, id string) (queue.Receipt, error) {
	entries, err := q.Show(ctx, Queue, id)
	if err != nil {
		return queue.Receipt{}, err
	}
	for _, e := range entries {
		if e.State == queue.Processing {
			return e.Receipt, nil
		}
	}
	return queue.Receipt{}, fmt.Errorf("%s is not leased: %w", id, ErrDiverged)
}

func ackOne(s *State, r *rand.Rand) step {
	id := s.someLeased(r)
	return settle("ack", id, func(after *State) { after.ack(id) },
		func(ctx context.Context, q queue.Store, r queue.Receipt) error { return q.Ack(ctx, r) })
}

// retryOne never meets the cap: a message that has failed often is acked in its place.
func retryOne(s *State, r *rand.Rand) step {
	id := s.someLeased(r)
	if m := s.live[s.find(id)]; m.attempts-m.excused >= 10 {
		return ackOne(s, r)
	}
	cause := fmt.Sprintf("retried by step %d", s.Steps+1)
	return settle("retry", id, func(after *State) {
		after.counters.Retried++
		after.giveBack(id, 0, cause)
	}, func(ctx context.Context, q queue.Store, r queue.Receipt) error {
		_, err := q.Retry(ctx, r, queue.RetryOptions{Cause: cause})
		return err
	})
}

func releaseOne(s *State, r *rand.Rand) step {
	id := s.someLeased(r)
	return settle("release", id, func(after *State) {
		after.counters.Released++
		after.giveBack(id, 1, "")
	}, func(ctx context.Context, q queue.Store, r queue.Receipt) error {
		return q.Release(ctx, r, queue.ReleaseOptions{})
	})
}

func failOne(s *State, r *rand.Rand) step {
	id := s.someLeased(r)
	cause := fmt.Sprintf("failed by step %d", s.Steps+1)
	return settle("fail", id, func(after *State) { after.fail(id, cause) },
		func(ctx context.Context, q queue.Store, r queue.Receipt) error {
			_, err := q.Fail(ctx, r, queue.FailOptions{Cause: cause})
			return err
		})
}

func reprocessOne(s *State, r *rand.Rand) step {
	id := s.failed[r.IntN(len(s.failed))].id
	return step{"reprocess " + id, func(after *State) { after.reprocess(id) },
		func(ctx context.Context, q queue.Store, _ *State) error {
			return q.Reprocess(ctx, id, queue.ReprocessOptions{})
		}}
}

func purgeOne(s *State, r *rand.Rand) step {
	id := s.failed[r.IntN(len(s.failed))].id
	return step{"purge " + id, func(after *State) {
		after.purge(id)
		after.counters.Purged++
	}, func(ctx context.Context, q queue.Store, _ *State) error {
		return q.Purge(ctx, id, queue.PurgeOptions{})
	}}
}

// updateAll settles one message, enqueues another and claims the next, in one commit.
func updateAll(s *State, r *rand.Rand) step {
	old := s.someLeased(r)
	id, body := s.fresh(0)
	var want []string
	return step{"update: ack " + old + ", enqueue " + id + ", claim 1", func(after *State) {
		after.bodies++
		after.ack(old)
		after.enqueue(id, body)
		want = after.claim(1)
	}, func(ctx context.Context, q queue.Store, after *State) error {
		receipt, err := receiptOf(ctx, q, old)
		if err != nil {
			return err
		}
		got, err := q.Update(ctx, queue.AckChange{Receipt: receipt},
			queue.EnqueueChange{Queue: Queue, Message: queue.Message{ID: id, Payload: payload(s.Seed, body)}},
			queue.ClaimChange{Queue: Queue, Options: claiming(1)})
		if err != nil {
			return err
		}
		return after.claimed(got[2].Claimed, want)
	}}
}
