//go:build unix

package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// Npm is the hard-link npm package, in a Node of its own which is asked through a pipe.
// pkg is the directory whose node_modules has the package and node; see .ci/npm.
func Npm(pkg string) Peer {
	n := &npm{pkg: pkg}
	p := Peer{
		Key: "npm", Name: "hard-link npm package",
		How: "The npm package in a Node process that is asked through a pipe, which adds some 0.1 ms to a call. It has no claim of the oldest: the bench names the " +
			"message that it enqueued, or lists the directory when it has enqueued none. Deep queues are planted as files.",
		Open: n.open, Warm: n.warm, Plant: plantNpm,
		NoBatch: true, MaxDepth: 100_000,
	}
	if _, err := os.Stat(npmNode(pkg)); pkg == "" || err != nil {
		p.Missing = "not installed; see -package"
	}
	return p
}

func npmNode(pkg string) string { return filepath.Join(pkg, "node_modules", ".bin", "node") }

// An npm starts processes, one ahead where it was told to.
type npm struct {
	pkg  string
	idle atomic.Pointer[npmProcess]
}

func (n *npm) warm(context.Context) error {
	p, err := startNpm(n.pkg)
	if err == nil {
		n.idle.Store(p)
	}
	return err
}

func (n *npm) open(_ context.Context, dir string) (Queue, error) {
	p := n.idle.Swap(nil)
	if p == nil {
		var err error
		if p, err = startNpm(n.pkg); err != nil {
			return nil, err
		}
	}
	q := &npmQueue{p: p, dir: filepath.Join(dir, "queue"), prefix: fmt.Sprintf("m-%d-", os.Getpid())}
	if err := p.ask(npmCall{Op: "open", Dir: q.dir}, nil); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

type npmQueue struct {
	p      *npmProcess
	dir    string
	prefix string // of its names, so that those of several processes differ
	made   atomic.Uint64

	mu    sync.Mutex
	names []string // that it knows to be pending, oldest first
}

func (q *npmQueue) Enqueue(_ context.Context, payloads ...[]byte) error {
	for _, p := range payloads {
		name := fmt.Sprint(q.prefix, q.made.Add(1))
		if err := q.p.ask(npmCall{Op: "enqueue", Name: name, Entry: p}, nil); err != nil {
			return err
		}
		q.mu.Lock()
		q.names = append(q.names, name)
		q.mu.Unlock()
	}
	return nil
}

// take gives the names of up to n messages, as the directory has them when it has been
// told of none.
func (q *npmQueue) take(n int) ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.names) == 0 {
		if err := q.p.ask(npmCall{Op: "list"}, &q.names); err != nil {
			return nil, err
		}
	}
	n = min(n, len(q.names))
	taken := q.names[:n]
	q.names = q.names[n:]
	return taken, nil
}

func (q *npmQueue) Claim(_ context.Context, n int) ([]Claim, error) {
	names, err := q.take(n)
	if err != nil {
		return nil, err
	}
	var got []Claim
	for _, name := range names {
		var payload json.RawMessage
		if err := q.p.ask(npmCall{Op: "claim", Name: name}, &payload); err != nil {
			return nil, err
		}
		got = append(got, Claim{Payload: payload, token: name})
	}
	return got, nil
}

func (q *npmQueue) Ack(_ context.Context, claims []Claim) error {
	names, err := tokens[string](claims)
	for _, name := range names {
		err = errors.Join(err, q.p.ask(npmCall{Op: "ack", Name: name}, nil))
	}
	return err
}

func (q *npmQueue) AckAndClaim(ctx context.Context, claims []Claim, n int) ([]Claim, error) {
	if err := q.Ack(ctx, claims); err != nil {
		return nil, err
	}
	return q.Claim(ctx, n)
}

func (q *npmQueue) Left(context.Context) (n int, err error) {
	entries, err := os.ReadDir(q.dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			n++
		}
	}
	return n, err
}

func (q *npmQueue) Processes() []int { return []int{q.p.cmd.Process.Pid} }

func (q *npmQueue) Close() error { return q.p.stop() }

// plantNpm writes the files that the package would have made, and syncs none.
func plantNpm(dir string, payloads [][]byte) error {
	dir = filepath.Join(dir, "queue")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i, p := range payloads {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("planted-%d.json", i)), p, 0o600); err != nil {
			return err
		}
	}
	return nil
}
