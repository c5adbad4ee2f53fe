package history

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"example.com/holdfast/queue"
)

// A Mix says from what steps are drawn.
type Mix struct {
	Queues []string
	IDs    []string
	Keys   []string // the empty one among them
	Holder string   // the process that the steps are for; empty: leases name none
	Ops    []string // what is drawn, one as often as another; none: everything, as weights says

	// Unit is how far the clock is moved by one Advance; leases and delays are one or
	// two of it. 0: the clock cannot be moved, and they are far or none.
	Unit time.Duration
}

// Standard is the mix of most tests.
var Standard = Mix{Queues: []string{"mail", "post"}, IDs: []string{"a", "b", "c"}, Keys: []string{"", "k", "k", "l"}}

// With gives the mix for a store whose clock the steps move.
func (x Mix) With(unit time.Duration) Mix {
	x.Unit = unit
	return x
}

// Known is what the callers of one store tell one another, so that receipts are used
// by others than those who were given them, and again when they are no longer good.
type Known struct {
	mu       sync.Mutex
	receipts []string
	failed   [][2]string // namespace and name
}

// aside is a failed namespace, beside the default one.
const aside = "aside"

// Learn takes what an answer tells.
func (k *Known) Learn(a Answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.receipts = append(k.receipts, a.Receipts()...)
	if a.Failed != "" { // in which namespace it does not say
		k.failed = append(k.failed, [2]string{"", a.Failed})
	}
	for _, s := range a.Seen {
		switch {
		case s.Receipt != "" && !slices.Contains(k.receipts, s.Receipt):
			k.receipts = append(k.receipts, s.Receipt)
		case s.Failed != "" && !slices.Contains(k.failed, [2]string{s.Space, s.Failed}):
			k.failed = append(k.failed, [2]string{s.Space, s.Failed})
		}
	}
}

// receipt gives one of the last ones; empty: there is none.
func (k *Known) receipt(rng *rand.Rand) string { return k.receiptBefore(rng.IntN(5)) }

// receiptBefore gives the last but n, or the first.
func (k *Known) receiptBefore(n int) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.receipts) == 0 {
		return ""
	}
	return k.receipts[max(0, len(k.receipts)-1-n)]
}

// failedName gives the name of a failed message, or of one that may have failed.
func (k *Known) failedName(rng *rand.Rand, ids []string) (space, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.failed); n > 0 && rng.IntN(3) > 0 {
		g := k.failed[max(0, n-1-rng.IntN(3))]
		return g[0], g[1]
	}
	return pick(rng, "", "", aside), pick(rng, ids...)
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// weights say how often each step is drawn.
var weights = []struct {
	op string
	n  int
}{
	{Enqueue, 8}, {Claim, 8}, {Ack, 4}, {Retry, 4}, {Release, 2}, {Extend, 2}, {Fail, 2}, {ReplacePayload, 1},
	{Reap, 4}, {Load, 2}, {Reprocess, 3}, {Purge, 1}, {Clear, 1}, {Pause, 1}, {Resume, 2}, {Namespace, 1},
	{Update, 8}, {Status, 5}, {List, 2}, {ListFailed, 1}, {Peek, 1}, {Show, 1}, {Cursor, 1}, {Advance, 3},
}

// Step draws one.
func (x Mix) Step(rng *rand.Rand, k *Known) Step {
	for {
		if st, ok := x.step(x.op(rng), rng, k); ok {
			return st
		}
	}
}

func (x Mix) op(rng *rand.Rand) string {
	if x.Ops != nil {
		return pick(rng, x.Ops...)
	}
	total := 0
	for _, w := range weights {
		total += w.n
	}
	n := rng.IntN(total)
	for _, w := range weights {
		if n -= w.n; n < 0 {
			return w.op
		}
	}
	panic("the weights add up to more than their sum")
}

// Prime are the steps with which a history begins, so that there is something to
// settle and to reprocess from the first. The last receipt is for those that need one.
func (x Mix) Prime() []Step {
	var out []Step
	for _, name := range x.Queues {
		enqueue := Step{Op: Enqueue, Queue: name, IDs: x.IDs, Keys: x.Keys}
		claim := Step{Op: Claim, Queue: name, Holder: x.Holder}
		again := Step{Op: Enqueue, Queue: name, IDs: x.IDs[:1]}
		out = append(out, enqueue, claim, Step{Op: Fail}, again, claim)
	}
	return out
}

// step draws a step that does op; false: it cannot be done now.
func (x Mix) step(op string, rng *rand.Rand, k *Known) (st Step, ok bool) {
	st = Step{Op: op, Queue: pick(rng, x.Queues...)}
	switch op {
	case Enqueue:
		x.messages(&st, rng, 1+rng.IntN(5)/4*2)
	case Claim:
		st.N, st.Fair = 1+rng.IntN(3)/2, rng.IntN(2) == 0
		x.lease(&st, rng)
	case Load:
		st.IDs = []string{pick(rng, x.IDs...)}
		x.lease(&st, rng)
	case Ack, Release, Retry, Extend, Fail, ReplacePayload:
		return x.settlement(op, rng, k)
	case Reap:
		st.Queue = ""
		st.Most = pick[uint64](rng, 0, 0, 1, 2)
		if rng.IntN(2) == 0 {
			st.Receipt = k.receipt(rng)
		}
		if st.Receipt == "" {
			st.Queues, st.N = x.Queues, pick(rng, 0, 0, 1)
		}
	case Reprocess, Purge:
		st.Queue = ""
		var name string
		st.Space, name = k.failedName(rng, x.IDs)
		st.IDs = []string{name}
	case Clear:
		st.Leased = rng.IntN(3) == 0
	case Namespace, ListFailed:
		st.Space = pick(rng, "", aside)
	case Status:
		st.Queue, st.Queues = "", x.Queues
	case Peek:
		st.N = 1 + rng.IntN(3)
	case Show:
		st.IDs = []string{pick(rng, x.IDs...)}
	case Update:
		st.Queue = ""
		for range 2 + rng.IntN(2) {
			if c, ok := x.change(rng, k); ok {
				st.Changes = append(st.Changes, c)
			}
		}
		return st, st.Changes != nil
	case Advance:
		return Step{Op: op, Delay: x.Unit}, x.Unit != 0
	}
	return st, true
}

// change draws a change of an update.
func (x Mix) change(rng *rand.Rand, k *Known) (Step, bool) {
	op := pick(rng, Enqueue, Enqueue, Enqueue, Claim, Claim, Ack, Ack, Retry, Release, Extend, Fail, Cursor)
	st, ok := x.step(op, rng, k)
	if op == Enqueue {
		x.messages(&st, rng, 1)
	}
	if op == Cursor {
		st.Cursor = pick(rng, "1", "2")
	}
	return st, ok
}

func (x Mix) messages(st *Step, rng *rand.Rand, n int) {
	st.IDs, st.Keys, st.NotBefore = nil, nil, 0
	for range n {
		st.IDs, st.Keys = append(st.IDs, pick(rng, x.IDs...)), append(st.Keys, pick(rng, x.Keys...))
	}
	st.IfExists = pick(rng, queue.Refuse, queue.Refuse, queue.Keep, queue.Replace)
	if rng.IntN(6) == 0 {
		st.NotBefore = Begin + (x.Unit * time.Duration(1+rng.IntN(3))).Milliseconds()
		if x.Unit == 0 {
			st.NotBefore = Begin + far.Milliseconds()
		}
	}
}

// settlement draws a step with a receipt, for those that are good and those that are not.
func (x Mix) settlement(op string, rng *rand.Rand, k *Known) (Step, bool) {
	st := Step{Op: op, Receipt: k.receipt(rng)}
	switch op {
	case Release:
		st.Delay = x.delay(rng)
	case Retry:
		st.Delay, st.Most = x.delay(rng), pick[uint64](rng, 0, 0, 1, 2)
		st.Cause = pick(rng, "", "a bad day", "another")
	case Extend:
		x.lease(&st, rng)
		st.Holder = ""
	case Fail:
		st.Cause, st.As = pick(rng, "", "never"), pick(rng, "", "", pick(rng, x.IDs...))
	case ReplacePayload:
		st.Version = 1 + rng.IntN(3)
	}
	return st, st.Receipt != ""
}

// far does not end while a test runs.
const far = 50 * 365 * 24 * time.Hour

func (x Mix) delay(rng *rand.Rand) time.Duration {
	if x.Unit == 0 {
		return pick(rng, 0, 0, 0, far)
	}
	return pick(rng, 0, 0, 0, x.Unit, 2*x.Unit, far)
}

func (x Mix) lease(st *Step, rng *rand.Rand) {
	st.Lease = pick(rng, 0, 0, far)
	if x.Unit != 0 {
		st.Lease = pick(rng, 0, x.Unit, x.Unit, 2*x.Unit)
	}
	if rng.IntN(4) > 0 {
		st.Holder = x.Holder
	}
}
