//go:build unix

package crashtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.com/holdfast/internal/fsguard"
)

// A Client is one process of a Play.
type Client struct {
	Index int
	FS    *Wrapper // what it does passes the scheduler

	name string
	proc *Process

	mu      sync.Mutex
	stepped bool // operations wait to be let through
	dead    bool
	arrived int
	turns   []*turn // operations that wait, in the order in which they came
}

// opPause is a step without an operation.
const opPause fsguard.Op = "pause"

// A turn is an operation that waits to be let through.
type turn struct {
	op    fsguard.Op
	path  string
	n     int         // it was the n-th to come
	ready func() bool // nil: always
	told  chan verdict
}

func (t *turn) String() string { return fmt.Sprintf("%s %s", t.op, t.path) }

// A verdict is what becomes of a turn.
type verdict int

const (
	passes   verdict = iota
	passLast         // the client dies with it
	dies             // the client is dead
)

func newClient(d *Disk, i int) *Client {
	c := &Client{Index: i, name: string(rune('a' + i)), proc: d.Process()}
	c.FS = Wrap(&gateFS{c, c.proc}, Plan{Spell: true})
	return c
}

// Name is a, b, c….
func (c *Client) Name() string { return c.name }

// Dead reports whether the client was killed.
func (c *Client) Dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Pause is a step of its own: what comes next begins when the scheduler says so.
func (c *Client) Pause(what string) error {
	return c.pass(opPause, what, nil, func() error { return nil })
}

// pass lets do through when the scheduler says so.
func (c *Client) pass(op fsguard.Op, path string, ready func() bool, do func() error) error {
	killed := &fsguard.Error{Op: op, Name: path, Err: ErrKilled}
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return killed
	}
	if !c.stepped {
		c.mu.Unlock()
		return do()
	}
	c.arrived++
	t := &turn{op: op, path: path, n: c.arrived, ready: ready, told: make(chan verdict)}
	c.turns = append(c.turns, t)
	c.mu.Unlock()
	switch <-t.told {
	case dies:
		return killed
	case passLast:
		_ = do() // the process never learns what came of it
		c.die()
		return killed
	}
	return do()
}

// waiting lists the turns in an order that does not depend on which of two goroutines
// came first.
func (c *Client) waiting() []*turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.turns, func(a, b *turn) int {
		if order := strings.Compare(a.String(), b.String()); order != 0 {
			return order
		}
		return a.n - b.n
	})
	return slices.Clone(c.turns)
}

// let gives a turn its verdict.
func (c *Client) let(t *turn, v verdict) {
	c.mu.Lock()
	c.turns = slices.DeleteFunc(c.turns, func(x *turn) bool { return x == t })
	c.mu.Unlock()
	t.told <- v
}

// die is SIGKILL, for the operations too that wait.
func (c *Client) die() {
	c.proc.Kill()
	c.mu.Lock()
	c.dead = true
	turns := c.turns
	c.turns = nil
	c.mu.Unlock()
	for _, t := range turns {
		t.told <- dies
	}
}
