//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/holdfast/internal/fsguard"
)

var (
	killRounds = flag.Int("kill.rounds", 6, "how often TestKillAtRandom kills a process, by each route")
	killSeed   = flag.Uint64("kill.seed", 0, "seed of TestKillAtRandom; 0: a new one")
)

func init() { roles["work until killed"] = workUntilKilled }

// A killNote is one line of a process that is to be killed: a call before it is made,
// or its answer.
type killNote struct {
	N       int
	ID      string
	Call    string // "" in an answer
	Payload string // of the claim, or to be written
	New     string // of a migration
}

func (n killNote) move() crashMove {
	switch n.Call {
	case "put":
		return movePut(n.Payload)
	case "load":
		return moveAny(moveLoad)
	case "ack":
		return moveEnd(n.Payload)
	case "fail":
		// Over other evidence nothing happens.
		return moveAny(moveFail(n.Payload))
	case "migrate":
		return moveMigrate(n.Payload, n.New)
	}
	panic("no move " + n.Call)
}

// A killed is what the process knows: a producer and a consumer, in goroutines of
// their own, work on a few IDs.
type killed struct {
	s     *Store
	round string
	mu    sync.Mutex
	n     int
}

var killIDs = []string{"a", "b", "c"}

// begin notes a call, in one write: the line is there whole or not at all.
func (w *killed) begin(n killNote) killNote {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	n.N = w.n
	w.print(n)
	return n
}

func (w *killed) end(n killNote) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.Call = ""
	w.print(n)
}

func (w *killed) print(n killNote) {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, "%s\n", b)
}

func (w *killed) payload() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	return fmt.Sprintf(`"%s %d"`, w.round, w.n)
}

func (w *killed) produce(rng *rand.Rand) error {
	for {
		n := w.begin(killNote{ID: killIDs[rng.IntN(len(killIDs))], Call: "put", Payload: w.payload()})
		if _, err := w.s.Enqueue(context.Background(), n.ID, []byte(n.Payload)); err != nil {
			return err
		}
		w.end(n)
	}
}

func (w *killed) consume(rng *rand.Rand) error {
	ctx := context.Background()
	for {
		n := w.begin(killNote{ID: killIDs[rng.IntN(len(killIDs))], Call: "load"})
		m := killNote{ID: n.ID}
		c, err := w.s.Load(ctx, n.ID, &LoadOptions{Migrate: func(_ context.Context, _ string, old []byte) ([]byte, error) {
			n.Payload = string(old)
			w.end(n)
			if rng.IntN(4) > 0 {
				return nil, nil
			}
			m = w.begin(killNote{ID: n.ID, Call: "migrate", Payload: string(old), New: w.payload()})
			return []byte(m.New), nil
		}})
		if errors.Is(err, ErrNotFound) {
			w.end(n)
			continue
		}
		if err != nil {
			return err
		}
		if m.N > 0 {
			w.end(m)
		}
		end, call := w.s.Ack, "ack"
		if rng.IntN(3) == 0 {
			end, call = w.s.Fail, "fail"
		}
		n = w.begin(killNote{ID: n.ID, Call: call, Payload: string(c.Payload)})
		if err := end(ctx, c); err != nil && !errors.Is(err, ErrAlreadyExists) {
			return err
		}
		w.end(n)
		if err := c.Close(); err != nil {
			return err
		}
	}
}

// workUntilKilled takes both directories, a route, the name of the round and a seed.
func workUntilKilled(args []string) error {
	route, err1 := strconv.Atoi(args[2])
	seed, err2 := strconv.ParseUint(args[4], 10, 64)
	s, err := Open(args[0], &Options{FailedDir: args[1], ClaimBy: Route(route)})
	if err := errors.Join(err1, err2, err); err != nil {
		return err
	}
	w := &killed{s: s, round: args[3]}
	ended := make(chan error)
	go func() { ended <- w.produce(rand.New(rand.NewPCG(seed, 1))) }()
	go func() { ended <- w.consume(rand.New(rand.NewPCG(seed, 2))) }()
	return <-ended // it does not end otherwise
}

// Whenever a process that produces and consumes is killed: what it was told is there,
// once and in its right place, and what it was not told happened wholly or not at all.
// Every other process goes on by the other route.
func TestKillAtRandom(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -run '^%s$' -kill.seed=%d", t.Name(), seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := realPlace(t)
	may := map[string]*crashOracle{}
	for _, id := range killIDs {
		may[id] = newOracle(crashState{})
	}
	answered, stale := 0, 0
	for round := range 2 * *killRounds {
		c := start(t, "work until killed", p.queue, p.failed, fmt.Sprint(round%2), fmt.Sprint("round ", round), fmt.Sprint(rng.Uint64()))
		lines := c.KillAtRandom(t, rng, 60, 1<<13)
		for _, line := range lines {
			var n killNote
			if err := json.Unmarshal([]byte(line), &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			key := fmt.Sprintf("%d of round %d", n.N, round)
			switch _, open := may[n.ID].keys[key]; {
			case n.Call != "":
				may[n.ID].begin(key, n.move())
			case !open:
				t.Fatalf("%q answers nothing", line)
			default:
				answered++
				may[n.ID].answered(key, n.told(lines))
			}
		}
		stale += afterKill(t, p, bothRoutes[(round+1)%2], may, lines)
	}
	t.Logf("%d rounds, %d calls answered, %d stale locks", 2**killRounds, answered, stale)
}

// told is what an answer tells of the state just then: a load tells the claim.
func (n killNote) told(lines []string) func(crashState) bool {
	for _, line := range lines {
		var begun killNote
		if json.Unmarshal([]byte(line), &begun) == nil && begun.N == n.N && begun.Call == "load" {
			return claims(n.Payload)
		}
	}
	return nil
}

// afterKill recovers each ID, compares, and lets the oracle go on from what is there.
func afterKill(t *testing.T, p crashPlace, route Route, may map[string]*crashOracle, lines []string) (stale int) {
	t.Helper()
	s, err := Open(p.queue, p.options(fsguard.OS(), route, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, id := range killIDs {
		if _, there, err := lstat(s.queue.dir, namesOf(id).lock); err != nil {
			t.Fatal(err)
		} else if there {
			stale++
		}
		if err := operator(s, id); err != nil {
			t.Fatal(err)
		}
		if err := s.transfer(t.Context(), id, recoverOnly); err != nil {
			t.Fatalf("%s: recovery: %v", id, err)
		}
		got, err := lookAt(s, id)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(may[id].states(), got) {
			t.Fatalf("%s: found\n  %v\nwant one of\n%v\nafter\n%s", id, got, may[id], strings.Join(lines, "\n"))
		}
		if got.failed != "" { // taken out, so that the next one has a place
			if err := os.Remove(filepath.Join(p.failed, namesOf(id).failed())); err != nil {
				t.Fatal(err)
			}
			got.failed = ""
		}
		may[id] = newOracle(got)
	}
	b, err := s.LoadPending(t.Context(), &BatchOptions{TempMaxAge: time.Minute})
	if err != nil || len(b.Skipped) > 0 {
		t.Fatalf("%v, %v", b, err)
	}
	for _, c := range b.Claims {
		o := may[c.ID]
		o.begin("batch", moveLoad)
		o.answered("batch", claims(string(c.Payload)))
		if len(o.may) != 1 {
			t.Fatalf("%s: loaded %s: %v", c.ID, c.Payload, o)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := noLitter(s); err != nil {
		t.Fatal(err)
	}
	return stale
}
