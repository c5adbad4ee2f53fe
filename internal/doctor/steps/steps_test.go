package steps

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
)

// script performs n steps on an engine in memory.
func script(t *testing.T, seed uint64, n int) (queue.Store, *State) {
	t.Helper()
	q := memory.New(nil)
	t.Cleanup(func() { q.Close() })
	s := New(seed)
	for range n {
		if err := s.Do(context.Background(), q); err != nil {
			t.Fatal(err)
		}
	}
	return q, s
}

func sightOf(t *testing.T, q queue.Store) Sight {
	t.Helper()
	seen, err := Look(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// After every step an engine that knows nothing of the script is in the state that the
// script predicts, and that state is found by what is seen alone.
func TestTheScriptPredictsAnEngine(t *testing.T) {
	q, s := script(t, 7, 0)
	kinds := map[string]bool{}
	n := 250
	if testrun.RaceDetector() {
		n = 120
	}
	for range n {
		kind, _, _ := strings.Cut(s.Next(), " ")
		kinds[kind] = true
		if err := s.Do(context.Background(), q); err != nil {
			t.Fatal(err)
		}
		seen := sightOf(t, q)
		if why := s.Differs(seen); why != "" {
			t.Fatalf("step %d: %s", s.Steps, why)
		}
		if s.Steps%25 != 0 {
			continue
		}
		if found, why := Find(7, seen); found == nil || found.Steps != s.Steps {
			t.Fatalf("step %d: found %+v: %s", s.Steps, found, why)
		}
	}
	for _, kind := range []string{"enqueue", "replace", "claim", "ack", "retry", "release", "fail", "reprocess", "purge", "update:"} {
		if !kinds[kind] {
			t.Errorf("no step of kind %q in %d", kind, n)
		}
	}
}

func TestTheSameSeedIsTheSameScript(t *testing.T) {
	a, b, other := New(3), New(3), New(4)
	same := true
	for range 50 {
		if a.Next() != b.Next() {
			t.Fatalf("step %d: %q and %q", a.Steps+1, a.Next(), b.Next())
		}
		same = same && a.Next() == other.Next()
		a.Skip()
		b.Skip()
		other.Skip()
	}
	if same {
		t.Error("another seed is the same script")
	}
}

// Whatever is changed behind the script's back is noticed.
func TestWhatIsWrongIsNotFound(t *testing.T) {
	ctx := context.Background()
	for name, spoil := range map[string]func(t *testing.T, q queue.Store, s *State){
		"a message too many": func(t *testing.T, q queue.Store, s *State) {
			if _, err := q.Enqueue(ctx, Queue, queue.Message{ID: "x", Payload: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		},
		"a message lost": func(t *testing.T, q queue.Store, s *State) {
			if _, err := q.Clear(ctx, Queue, queue.ClearOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"another payload": func(t *testing.T, q queue.Store, s *State) {
			r, err := receiptOf(ctx, q, s.someLeased(rand.New(rand.NewPCG(1, 1))))
			if err != nil {
				t.Fatal(err)
			}
			if err := q.ReplacePayload(ctx, r, []byte("1")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, s := script(t, 1, 40)
			for leased, waiting, _ := s.count(); leased == 0 || waiting == 0; leased, waiting, _ = s.count() {
				if err := s.Do(ctx, q); err != nil {
					t.Fatal(err)
				}
			}
			spoil(t, q, s)
			if found, why := Find(1, sightOf(t, q)); found != nil || why == "" {
				t.Errorf("found after %d steps, %q", found.Steps, why)
			}
		})
	}
}

// A sight of too much, or of too little, is of no state.
func TestSightsThatCannotBe(t *testing.T) {
	q, s := script(t, 5, 30)
	whole := sightOf(t, q)
	if len(whole.live) < 2 {
		t.Fatal("too little to spoil")
	}
	cut, twice, order := whole, whole, whole
	cut.live = whole.live[1:]
	twice.live = append([]string{whole.live[0]}, whole.live...)
	order.live = append([]string{whole.live[1], whole.live[0]}, whole.live[2:]...)
	for name, seen := range map[string]Sight{"one is missing": cut, "one is there twice": twice, "two have changed places": order} {
		if found, why := Find(5, seen); found != nil || !strings.Contains(why, "compared with what 30 steps lead to: live message ") {
			t.Errorf("%s: %+v, %q", name, found, why)
		}
	}
	if found, _ := Find(6, whole); found != nil {
		t.Error("another seed fits too")
	}
	if s.Differs(whole) != "" {
		t.Error("the whole is spoilt")
	}
	endless := whole
	endless.counters.Claimed = 1 << 60
	if found, why := find(5, endless, 100); found != nil || !strings.Contains(why, "those of 100 steps, the most that are made") {
		t.Errorf("endless: %+v, %q", found, why)
	}
}

// A step whose answer is wrong does not count as made.
func TestAWrongAnswerDiverges(t *testing.T) {
	ctx := context.Background()
	q, s := script(t, 2, 20)
	for !strings.HasPrefix(s.Next(), "claim") {
		if err := s.Do(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Claim(ctx, Queue, claiming(1)); err != nil {
		t.Fatal(err)
	}
	made := s.Steps
	if err := s.Do(ctx, q); !errors.Is(err, ErrDiverged) || s.Steps != made {
		t.Errorf("%v, after %d steps of %d", err, s.Steps, made)
	}
}
