//go:build unix

package holdfast

import (
	"context"
	"sync"

	"example.com/holdfast/internal/fsguard"
)

// busy keeps the transitions of one entry in this process apart, so that they do not
// wait for one another by the lock file's slow pauses.
var busy keyed

type keyed struct {
	mu   sync.Mutex
	held map[key]*turn
}

type key struct {
	dir fsguard.Identity
	id  string
}

type turn struct {
	free  chan struct{} // holds one token while nobody has the turn
	users int
}

// take waits for the turn of k.
func (m *keyed) take(ctx context.Context, k key) error {
	m.mu.Lock()
	t := m.held[k]
	if t == nil {
		if m.held == nil {
			m.held = map[key]*turn{}
		}
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		m.held[k] = t
	}
	t.users++
	m.mu.Unlock()
	select {
	case <-t.free:
		return nil
	case <-ctx.Done():
		m.drop(k, t)
		return ctx.Err()
	}
}

// give gives the turn up.
func (m *keyed) give(k key) {
	m.mu.Lock()
	t := m.held[k]
	m.mu.Unlock()
	t.free <- struct{}{}
	m.drop(k, t)
}

func (m *keyed) drop(k key, t *turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(m.held, k)
	}
}
