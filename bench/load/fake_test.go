//go:build unix

package load

import (
	"context"
	"slices"
	"sync"

	"example.com/holdfast/bench/peer"
)

// A fake is a queue in memory, with a bug where one was planted.
type fake struct {
	bug string

	mu       sync.Mutex
	enqueued int
	pending  [][]byte
	claimed  int
}

func fakePeer(bug string) peer.Peer {
	q := &fake{bug: bug} // it outlives being closed
	return peer.Peer{Key: "fake", Name: "fake", Open: func(context.Context, string) (peer.Queue, error) { return q, nil }}
}

func (f *fake) Enqueue(_ context.Context, payloads ...[]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range payloads {
		f.enqueued++
		third := f.enqueued%3 == 0
		switch {
		case f.bug == "loses" && third:
			continue
		case f.bug == "doubles" && third:
			f.pending = append(f.pending, p)
		case f.bug == "alters" && third:
			p = slices.Clone(p)
			p[len(p)-5] ^= 1
		case f.bug == "invents" && third:
			p = payload(1 << 40)
		}
		f.pending = append(f.pending, p)
	}
	return nil
}

func (f *fake) Claim(_ context.Context, n int) ([]peer.Claim, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(n, len(f.pending))
	claims := make([]peer.Claim, n)
	for i := range claims {
		claims[i].Payload = f.pending[i]
	}
	f.pending = f.pending[n:]
	f.claimed += n
	return claims, nil
}

func (f *fake) Ack(_ context.Context, claims []peer.Claim) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bug != "forgets acks" {
		f.claimed -= len(claims)
	}
	return nil
}

func (f *fake) AckAndClaim(ctx context.Context, claims []peer.Claim, n int) ([]peer.Claim, error) {
	if err := f.Ack(ctx, claims); err != nil {
		return nil, err
	}
	return f.Claim(ctx, n)
}

func (f *fake) Left(context.Context) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pending) + f.claimed, nil
}

func (f *fake) Close() error { return nil }
