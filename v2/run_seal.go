//go:build unix

package holdfast

import (
	"cmp"
	"maps"
	"slices"
)

// When the middle of a queue is sealed. What stays inline is the beginning, which the
// next claims take, and the end, which is not worth a run yet; both in blocks of about
// the square root of the backlog, and so is the number of runs. So a commit writes
// some hundred bytes for each of about six square roots of the backlog.

// The shortest block, and of its bytes how many a bound of the state holds at least.
const (
	leastBlock   = 128
	blocksWithin = 6 * (slotBytes + settleRoom)
)

// blockOf gives how many messages of a backlog make a block.
func (d *draft) blockOf(backlog int64) int {
	if d.block != 0 {
		return d.block
	}
	block := leastBlock
	for int64(block+1)*int64(block+1)*4 <= backlog {
		block += block/64 + 1 // near enough
	}
	if d.limit > 0 {
		block = min(block, int(d.limit/blocksWithin))
	}
	return min(max(block, 1), maxRun)
}

// A sealing is a run in the making.
type sealing struct {
	run  *run
	body *body
	text []byte
}

// sealRuns seals what choose gives of the queues that this draft changed, each list in
// the order of runs. Their payloads have their objects: it is called last, right before
// the state is encoded.
func (d *draft) sealRuns(newToken func() (token, error), choose func(q *queueState) [][]*slot) ([]sealing, error) {
	var made []sealing
	for _, name := range slices.Sorted(maps.Keys(d.own)) {
		q := d.st.queue(name)
		left := map[*slot]bool{}
		for _, cold := range choose(q) {
			if len(cold) == 0 {
				continue
			}
			x, err := q.seal(cold, newToken)
			if err != nil {
				return nil, err
			}
			made = append(made, x)
			for _, s := range cold {
				left[s] = true
			}
		}
		if len(left) > 0 {
			q.slots = slices.DeleteFunc(q.slots, func(s *slot) bool { return left[s] })
			asOf := q.line.asOf
			q.buildLine()
			q.advance(asOf)
		}
	}
	return made, nil
}

// ripe gives what is to be sealed of a queue.
func (d *draft) ripe(q *queueState) [][]*slot {
	block := d.blockOf(q.live())
	if block < 0 || len(q.slots) <= 3*block {
		return nil
	}
	due, scheduled := q.cold(d.millis)
	var runs [][]*slot
	for _, cold := range [][]*slot{q.middle(due, block), later(scheduled, block)} {
		// A large batch makes several, for what a claim brings back stands inline.
		runs = slices.AppendSeq(runs, slices.Chunk(cold, min(2*block, maxRun)))
	}
	return runs
}

// cold gives the slots that may leave the state, in the order of runs: never claimed,
// nothing claimed before them, without a key, of no open import. Apart those that are
// not due yet; what has become due waits for its claim inline.
func (q *queueState) cold(millis int64) (due, scheduled []*slot) {
	for _, s := range q.slots {
		switch p := s.pending; {
		case s.claimed != nil || p.key != "" || !p.mark.zero():
		case p.notBefore == 0:
			due = append(due, s)
		case p.notBefore > millis:
			scheduled = append(scheduled, s)
		}
	}
	slices.SortFunc(due, compareMembers)
	slices.SortFunc(scheduled, compareMembers)
	return due, scheduled
}

// middle gives what is to be sealed of the messages that are due: of a queue without
// runs not the first block, which claims come to next; and not the last block, unless
// it waits for its second.
func (q *queueState) middle(due []*slot, block int) []*slot {
	rest, found := q.behindRuns(due)
	if !found {
		rest = rest[min(block, len(rest)):]
	}
	if len(rest) <= 2*block {
		return nil
	}
	return rest[:len(rest)-block]
}

// behindRuns gives what comes after the last run of messages that are due: such runs
// follow one another.
func (q *queueState) behindRuns(due []*slot) (rest []*slot, found bool) {
	rest = due
	for _, r := range q.runs {
		if r.from == 0 {
			i, _ := slices.BinarySearchFunc(due, r.last+1, func(s *slot, seq uint64) int { return cmp.Compare(s.pending.seq, seq) })
			rest, found = due[i:], true
		}
	}
	return rest, found
}

// later gives what is to be sealed of the scheduled messages: all but those that are
// due first.
func later(scheduled []*slot, block int) []*slot {
	if len(scheduled) <= 3*block {
		return nil
	}
	return scheduled[block:]
}

// seal makes a run of slots of q, which must be the draft's own; they are still to be
// taken out.
func (q *queueState) seal(slots []*slot, newToken func() (token, error)) (sealing, error) {
	name, err := newToken()
	if err != nil {
		return sealing{}, err
	}
	r, text := encodeRun(slots)
	r.name = name
	q.setRun(name, r)
	return sealing{r, newBody(slices.Clone(slots)), text}, nil
}
