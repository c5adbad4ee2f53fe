//go:build unix

package load

import (
	"context"
	"errors"
	"fmt"
	"os"

	"example.com/holdfast/bench/measure"
	"example.com/holdfast/bench/peer"
)

// A Scene is one peer set up for one workload. It stays set up over all trials, so that
// what is to be pending or claimed is put there once.
type Scene struct {
	w        Workload
	p        peer.Peer
	npm      string // for the processes of its own kind
	dir      string
	q        peer.Queue
	ledger   *Ledger
	children uint64 // processes so far
}

// childNumbers is how many messages one process can have without reaching the numbers of
// the next.
const childNumbers = 1 << 32

// verifyDepth is the depth up to which the whole directory is looked through in the end.
const verifyDepth = 10_000

// NewScene opens and fills a peer in a directory that it makes below base.
func NewScene(ctx context.Context, w Workload, p peer.Peer, npm, base string) (*Scene, error) {
	dir, err := os.MkdirTemp(base, p.Key+"-")
	if err != nil {
		return nil, err
	}
	s := &Scene{w: w, p: p, npm: npm, dir: dir, ledger: newLedger(0, false)}
	if p.Plant != nil && w.Depth > 0 {
		if err := p.Plant(dir, s.more(w.Depth)); err != nil {
			return nil, err
		}
	}
	if s.q, err = p.Open(ctx, dir); err != nil {
		return nil, err
	}
	if err := s.fill(ctx); err != nil {
		return nil, errors.Join(err, s.q.Close())
	}
	if w.Reopen {
		err := s.q.Close()
		s.q = nil
		return s, err
	}
	return s, nil
}

// more makes n messages.
func (s *Scene) more(n int) [][]byte {
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = s.ledger.Next()
	}
	return payloads
}

func (s *Scene) fill(ctx context.Context) error {
	const chunk = 1000
	for left := s.w.Claimed; left > 0; left -= chunk {
		n := min(left, chunk)
		if err := s.q.Enqueue(ctx, s.more(n)...); err != nil {
			return err
		}
		claims, err := s.q.Claim(ctx, n)
		if err == nil && len(claims) != n {
			err = fmt.Errorf("a claim found %d messages of %d", len(claims), n)
		}
		if err != nil {
			return err
		}
	}
	if s.p.Plant != nil {
		return nil // done
	}
	step := max(chunk, s.w.Depth/100) // a peer whose call costs the depth is asked 100 times
	for left := s.w.Depth; left > 0; left -= step {
		if err := s.q.Enqueue(ctx, s.more(min(left, step))...); err != nil {
			return err
		}
	}
	return nil
}

// Trial carries the workload out once.
func (s *Scene) Trial(ctx context.Context, size Size, device *measure.Device, idle measure.Traffic) (measure.Sample, error) {
	size.Messages = s.w.count(size.Messages)
	if s.w.Reopen {
		return s.reopen(ctx)
	}
	if s.w.Processes > 1 {
		return s.processes(ctx, size)
	}
	m := measure.Meter{Device: device, Idle: idle}
	if server, ok := s.q.(peer.Server); ok {
		m.Pids = server.Processes()
	}
	if err := m.Start(); err != nil {
		return measure.Sample{}, err
	}
	n, err := run(ctx, s.w, s.p, s.q, s.ledger, size)
	if err != nil {
		return measure.Sample{}, err
	}
	return m.Stop(n)
}

// reopen measures an opening with its first claim, and settles what it took.
func (s *Scene) reopen(ctx context.Context) (sample measure.Sample, err error) {
	if s.p.Warm != nil {
		if err := s.p.Warm(ctx); err != nil {
			return sample, err
		}
	}
	var m measure.Meter
	if err := m.Start(); err != nil {
		return sample, err
	}
	q, err := s.p.Open(ctx, s.dir)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	claims, err := q.Claim(ctx, 1)
	if err != nil {
		return sample, err
	}
	if sample, err = m.Stop(1); err != nil {
		return sample, err
	}
	if err := see(s.ledger, claims, 1); err != nil {
		return sample, err
	}
	return sample, q.Ack(ctx, claims)
}

// State is what a peer's state takes. Size is negative where the peer has no such file.
type State struct {
	Size int64
	Text int64 // without the padding at its end
}

// State looks at the size of the peer's state.
func (s *Scene) State() (State, error) {
	stater, ok := s.q.(peer.Stater)
	if !ok {
		return State{Size: -1}, nil
	}
	text, err := os.ReadFile(stater.StateFile())
	n := len(text)
	for n > 0 && (text[n-1] == ' ' || text[n-1] == '\n') {
		n--
	}
	return State{Size: int64(len(text)), Text: int64(n)}, err
}

// Finish checks that no message was lost and none is doubled, closes the peer and removes
// its directory.
func (s *Scene) Finish(ctx context.Context) error {
	if s.q == nil {
		var err error
		if s.q, err = s.p.Open(ctx, s.dir); err != nil {
			return err
		}
	}
	err := s.check(ctx)
	return errors.Join(err, s.q.Close(), os.RemoveAll(s.dir))
}

func (s *Scene) check(ctx context.Context) error {
	left, err := s.q.Left(ctx)
	if err == nil {
		err = s.ledger.Check(left)
	}
	if v, ok := s.q.(peer.Verifier); ok && err == nil && s.w.Depth <= verifyDepth {
		err = v.Verify(ctx)
	}
	return err
}

// Abandon closes a scene of a run that has failed already.
func (s *Scene) Abandon() {
	if s.q != nil {
		s.q.Close() // why the run failed tells more
	}
}
