//go:build unix

package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"example.com/holdfast/internal/crashtest/leak"
	"example.com/holdfast/internal/crashtest/testrun"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// each runs f for every peer that can be had here. The others are left out of the tables
// too, with a word.
func each(t *testing.T, f func(t *testing.T, p Peer)) {
	at := os.Getenv("HOLDFAST_FS_SAFE")
	if at == "" {
		home, _ := os.UserHomeDir() // without one the npm package is left out
		at = filepath.Join(home, ".cache", "holdfast-interop")
	}
	for _, p := range All(at) {
		t.Run(p.Key, func(t *testing.T) {
			if p.Missing != "" {
				if p.Missing == withoutCgo { // as it was asked for
					t.Skip(p.Missing)
				}
				testrun.Skip(t, p.Missing)
			}
			f(t, p)
		})
	}
}

func open(t *testing.T, p Peer, dir string) Queue {
	t.Helper()
	q, err := p.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func text(n int) []byte { return fmt.Appendf(nil, `{"n":%d}`, n) }

func payloads(claims []Claim) (list []string) {
	for _, c := range claims {
		list = append(list, string(c.Payload))
	}
	return list
}

// Every peer is a queue: first in, first out, nothing twice, and what is acked is gone.
func TestCalls(t *testing.T) {
	each(t, func(t *testing.T, p Peer) {
		ctx := t.Context()
		q := open(t, p, t.TempDir())
		left := func(want int) {
			t.Helper()
			if got, err := q.Left(ctx); err != nil || got != want {
				t.Errorf("left: got %d, %v, want %d", got, err, want)
			}
		}
		got := func(what string, claims []Claim, err error, want ...string) {
			t.Helper()
			if list := payloads(claims); err != nil || !slices.Equal(list, want) {
				t.Errorf("%s: got %q, %v, want %q", what, list, err, want)
			}
		}
		if err := q.Enqueue(ctx, text(1)); err != nil {
			t.Fatal(err)
		}
		if err := q.Enqueue(ctx, text(2), text(3), text(4)); err != nil {
			t.Fatal(err)
		}
		left(4)
		first, err := q.Claim(ctx, 1)
		got("one claim", first, err, string(text(1)))
		left(4)
		next, err := q.AckAndClaim(ctx, first, 2)
		got("ack and claim", next, err, string(text(2)), string(text(3)))
		left(3)
		if err := q.Ack(ctx, next); err != nil {
			t.Error(err)
		}
		left(1)
		last, err := q.Claim(ctx, 5)
		got("more than there are", last, err, string(text(4)))
		if err := q.Ack(ctx, last); err != nil {
			t.Error(err)
		}
		left(0)
		none, err := q.Claim(ctx, 1)
		got("an empty queue", none, err)
		if v, ok := q.(Verifier); ok {
			if err := v.Verify(ctx); err != nil {
				t.Error(err)
			}
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What was enqueued is there after the queue was closed and opened.
func TestReopen(t *testing.T) {
	each(t, func(t *testing.T, p Peer) {
		if p.Floor {
			t.Skip("a floor keeps nothing")
		}
		ctx, dir := t.Context(), t.TempDir()
		q := open(t, p, dir)
		if err := errors.Join(q.Enqueue(ctx, text(7)), q.Close()); err != nil {
			t.Fatal(err)
		}
		if p.Warm != nil {
			if err := p.Warm(ctx); err != nil {
				t.Fatal(err)
			}
		}
		q = open(t, p, dir)
		claims, err := q.Claim(ctx, 1)
		if list := payloads(claims); err != nil || !slices.Equal(list, []string{string(text(7))}) {
			t.Errorf("got %q, %v", list, err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A planted message is one like any other.
func TestPlant(t *testing.T) {
	each(t, func(t *testing.T, p Peer) {
		if p.Plant == nil {
			t.Skip("is filled by its own calls")
		}
		ctx, dir := t.Context(), t.TempDir()
		if err := p.Plant(dir, [][]byte{text(1)}); err != nil {
			t.Fatal(err)
		}
		q := open(t, p, dir)
		claims, err := q.Claim(ctx, 1)
		if err != nil || len(claims) != 1 || string(claims[0].Payload) != string(text(1)) {
			t.Fatalf("got %q, %v", payloads(claims), err)
		}
		if err := q.Ack(ctx, claims); err != nil {
			t.Error(err)
		}
		if n, err := q.Left(ctx); err != nil || n != 0 {
			t.Errorf("left: %d, %v", n, err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// supply gives n payloads and keeps what was delivered.
type supply struct {
	mu   sync.Mutex
	left int
	seen []string
	err  error // what seen answers
}

func (s *supply) next() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return nil
	}
	s.left--
	return text(s.left)
}

func (s *supply) see(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, string(p))
	return s.err
}

// The worker's chains end when every message was delivered once and acked, and at once
// when a delivery is refused.
func TestWorkerChains(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		messages, workers int
		err               error
	}{
		"one chain":              {5, 1, nil},
		"several":                {20, 4, nil},
		"more chains than there": {2, 4, nil},
		"nothing":                {0, 2, nil},
		"a refused delivery":     {5, 2, refused},
	} {
		t.Run(name, func(t *testing.T) {
			q := open(t, Worker(), t.TempDir())
			s := &supply{left: c.messages, err: c.err}
			err := Worker().Chains(t.Context(), q, c.workers, s.next, s.see)
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Errorf("got %v, want %v", err, c.err)
			}
			left, err := q.Left(context.WithoutCancel(t.Context()))
			if err != nil {
				t.Error(err)
			}
			slices.Sort(s.seen)
			if n := len(slices.Compact(s.seen)); c.err == nil && (left != 0 || n != c.messages) {
				t.Errorf("%d are left, %d were seen, of %d", left, n, c.messages)
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A claim is settled by the peer that gave it, and by no other.
func TestForeignClaim(t *testing.T) {
	q := open(t, Bolt(), t.TempDir())
	defer q.Close()
	if err := q.Ack(t.Context(), []Claim{{token: 7}}); !errors.Is(err, errForeign) {
		t.Errorf("got %v, want %v", err, errForeign)
	}
}
