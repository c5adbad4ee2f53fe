//go:build unix

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

// Bounds of the API that are narrower than the contract's.
const (
	maxLease = 24 * time.Hour // a client that lives extends it
	maxClaim = 100            // whose payloads are all in one answer,
	maxBytes = 16 << 20       // together, but for the first
)

type messageIn struct {
	ID        string          `json:"id" doc:"left out: a new UUID. With an ID of your own and if_exists keep, an enqueue may be sent again until it is answered"`
	Payload   json.RawMessage `json:"payload" required:"true" doc:"any JSON value"`
	Key       string          `json:"key" doc:"messages of one key are delivered in order and one at a time"`
	NotBefore *time.Time      `json:"not_before" doc:"the time from which it is due"`
	DelayMS   int64           `json:"delay_ms" doc:"or how long until it is due, in milliseconds"`
	IfExists  string          `json:"if_exists" doc:"what to do when the ID is live: refuse (the default), keep or replace"`
}

func (m messageIn) message() (queue.Message, error) {
	out := queue.Message{ID: m.ID, Payload: m.Payload, Key: m.Key}
	var err error
	if m.IfExists != "" {
		if out.IfExists, err = queue.ParseIfExists(m.IfExists); err != nil {
			return out, err
		}
	}
	delay, err := delayOf(m.DelayMS)
	switch {
	case err != nil:
		return out, err
	case m.NotBefore != nil && delay > 0:
		return out, badf("give not_before or delay_ms, not both")
	case m.NotBefore != nil:
		out.NotBefore = *m.NotBefore
	case delay > 0:
		out.NotBefore = time.Now().Add(delay)
	}
	return out, nil
}

type enqueueIn struct {
	Queue string `json:"queue" required:"true"`
	messageIn
}

func enqueue(ctx context.Context, s *Server, in enqueueIn) (forms.Enqueued, error) {
	m, err := in.message()
	if err != nil {
		return forms.Enqueued{}, err
	}
	done, err := s.Store.Enqueue(ctx, in.Queue, m)
	u, err := s.certain(ctx, err)
	if u != nil && len(u.Enqueued) > 0 {
		done = u.Enqueued[0]
	}
	return forms.Enqueued(done), err
}

type enqueueBatchIn struct {
	Queue    string      `json:"queue" required:"true"`
	Messages []messageIn `json:"messages" required:"true" doc:"10,000 at most"`
}

type enqueueBatchOut struct {
	Enqueued []forms.Enqueued `json:"enqueued" doc:"in the order of the batch"`
}

func enqueueBatch(ctx context.Context, s *Server, in enqueueBatchIn) (enqueueBatchOut, error) {
	if n := len(in.Messages); n == 0 || n > queue.MaxUpdate {
		return enqueueBatchOut{}, badf("a batch of %d messages: from 1 to %d", n, queue.MaxUpdate)
	}
	ms := make([]queue.Message, len(in.Messages))
	for i := range ms {
		var err error
		if ms[i], err = in.Messages[i].message(); err != nil {
			return enqueueBatchOut{}, &queue.BatchError{Refused: []queue.Refusal{{Index: i, Err: err}}}
		}
	}
	done, err := s.Store.EnqueueBatch(ctx, in.Queue, ms)
	u, err := s.certain(ctx, err)
	if u != nil {
		done = u.Enqueued
	}
	return enqueueBatchOut{enqueuedLines(done)}, err
}

type leaseIn struct {
	LeaseMS int64  `json:"lease_ms" required:"true" doc:"how long the claim holds, in milliseconds; 24 hours at most. There is no claim without a deadline here"`
	Label   string `json:"label" doc:"who claims, for people who look"`
}

type claimIn struct {
	Queue string `json:"queue" required:"true"`
	leaseIn
	Max    int   `json:"max" doc:"the most messages, 100 at most. Left out: 1. Fewer come where their payloads would be more than 16 MiB together"`
	Fair   bool  `json:"fair" doc:"rotate over the keys in place of the oldest first"`
	WaitMS int64 `json:"wait_ms" doc:"how long to wait for a message when none is due, 25,000 at most"`
}

func claim(ctx context.Context, s *Server, in claimIn) (claimedLine, error) {
	lease, err := leaseOf(in.LeaseMS)
	switch {
	case err != nil:
		return claimedLine{}, err
	case in.Max < 0 || in.Max > maxClaim:
		return claimedLine{}, badf("max is %d: from 1 to %d", in.Max, maxClaim)
	case in.WaitMS < 0 || in.WaitMS > maxWait.Milliseconds():
		return claimedLine{}, badf("wait_ms is %d: from 0 to %d", in.WaitMS, maxWait.Milliseconds())
	}
	o := queue.ClaimOptions{Max: in.Max, MaxBytes: maxBytes, Lease: lease, Label: in.Label, Fair: in.Fair, WithoutHolder: true}
	waits, done := context.WithTimeout(ctx, time.Duration(in.WaitMS)*time.Millisecond)
	defer done()
	defer context.AfterFunc(s.ending, done)()
	for parked := false; ; {
		l, err := s.claimNow(ctx, in.Queue, o)
		if err != nil || len(l.Deliveries)+len(l.Damaged) > 0 || waits.Err() != nil {
			return l, err
		}
		if !parked { // what is due needs no room among those who wait
			select {
			case s.waits <- struct{}{}:
				parked = true
				defer func() { <-s.waits }()
			default:
				return l, &ownError{"too_many_waits", fmt.Sprintf("nothing is due, and %d claims wait already: ask again later, or without wait_ms", cap(s.waits))}
			}
		}
		if err := s.waitDue(waits, in.Queue); err != nil {
			if waits.Err() == nil || ctx.Err() != nil {
				return l, err
			}
			return l, nil // its time is over: nothing was due
		}
	}
}

// waitDue waits for a message, at most until it is time to reap again: that a lease is over
// tells the store nothing.
func (s *Server) waitDue(ctx context.Context, name string) error {
	step, done := context.WithTimeout(ctx, reapEvery)
	defer done()
	err := s.Store.WaitDue(step, name)
	if err != nil && step.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// claimNow claims what is due. Leases that are over are reaped before: nobody else may do
// it where all workers are clients of this server.
func (s *Server) claimNow(ctx context.Context, name string, o queue.ClaimOptions) (claimedLine, error) {
	if err := queue.CheckQueue(name); err != nil {
		return claimedLine{}, err
	}
	_, err := s.Store.Reap(ctx, queue.ReapOptions{Queues: []string{name}})
	if _, err = s.certain(ctx, err); err != nil {
		return claimedLine{}, err
	}
	c, err := s.Store.Claim(ctx, name, o)
	u, err := s.certain(ctx, err)
	if err != nil {
		return claimedLine{}, err
	}
	if u != nil {
		c = queue.Claimed{Deliveries: u.Deliveries, Damaged: u.Damaged}
	}
	if err := s.stillThere(ctx, c.Deliveries); err != nil {
		return claimedLine{}, err
	}
	return claimedOf(c.Deliveries, c.Damaged), nil
}

// stillThere releases what was claimed for a client that has gone meanwhile, and says that
// it has: nobody could have the messages before their deadline else. Where that fails, or
// the client goes only now, they come back then.
func (s *Server) stillThere(ctx context.Context, claimed []queue.Delivery) error {
	if len(claimed) == 0 || ctx.Err() != context.Canceled {
		return nil
	}
	var all []queue.Change
	for _, d := range claimed {
		all = append(all, queue.ReleaseChange{Receipt: d.Receipt})
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveWithin)
	defer cancel()
	_, _ = s.Store.Update(own, all...) // there is nobody to tell
	return ctx.Err()
}

type loadIn struct {
	Queue string `json:"queue" required:"true"`
	ID    string `json:"id" required:"true"`
	leaseIn
}

func load(ctx context.Context, s *Server, in loadIn) (deliveryLine, error) {
	lease, err := leaseOf(in.LeaseMS)
	if err != nil {
		return deliveryLine{}, err
	}
	d, err := s.Store.Load(ctx, in.Queue, in.ID, queue.LoadOptions{Lease: lease, Label: in.Label, WithoutHolder: true})
	u, err := s.certain(ctx, err)
	switch {
	case err != nil:
		return deliveryLine{}, err
	case u != nil && len(u.Damaged) > 0:
		return deliveryLine{}, u.Damaged[0]
	case u != nil && len(u.Deliveries) == 0:
		return deliveryLine{}, errors.New("the load happened, and what it gave is not known; load it again when its lease is over")
	case u != nil:
		d = u.Deliveries[0]
	}
	if err := s.stillThere(ctx, []queue.Delivery{d}); err != nil {
		return deliveryLine{}, err
	}
	return deliveryOf(d), nil
}

type receiptIn struct {
	Receipt string `json:"receipt" required:"true" doc:"as the claim gave it"`
}

// settle runs do with the receipt, and gives what an uncertain call that did happen would
// have returned.
func (s *Server) settle(ctx context.Context, text string, do func(queue.Receipt) error) (*queue.UncertainError, error) {
	r, err := queue.ParseReceipt(text)
	if err != nil {
		return nil, err
	}
	return s.certain(ctx, do(r))
}

func ack(ctx context.Context, s *Server, in receiptIn) (nothing, error) {
	_, err := s.settle(ctx, in.Receipt, func(r queue.Receipt) error { return s.Store.Ack(ctx, r) })
	return nothing{}, err
}

type releaseIn struct {
	receiptIn
	DelayMS int64 `json:"delay_ms" doc:"until it is due again, in milliseconds. Left out: at once"`
}

func release(ctx context.Context, s *Server, in releaseIn) (nothing, error) {
	delay, err := delayOf(in.DelayMS)
	if err != nil {
		return nothing{}, err
	}
	_, err = s.settle(ctx, in.Receipt, func(r queue.Receipt) error {
		return s.Store.Release(ctx, r, queue.ReleaseOptions{Delay: delay})
	})
	return nothing{}, err
}

type retryIn struct {
	receiptIn
	DelayMS     int64  `json:"delay_ms" doc:"until it is due again, in milliseconds. Left out: at once"`
	MaxFailures uint64 `json:"max_failures" doc:"at this many real failures, this one among them, it is failed. Left out: 20"`
	Cause       string `json:"cause" doc:"kept as the last error, cut at 1 KiB"`
}

func retry(ctx context.Context, s *Server, in retryIn) (out returnedLine, err error) {
	delay, err := delayOf(in.DelayMS)
	if err != nil {
		return out, err
	}
	var back queue.Returned
	u, err := s.settle(ctx, in.Receipt, func(r queue.Receipt) (err error) {
		back, err = s.Store.Retry(ctx, r, queue.RetryOptions{Delay: delay, MaxFailures: in.MaxFailures, Cause: in.Cause})
		return err
	})
	if u != nil && len(u.Returned) > 0 {
		back = u.Returned[0]
	}
	return returnedOf(back), err
}

type extendIn struct {
	receiptIn
	LeaseMS int64 `json:"lease_ms" required:"true" doc:"from now, in milliseconds; 24 hours at most"`
}

type extendOut struct {
	Deadline *time.Time `json:"deadline"`
}

func extend(ctx context.Context, s *Server, in extendIn) (out extendOut, err error) {
	lease, err := leaseOf(in.LeaseMS)
	if err != nil {
		return out, err
	}
	var deadline time.Time
	u, err := s.settle(ctx, in.Receipt, func(r queue.Receipt) (err error) {
		deadline, err = s.Store.Extend(ctx, r, lease)
		return err
	})
	if u != nil {
		deadline = u.Deadline
	}
	return extendOut{forms.OrNull(deadline)}, err
}

type failIn struct {
	receiptIn
	Cause string `json:"cause" doc:"kept as the last error, cut at 1 KiB"`
	As    string `json:"as" doc:"the failed name. Left out: the ID"`
}

type failOut struct {
	FailedName string `json:"failed_name"`
}

func fail(ctx context.Context, s *Server, in failIn) (failOut, error) {
	name := ""
	u, err := s.settle(ctx, in.Receipt, func(r queue.Receipt) (err error) {
		name, err = s.Store.Fail(ctx, r, queue.FailOptions{Cause: in.Cause, As: in.As})
		return err
	})
	if u != nil {
		name = u.Failed
	}
	return failOut{name}, err
}

func leaseOf(ms int64) (time.Duration, error) {
	if ms < 1 || ms > maxLease.Milliseconds() {
		return 0, badf("lease_ms is %d: from 1 to %d; a claim through this server must have a deadline, for nobody can prove its client dead", ms, maxLease.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func delayOf(ms int64) (time.Duration, error) {
	if ms < 0 || ms > queue.MaxLease.Milliseconds() {
		return 0, badf("delay_ms is %d: from 0 to %d", ms, queue.MaxLease.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}
