//go:build unix

package holdfast

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/holdfast/internal/history"
)

var linRounds = flag.Int("linear.rounds", 12, "how many histories TestLinearizable records; TestLinearizableProcesses half as many")

// payloadOf is the payload of every message of these tests.
func payloadOf(id string) []byte { return history.Payload(id, 0) }

// A linClock stands where a history moved it: both clocks together, as within one boot.
type linClock struct{ *history.Clock }

func (c linClock) Now() instant {
	now := c.Clock.Now()
	return instant{Wall: now, BootID: "11111111-2222-3333-4444-555555555555", Boot: now.Sub(time.UnixMilli(history.Begin)) + time.Hour}
}

// What several goroutines on two handles saw could have been seen by one after
// another, each call at one instant between its beginning and its end. Over all
// transitions.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	var calls int
	for round := range uint64(*linRounds) {
		r, err := linRecord(t, rand.New(rand.NewPCG(seed, round)), history.Bug{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		all, _ := r.Calls()
		calls += all
	}
	t.Logf("%d histories, %d calls", *linRounds, calls)
}

// linRecord lets four goroutines work on a store, and checks what they saw.
func linRecord(t *testing.T, rng *rand.Rand, bug history.Bug) (*history.Record, error) {
	t.Helper()
	clock := history.NewClock()
	s, dir := newTestStore(t, &Options{clock: linClock{clock}})
	other, err := Open(t.Context(), dir, &s.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	mix := history.Standard.With(time.Minute)
	mix.Ops, mix.Holder = bug.Among, "this process"
	one := history.Caller{Mix: mix, Make: history.On(bug.Plant(s), clock)}
	two := history.Caller{Mix: mix, Make: history.On(other, clock)}
	r := &history.Record{}
	if err := r.Run(t.Context(), rng, 10, one, two, one, two); err != nil {
		t.Fatal(err)
	}
	if err := r.Look(t.Context(), 1, two); err != nil {
		t.Fatal(err)
	}
	return r, r.Check(&history.Model{Now: history.Begin})
}

// The check can fail: a store with a planted bug, used beside one without, is found
// out.
func TestLinearizableFindsBugs(t *testing.T) {
	for _, bug := range history.Bugs {
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			seed := newSeed(t)
			for round := range uint64(100) {
				if _, err := linRecord(t, rand.New(rand.NewPCG(seed, round)), bug); err != nil {
					t.Logf("found out in history %d", round)
					return
				}
			}
			t.Error("every history was explained in spite of it")
		})
	}
}

// linPerform makes the call of a step; "recover" is one that only this engine knows.
func linPerform(ctx context.Context, s *Store, st history.Step) (history.Answer, error) {
	if st.Op == "recover" {
		_, err := s.Recover(ctx)
		return history.Answer{}, err
	}
	return history.Perform(ctx, s, st)
}
