//go:build unix

// Package peer has the queues that are measured beside each other, each behind the same
// few calls and in a file of its own: this library, what people would otherwise take, and
// the floors, which are the bare syncs that a queue cannot do without.
//
// Every peer promises the same: what a call has done is on the disk when it returns.
package peer

import (
	"context"
	"errors"
)

// withoutCgo is the word for a peer that whoever builds this program leaves out so.
const withoutCgo = "built without cgo"

// A Peer is one way to keep a durable queue in a directory.
type Peer struct {
	Key  string // names it on the command line
	Name string // names it in the tables
	How  string // how it is set up, for the page: one sentence

	// Missing says in a few words why it cannot be measured here. Empty: it can.
	Missing string

	// Open opens the queue in dir, which exists, and makes it where there is none.
	Open func(ctx context.Context, dir string) (Queue, error)

	// Warm starts what is no part of opening the queue, as an interpreter, for the next
	// Open. Nil: there is nothing of the kind.
	Warm func(ctx context.Context) error

	// Plant puts payloads into dir before it is opened, without the peer's own calls, for
	// a peer that would take too long. Nil: filling is enqueuing.
	Plant func(dir string, payloads [][]byte) error

	// Chains replaces the calls of the joint workload; see [Chains]. Nil: it is made of
	// AckAndClaim.
	Chains Chains

	Floor      bool // no queue: it has no depth, and concurrent callers are one group
	OneProcess bool // a second process cannot open it
	NoBatch    bool // it has no calls that take several messages
	NoSingles  bool // it takes part in the joint workload only
	MinWorkers int  // it is set up for that many callers at once, and measured with no fewer
	MaxDepth   int  // deeper it cannot be filled in reasonable time. Zero: no bound
}

// A Queue is an open peer. Its methods may be called by many goroutines.
type Queue interface {
	// Enqueue accepts the payloads in order, in one transaction where the peer has them.
	Enqueue(ctx context.Context, payloads ...[]byte) error

	// Claim takes n messages, or as many as there are.
	Claim(ctx context.Context, n int) ([]Claim, error)

	// Ack ends what was claimed, in one transaction where the peer has them.
	Ack(ctx context.Context, claims []Claim) error

	// AckAndClaim is both, in one transaction where the peer has them.
	AckAndClaim(ctx context.Context, claims []Claim, n int) ([]Claim, error)

	// Left counts what is pending or claimed.
	Left(ctx context.Context) (int, error)

	Close() error
}

// A Claim is one message in the hands of a caller.
type Claim struct {
	Payload []byte
	token   any // what the peer settles it by
}

// Chains runs as many chains at once as there are workers: in each, a message is
// enqueued, claimed, and acked by the call that claims the next. next gives the payload of
// one more message, nil when there are no more; seen is told of every delivery. Both may
// be called by many goroutines.
type Chains func(ctx context.Context, q Queue, workers int, next func() []byte, seen func([]byte) error) error

// A Server is a Queue whose work is done by other processes, whose CPU time counts.
type Server interface{ Processes() []int }

// A Verifier is a Queue that can look through the whole of its directory for damage.
type Verifier interface {
	Verify(ctx context.Context) error
}

// A Stater is a Queue that rewrites a file which holds its state.
type Stater interface{ StateFile() string }

// errForeign is returned when a claim is settled by another peer than gave it: a bug of
// the bench.
var errForeign = errors.New("the claim is another peer's")

// tokens gives what the claims are settled by.
func tokens[T any](claims []Claim) ([]T, error) {
	list := make([]T, len(claims))
	for i, c := range claims {
		t, ok := c.token.(T)
		if !ok {
			return nil, errForeign
		}
		list[i] = t
	}
	return list, nil
}

// Control is the key of the first peer's second entry.
const Control = "control"

// All lists the peers in the order of the tables; the first is what the others are
// compared with, the second the same again, so that their difference is the noise. npm is
// the directory whose node_modules holds the npm package.
func All(npm string) []Peer {
	again := Holdfast()
	again.Key, again.Name, again.How = Control, again.Name+", again (control)", "The same again."
	return []Peer{
		Holdfast(), again, Worker(), Goqite(),
		Bolt(), BoltBatch("bolt-batch", "its defaults", 0, 0), BoltBatch("bolt-64", "of 64", 64, 0),
		BoltBatch("bolt-256", "of 256", 256, 256), Redis(), Npm(npm),
		FloorAppend(), FloorRename(), FloorExchange(), FloorChained(),
	}
}
