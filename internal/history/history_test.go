package history_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue/memory"
)

var seedFlag = flag.Uint64("history.seed", 0, "seed of the random histories; 0: a new one")

// newSeed gives the seed of a random run and prints it.
func newSeed(t *testing.T) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -run '^%s$' -history.seed=%d", t.Name(), seed)
	return seed
}

// record lets callers work on a store in memory, and checks what they saw.
func record(t *testing.T, rng *rand.Rand, callers int, bug history.Bug) error {
	t.Helper()
	clock := history.NewClock()
	c := history.Caller{
		Mix:  history.Standard.With(time.Minute),
		Make: history.On(bug.Plant(memory.New(&memory.Options{Now: clock.Now})), clock),
	}
	c.Mix.Ops = bug.Among
	var r history.Record
	if err := r.Run(t.Context(), rng, 40/callers, slices.Repeat([]history.Caller{c}, callers)...); err != nil {
		t.Fatal(err)
	}
	if err := r.Look(t.Context(), 0, c); err != nil {
		t.Fatal(err)
	}
	return r.Check(&history.Model{Now: history.Begin})
}

// The check can fail: each of the planted bugs is found out, and those that only
// others can see are not when there are none.
func TestBugsAreFoundOut(t *testing.T) {
	for _, bug := range slices.Concat(history.Bugs, history.MoreBugs) {
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			seed := newSeed(t)
			found := func(histories uint64, callers int) bool {
				for round := range histories {
					if record(t, rand.New(rand.NewPCG(seed, round)), callers, bug) != nil {
						t.Logf("%d callers: found out in history %d", callers, round)
						return true
					}
				}
				return false
			}
			if !found(300, 4) {
				t.Error("every history was explained in spite of it")
			}
			if bug.Among != nil && found(20, 1) {
				t.Error("one caller alone has met it: it is another bug than it says")
			}
		})
	}
}

// A store without a bug is explained, by any number of callers.
func TestNoBugIsFound(t *testing.T) {
	seed := newSeed(t)
	for round := range uint64(20) {
		for callers := range 5 {
			if err := record(t, rand.New(rand.NewPCG(seed, round)), 1+callers, history.Bug{}); err != nil {
				t.Fatalf("history %d, %d callers: %v", round, 1+callers, err)
			}
		}
	}
}
