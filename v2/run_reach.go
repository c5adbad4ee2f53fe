//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"example.com/holdfast/queue"
)

// How members of runs come back inline. Whoever brings one back marks it as gone in
// the run's reference, in the same commit.

// reach brings back what a claim of n messages of a queue would come to: until the
// oldest n that are due stand inline, or as many as the state has room for.
func (d *draft) reach(name string, n int, fair bool) error {
	for {
		q := d.st.queue(name).at(d.millis)
		r := q.nextRun(d.millis, n, fair)
		if r == nil {
			return nil
		}
		m, err := d.st.reader.members(r)
		if err != nil {
			return err
		}
		err = d.bringBack(d.queue(name), r, m, d.oldest(q, r, m))
		if errors.Is(err, queue.ErrFull) && d.st.queue(name).at(d.millis).offers(d.millis, fair) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// oldest picks the members of r that are due; where there is no room for all, the oldest
// of them.
func (d *draft) oldest(q *queueState, r *run, m *body) func(*slot) bool {
	var seqs []uint64
	for i, s := range m.slots {
		if r.has(i) && s.pending.ready(d.millis) {
			seqs = append(seqs, s.pending.seq)
		}
	}
	slices.Sort(seqs)
	last := seqs[max(1, min(d.returnable(q), len(seqs)))-1]
	return func(s *slot) bool { return s.pending.ready(d.millis) && s.pending.seq <= last }
}

// returnable gives for how many messages of a queue there is room to come back: the one
// for which it is kept, and what neither passes the bound of what is owed nor, with the
// state as it is, what readers take. For evidence, which is owed no more, stays in it.
func (d *draft) returnable(q *queueState) int {
	if d.limit <= 0 {
		return maxRun
	}
	if d.promised == 0 {
		d.promised = d.owed()
	}
	free := min(d.limit, 2*d.limit-d.bytes) - recoveryRoom - d.promised + q.returnRoom()
	return int(max(0, free) / q.returnRoom())
}

// oweBack is owe for messages of a queue that come back.
func (d *draft) oweBack(q *queueState, n int) error {
	if n > d.returnable(q) {
		return fmt.Errorf("%s would have no room to settle what comes back within its bound of %d bytes; settle or purge first: %w", stateFile, d.limit, queue.ErrFull)
	}
	d.promised += int64(n) * q.settleRoom()
	return nil
}

// offers reports whether a claim would take something that stands inline.
func (q *queueState) offers(millis int64, fair bool) bool {
	for p := range q.turns(fair) {
		return !q.hides(p, millis, fair)
	}
	return false
}

// reached gives q as reach would leave it, at a time, and changes nothing.
func (st *state) reached(q *queueState, millis int64, n int) (*queueState, error) {
	q = q.at(millis)
	for copied := false; ; copied = true {
		r := q.nextRun(millis, n, false)
		if r == nil {
			return q, nil
		}
		b, err := st.reader.members(r)
		if err != nil {
			return nil, err
		}
		if !copied {
			q = q.clone()
		}
		q.advance(millis)
		q.setRun(r.name, r.without(b, func(i int) bool {
			s := b.slots[i]
			if !r.has(i) || !s.pending.ready(millis) {
				return false
			}
			q.put(s.id, s.pending, nil)
			return true
		}))
	}
}

// nextRun gives the run whose members must stand inline before the oldest n messages
// that are due can be told; nil: they can. The line of q is as of that time.
func (q *queueState) nextRun(millis int64, n int, fair bool) *run {
	var enough uint64
	for i, r := range q.runs {
		if i == 0 {
			enough = q.enough(n, fair)
		}
		if r.first >= enough {
			break // what stands inline comes first, and so does it before all other runs
		}
		if r.due(millis) {
			return r
		}
	}
	return nil
}

// hides reports whether a message that lies in a run is to be taken before the one at
// p. After reach none is, but where the state has no room for all.
func (q *queueState) hides(p place, millis int64, fair bool) bool {
	if len(q.runs) == 0 || fair && q.line.isHead(p.seq) {
		return false
	}
	for _, r := range q.runs {
		if r.first >= p.seq {
			break
		}
		if r.due(millis) {
			return true
		}
	}
	return false
}

// enough gives the sequence of the n-th message that a claim would take from what
// stands inline. Under rotation over the keys it is the n-th without a key, for only
// such are in runs.
func (q *queueState) enough(n int, fair bool) uint64 {
	if fair {
		if free := q.line.free; len(free) >= n {
			return free[n-1].seq
		}
		return math.MaxUint64
	}
	for p := range q.turns(false) {
		if n--; n == 0 {
			return p.seq
		}
	}
	return math.MaxUint64
}

// unseal brings the member of one ID back, if it lies in a run.
func (d *draft) unseal(name, id string) error {
	q := d.st.queue(name)
	if q == nil || len(q.runs) == 0 {
		return nil
	}
	s, r, err := q.sealed(d.st.reader, id)
	if err != nil || s == nil {
		return err
	}
	m, err := d.st.reader.members(r)
	if err != nil {
		return err
	}
	return d.atomically(func() error {
		return d.bringBack(d.queue(name), r, m, func(other *slot) bool { return other == s })
	})
}

// bringBack puts those members of r inline that are still in it and that which picks.
// It is refused where the state has no room to settle them, and where the run and the
// state cannot both be right.
func (d *draft) bringBack(q *queueState, r *run, m *body, which func(*slot) bool) error {
	q.advance(d.millis)
	var back []*slot
	next := r.without(m, func(i int) bool {
		if !r.has(i) || !which(m.slots[i]) {
			return false
		}
		back = append(back, m.slots[i])
		return true
	})
	if err := d.oweBack(q, len(back)); err != nil {
		return fmt.Errorf("run %s of queue %s: %w", r.name, q.name, err)
	}
	for _, s := range back {
		if inline, _ := q.find(s.id); inline != nil {
			return contradiction(r, "ID %q is in %s too", s.id, stateFile)
		}
		q.put(s.id, s.pending, nil)
		d.bytes += int64(len(s.enc)) + 1
	}
	q.setRun(r.name, next)
	if err := d.st.sound(false); err != nil {
		return contradiction(r, "%v", err)
	}
	return nil
}

func contradiction(r *run, format string, args ...any) error {
	return &CorruptError{File: runPath(r.name), Offset: -1, Reason: fmt.Sprintf(format, args...)}
}
