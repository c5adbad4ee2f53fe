//go:build unix

package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/holdfast/bench/peer"
)

// A Size bounds a trial: no message is begun beyond either bound.
type Size struct {
	Messages int
	Limit    time.Duration
}

// A supply hands out the messages of one trial to its goroutines.
type supply struct {
	ledger *Ledger
	end    time.Time

	mu   sync.Mutex
	left int
	made int
}

func newSupply(l *Ledger, s Size) *supply {
	return &supply{ledger: l, end: time.Now().Add(s.Limit), left: s.Messages}
}

// take gives up to n messages; none when the trial is to end. The first is given however
// late it is, so that every trial has one.
func (s *supply) take(n int) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made > 0 && !time.Now().Before(s.end) {
		return nil
	}
	n = min(n, s.left)
	s.left -= n
	s.made += n
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = s.ledger.Next()
	}
	return payloads
}

// run does one trial and gives how many messages it had.
func run(ctx context.Context, w Workload, p peer.Peer, q peer.Queue, l *Ledger, size Size) (int, error) {
	s := newSupply(l, size)
	workers, batch := w.workers(), w.batch()
	if w.Joint && p.Chains != nil {
		next := func() []byte {
			for _, p := range s.take(1) {
				return p
			}
			return nil
		}
		err := p.Chains(ctx, q, workers, next, l.See)
		return s.made, err
	}
	if p.Floor {
		// What all of them would do at best: one write for all.
		workers, batch = 1, workers*batch
	}
	chain := single
	if w.Joint {
		chain = joint
	}
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { errs[i] = chain(ctx, q, s, batch) })
	}
	wg.Wait()
	return s.made, errors.Join(errs...)
}

// single enqueues, claims and acks, each by a call of its own.
func single(ctx context.Context, q peer.Queue, s *supply, batch int) error {
	for payloads := s.take(batch); len(payloads) > 0; payloads = s.take(batch) {
		if err := q.Enqueue(ctx, payloads...); err != nil {
			return err
		}
		claims, err := q.Claim(ctx, len(payloads))
		if err == nil {
			err = see(s.ledger, claims, len(payloads))
		}
		if err == nil {
			err = q.Ack(ctx, claims)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// joint acks each message by the call that claims the next.
func joint(ctx context.Context, q peer.Queue, s *supply, batch int) error {
	var held []peer.Claim
	for payloads := s.take(batch); len(payloads) > 0; payloads = s.take(batch) {
		if err := q.Enqueue(ctx, payloads...); err != nil {
			return err
		}
		claims, err := q.AckAndClaim(ctx, held, len(payloads))
		if err == nil {
			err = see(s.ledger, claims, len(payloads))
		}
		if err != nil {
			return err
		}
		held = claims
	}
	if len(held) == 0 {
		return nil
	}
	return q.Ack(ctx, held)
}

// see takes down the deliveries of a claim. Every goroutine has enqueued what it claims,
// so that there is something for each.
func see(l *Ledger, claims []peer.Claim, want int) error {
	for _, c := range claims {
		if err := l.See(c.Payload); err != nil {
			return err
		}
	}
	if len(claims) != want {
		return fmt.Errorf("a claim found %d messages where at least %d were pending", len(claims), want)
	}
	return nil
}
