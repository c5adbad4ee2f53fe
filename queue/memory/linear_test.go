package memory_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue/memory"
)

var (
	linSeed   = flag.Uint64("linear.seed", 0, "seed of TestLinearizable; 0: a new one")
	linRounds = flag.Uint64("linear.rounds", 200, "how many histories TestLinearizable records")
)

// What several goroutines saw could have been seen by one after another, each call at
// one instant between its beginning and its end. Over all transitions. That the check
// finds bugs, package history proves on this very engine.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	seed := *linSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -run '^%s$' -linear.seed=%d", t.Name(), seed)
	calls := 0
	for round := range *linRounds {
		clock := history.NewClock()
		s := memory.New(&memory.Options{Now: clock.Now})
		c := history.Caller{Mix: history.Standard.With(time.Minute), Make: history.On(s, clock)}
		c.Mix.Holder = "this process"
		var r history.Record
		if err := r.Run(t.Context(), rand.New(rand.NewPCG(seed, round)), 10, c, c, c, c); err != nil {
			t.Fatal(err)
		}
		if err := r.Look(t.Context(), 0, c); err != nil {
			t.Fatal(err)
		}
		if err := r.Check(&history.Model{Now: history.Begin}); err != nil {
			t.Fatalf("history %d: %v", round, err)
		}
		all, _ := r.Calls()
		calls += all
	}
	t.Logf("%d histories, %d calls", *linRounds, calls)
}
