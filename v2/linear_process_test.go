//go:build unix

package holdfast

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"example.com/holdfast/internal/history"
)

func init() { roles["make calls"] = makeCalls }

// A linCall is one that a caller in this process lets another process make, or what
// came of it. The order in which a caller sends and receives is real: no clock is
// needed to tell which call ended before which began.
type linCall struct {
	Caller int
	Step   history.Step
	Answer history.Answer
	Err    string
}

// makeCalls takes a directory. It makes the calls of its callers at the same time.
func makeCalls(args []string) error {
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var c linCall
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return err
		}
		go func() {
			var err error
			if c.Answer, err = history.Perform(context.Background(), s, c.Step); err != nil {
				c.Err = err.Error()
			}
			noting.Lock()
			defer noting.Unlock()
			fmt.Println(jsonOf(c))
		}()
	}
	return in.Err()
}

// A linProcess is a process that makes calls.
type linProcess struct {
	*process
	name string        // as a holder
	gone chan struct{} // closed when it can answer no more

	mu      sync.Mutex
	waiting map[int]chan linCall // by caller
}

func startCalls(t testing.TB, dir, name string) *linProcess {
	p := &linProcess{process: start(t, "make calls", dir), name: name, gone: make(chan struct{}), waiting: map[int]chan linCall{}}
	go func() {
		defer close(p.gone)
		for p.Out.Scan() {
			var c linCall
			if json.Unmarshal(p.Out.Bytes(), &c) != nil {
				return // it was cut off in the middle of a line
			}
			p.mu.Lock()
			to := p.waiting[c.Caller]
			p.mu.Unlock()
			to <- c
		}
	}()
	return p
}

// caller gives one whose calls the process makes.
func (p *linProcess) caller(n int, mix history.Mix) history.Caller {
	answers := make(chan linCall, 1)
	p.mu.Lock()
	p.waiting[n] = answers
	p.mu.Unlock()
	return history.Caller{Mix: mix, Make: func(_ context.Context, st history.Step) (history.Answer, error) {
		p.mu.Lock()
		_, err := fmt.Fprintln(p.In, jsonOf(linCall{Caller: n, Step: st}))
		p.mu.Unlock()
		if err == nil {
			select {
			case c := <-answers:
				return c.result()
			case <-p.gone:
			}
			select {
			case c := <-answers: // it came just before
				return c.result()
			default:
			}
		}
		<-p.gone // only now no thread of it can do anything more
		return history.Answer{}, history.ErrDied
	}}
}

func (c linCall) result() (history.Answer, error) {
	if c.Err != "" {
		return c.Answer, errors.New(c.Err)
	}
	return c.Answer, nil
}

// die kills the process, and returns when the kernel has reported its end.
func (p *linProcess) die() (history.Answer, error) {
	if err := p.Cmd.Process.Kill(); err != nil {
		return history.Answer{}, err
	}
	<-p.gone
	if err := p.Cmd.Wait(); killedBy(err) != syscall.SIGKILL {
		return history.Answer{}, fmt.Errorf("it ended by itself: %v", err)
	}
	return history.Answer{}, nil
}

// end lets the process end by itself.
func (p *linProcess) end(t testing.TB) {
	t.Helper()
	if err := p.In.Close(); err != nil {
		t.Error(err)
	}
	<-p.gone
	if err := p.Cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// What several processes saw, of which some were killed at a random moment, could have
// been seen by one after another. A call that was cut off happened wholly, before the
// death, or not at all. Until a process is dead no reaping returns its leases, however
// long it stands still; from then on the next one does.
func TestLinearizableProcesses(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	rounds := max(1, *linRounds/2)
	var calls, unknown int
	for round := range uint64(rounds) {
		r := linProcesses(t, rand.New(rand.NewPCG(seed, round)))
		if t.Failed() {
			t.FailNow()
		}
		if err := r.Check(&history.Model{Timeless: true}); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		all, open := r.Calls()
		calls, unknown = calls+all, unknown+open
	}
	t.Logf("%d histories, %d calls, %d of them without an answer", rounds, calls, unknown)
}

// linProcesses records three processes of two callers each, the first of which is
// killed, and with luck the second.
func linProcesses(t *testing.T, rng *rand.Rand) *history.Record {
	t.Helper()
	s, dir := newTestStore(t, &Options{OnDeadOwner: AutoRecover})
	var ps []*linProcess
	var callers []history.Caller
	for i := range 3 {
		p := startCalls(t, dir, fmt.Sprint("p", i))
		ps = append(ps, p)
		mix := history.Standard
		mix.Holder = p.name
		callers = append(callers, p.caller(0, mix), p.caller(1, mix))
	}
	r := &history.Record{}
	ran := make(chan error, 1)
	killRNG := rand.New(rand.NewPCG(rng.Uint64(), 0))
	go func() { ran <- r.Run(t.Context(), rng, 8, callers...) }()
	over := false
	for i, p := range ps[:1+killRNG.IntN(2)] {
		for at := 12 + killRNG.IntN(24); !over; runtime.Gosched() {
			if all, _ := r.Calls(); all >= at {
				break
			}
			select {
			case err := <-ran:
				over = true
				ran <- err
			default:
			}
		}
		for range killRNG.IntN(1 << 12) { // on into whatever comes next
			runtime.Gosched()
		}
		if killRNG.IntN(2) == 0 { // the others go on beside one that stands still
			linStop(t, p)
		}
		if _, err := r.Do(len(callers)+i, history.Step{Op: history.Die, Holder: p.name}, p.die); err != nil {
			t.Error(err)
		}
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
	for _, st := range []history.Step{{Op: history.Reap}, {Op: history.Reap}} {
		if _, err := r.Do(0, st, func() (history.Answer, error) { return history.Perform(t.Context(), s, st) }); err != nil {
			t.Error(err)
		}
	}
	if err := r.Look(t.Context(), 0, history.Caller{Mix: history.Standard, Make: history.On(s, nil)}); err != nil {
		t.Error(err)
	}
	for _, p := range ps {
		select {
		case <-p.gone:
		default:
			p.end(t)
		}
	}
	return r
}
