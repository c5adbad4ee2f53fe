//go:build unix

package pages

import (
	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// A Seen is an operation that counts as a crash point, and what the disk shows to others
// after it.
type Seen[T any] struct {
	crashtest.Event
	Root  string // that was opened last
	After T
}

// A Recorder watches what passes a wrapper.
type Recorder[T any] struct {
	W    *crashtest.Wrapper
	Look func() T // past the wrapper

	// Fail chooses an operation that fails with Err, once. Nil: none.
	Fail func(op fsguard.Op, path string) bool
	Err  error
}

// Record gives the operations of one call.
func (r Recorder[T]) Record(call func()) []Seen[T] {
	var looks []T // before each operation, those that change nothing included
	last := fsguard.OpMkdir
	plan := crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		if n := len(looks); n > 0 && reads[last] {
			looks = append(looks, looks[n-1])
		} else {
			looks = append(looks, r.Look())
		}
		last = op
		return r.Fail != nil && r.Fail(op, path)
	}, r.Err, 1)
	plan.Spell = true
	r.W.Arm(plan)
	call()
	looks = append(looks, r.Look())
	var seen []Seen[T]
	root := ""
	for i, e := range r.W.Events() {
		if e.Op == fsguard.OpOpenRoot {
			root = e.Path
		}
		if e.N > 0 {
			seen = append(seen, Seen[T]{e, root, looks[i+1]})
		}
	}
	r.W.Arm(crashtest.Plan{})
	return seen
}

// reads are operations after which the disk is as before.
var reads = map[fsguard.Op]bool{
	fsguard.OpStat: true, fsguard.OpSpace: true, fsguard.OpInfo: true, fsguard.OpLstat: true, fsguard.OpReadDir: true,
	fsguard.OpOpenDir: true, fsguard.OpOpen: true, fsguard.OpRead: true, fsguard.OpOpenRoot: true, fsguard.OpClose: true,
}
