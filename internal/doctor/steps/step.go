package steps

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"example.com/holdfast/queue"
)

// How much the script keeps in the store at a time.
const (
	mostLive   = 24
	mostLeased = 6
	mostFailed = 6
)

// ErrDiverged is returned by Do when a step was acknowledged and its answer is not what
// the script predicts.
var ErrDiverged = errors.New("the answer is not the one that the steps before it lead to")

// A step is one call: what it makes of the state, and how it is made on a store. perform
// sees the state before the step; after is the one behind it.
type step struct {
	name    string
	apply   func(after *State)
	perform func(ctx context.Context, q queue.Store, after *State) error
}

// claims outlive the process, so that its death changes nothing that the script does not.
func claiming(n int) queue.ClaimOptions {
	return queue.ClaimOptions{Max: n, Lease: queue.NoDeadline, WithoutHolder: true}
}

// next chooses the step that follows, by the seed and the state alone.
func (s *State) next() step {
	r := rand.New(rand.NewPCG(s.Seed, ^s.Steps))
	leased, waiting, fresh := s.count()
	kinds := [...]struct {
		weight int
		is     bool // it can be made now
		make   func(*State, *rand.Rand) step
	}{
		{5, len(s.live) < mostLive-3, enqueueOne},
		{2, len(s.live) < mostLive-3, enqueueSome},
		{2, fresh > 0, replaceOne},
		{6, waiting > 0 && leased < mostLeased-1, claimSome},
		{5, leased > 0, ackOne},
		{2, leased > 0, retryOne},
		{2, leased > 0, releaseOne},
		{2, leased > 0 && len(s.failed) < mostFailed, failOne},
		{2, len(s.failed) > 0, reprocessOne},
		{1, len(s.failed) > 0, purgeOne},
		{3, leased > 0 && waiting > 0, updateAll},
	}
	sum := 0
	for _, k := range kinds {
		if k.is {
			sum += k.weight
		}
	}
	for at, i := r.IntN(sum), 0; ; i++ {
		if k := kinds[i]; !k.is {
			continue
		} else if at -= k.weight; at < 0 {
			return k.make(s, r)
		}
	}
}

// count gives how many messages are leased, wait for a claim, and were never claimed.
func (s *State) count() (leased, waiting, fresh int) {
	for _, m := range s.live {
		switch {
		case m.leased:
			leased++
		default:
			waiting++
			if !m.returned {
				fresh++
			}
		}
	}
	return leased, waiting, fresh
}

// some gives the ID of a message for which is holds.
func (s *State) some(r *rand.Rand, is func(message) bool) string {
	n := 0
	for _, m := range s.live {
		if is(m) {
			n++
		}
	}
	at := r.IntN(n)
	i := slices.IndexFunc(s.live, func(m message) bool {
		if is(m) {
			at--
		}
		return at < 0
	})
	return s.live[i].id
}

func (s *State) someLeased(r *rand.Rand) string {
	return s.some(r, func(m message) bool { return m.leased })
}

// fresh numbers a payload that is not there yet, and names its message.
func (s *State) fresh(ahead uint64) (id string, body uint64) {
	body = s.bodies + 1 + ahead
	return fmt.Sprintf("m-%07d", body), body
}

// Next names the step that follows.
func (s *State) Next() string { return s.next().name }

// Skip goes one step on without a store.
func (s *State) Skip() {
	s.next().apply(s)
	s.Steps++
}

// Do makes the step that follows on the store, and goes on by it if that was acknowledged
// with the right answer. On an error of the store it may have happened.
func (s *State) Do(ctx context.Context, q queue.Store) error {
	x, after := s.next(), s.Clone()
	x.apply(after)
	after.Steps++
	if err := x.perform(ctx, q, after); err != nil {
		return fmt.Errorf("step %d (%s): %w", after.Steps, x.name, err)
	}
	*s = *after
	return nil
}
