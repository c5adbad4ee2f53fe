//go:build unix

package peer

import (
	"context"
	"sync"
)

// A floor does for every call what a queue at least has to: it makes the bytes of the call
// durable, one way or another. What is pending it keeps in memory only, so it is no queue;
// no queue that makes its calls durable in that way is faster.
type floor struct {
	durable func(p []byte) error // one write that is durable when it returns
	close   func() error

	mu      sync.Mutex
	pending [][]byte
	claimed int
}

func (f *floor) write(payloads [][]byte) error {
	var all []byte
	for _, p := range payloads {
		all = append(all, p...)
	}
	return f.durable(all)
}

func (f *floor) Enqueue(_ context.Context, payloads ...[]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, payloads...)
	return f.write(payloads)
}

func (f *floor) Claim(ctx context.Context, n int) ([]Claim, error) {
	return f.AckAndClaim(ctx, nil, n)
}

func (f *floor) Ack(ctx context.Context, claims []Claim) error {
	_, err := f.AckAndClaim(ctx, claims, 0)
	return err
}

// AckAndClaim makes one write of both, so a joint message has two instead of three.
func (f *floor) AckAndClaim(_ context.Context, claims []Claim, n int) ([]Claim, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(n, len(f.pending))
	taken := f.pending[:n]
	f.pending = f.pending[n:]
	f.claimed += n - len(claims)
	got := make([]Claim, n)
	for i, p := range taken {
		got[i].Payload = p
	}
	return got, f.write(append(payloadsOf(claims), taken...))
}

func payloadsOf(claims []Claim) (payloads [][]byte) {
	for _, c := range claims {
		payloads = append(payloads, c.Payload)
	}
	return payloads
}

func (f *floor) Left(context.Context) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pending) + f.claimed, nil
}

func (f *floor) Close() error { return f.close() }

const chainedName = "floor: 3 × (overwrite, fdatasync, exchange), every third with fsync dir"
