//go:build unix

package peer

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"example.com/holdfast/queue"
	holdfast "example.com/holdfast/v2"
)

const (
	queueName = "bench"
	lease     = time.Hour // longer than any run: no claim lapses in one
)

// Holdfast is the v2 store, called as a library.
func Holdfast() Peer {
	return Peer{
		Key: "holdfast", Name: "holdfast v2",
		How:  "The store as a library, its options as they are, but for a bound on the state that leaves room for a million messages.",
		Open: openHoldfast,
	}
}

type holdfastQueue struct{ store *holdfast.Store }

func openHoldfast(ctx context.Context, dir string) (Queue, error) {
	// Room for a million messages; the bound itself costs nothing.
	s, err := holdfast.OpenOrCreate(ctx, filepath.Join(dir, "queue"), &holdfast.Options{MaxStateBytes: 2 << 30})
	if err != nil {
		return nil, err
	}
	return &holdfastQueue{s}, nil
}

func (q *holdfastQueue) Enqueue(ctx context.Context, payloads ...[]byte) error {
	if len(payloads) == 1 {
		_, err := q.store.Enqueue(ctx, queueName, queue.Message{Payload: payloads[0]})
		return err
	}
	ms := make([]queue.Message, len(payloads))
	for i, p := range payloads {
		ms[i].Payload = p
	}
	_, err := q.store.EnqueueBatch(ctx, queueName, ms)
	return err
}

func (q *holdfastQueue) Claim(ctx context.Context, n int) ([]Claim, error) {
	c, err := q.store.Claim(ctx, queueName, queue.ClaimOptions{Max: n, Lease: lease})
	if err != nil {
		return nil, err
	}
	return holdfastClaims(c)
}

func holdfastClaims(c queue.Claimed) ([]Claim, error) {
	if len(c.Damaged) > 0 {
		return nil, c.Damaged[0]
	}
	claims := make([]Claim, len(c.Deliveries))
	for i, d := range c.Deliveries {
		claims[i] = Claim{Payload: d.Payload, token: d.Receipt}
	}
	return claims, nil
}

func (q *holdfastQueue) Ack(ctx context.Context, claims []Claim) error {
	receipts, err := tokens[queue.Receipt](claims)
	if err != nil {
		return err
	}
	if len(receipts) == 1 {
		return q.store.Ack(ctx, receipts[0])
	}
	changes := make([]queue.Change, len(receipts))
	for i, r := range receipts {
		changes[i] = queue.AckChange{Receipt: r}
	}
	_, err = q.store.Update(ctx, changes...)
	return err
}

func (q *holdfastQueue) AckAndClaim(ctx context.Context, claims []Claim, n int) ([]Claim, error) {
	receipts, err := tokens[queue.Receipt](claims)
	if err != nil {
		return nil, err
	}
	changes := make([]queue.Change, 0, len(receipts)+1)
	for _, r := range receipts {
		changes = append(changes, queue.AckChange{Receipt: r})
	}
	changes = append(changes, queue.ClaimChange{Queue: queueName, Options: queue.ClaimOptions{Max: n, Lease: lease}})
	outcomes, err := q.store.Update(ctx, changes...)
	if err != nil {
		return nil, err
	}
	return holdfastClaims(outcomes[len(receipts)].Claimed)
}

func (q *holdfastQueue) Left(ctx context.Context) (int, error) {
	st, err := q.store.Status(ctx, queue.StatusOptions{Queues: []string{queueName}})
	if err != nil {
		return 0, err
	}
	return int(st.Queues[queueName].Unacked()), nil
}

func (q *holdfastQueue) Verify(ctx context.Context) error {
	r, err := q.store.Verify(ctx, holdfast.VerifyOptions{})
	if err == nil && !r.OK {
		err = fmt.Errorf("verify: %+v", r.Faults)
	}
	return err
}

func (q *holdfastQueue) StateFile() string {
	return filepath.Join(q.store.Dir(), ".fs-safe-queue-v2", "state.json")
}

func (q *holdfastQueue) Close() error { return q.store.Close() }
