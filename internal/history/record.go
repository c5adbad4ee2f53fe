package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"

	"example.com/holdfast/queue"
)

// ErrDied is what a caller gets whose call was cut off by the death of the process
// that made it: it happened or not.
var ErrDied = errors.New("the process died inside the call")

// A Caller makes calls one after another.
type Caller struct {
	Mix  Mix
	Make func(ctx context.Context, st Step) (Answer, error)
}

// On makes the calls of a caller on a store; the step Advance moves the clock.
func On(s queue.Store, clock *Clock) func(context.Context, Step) (Answer, error) {
	return func(ctx context.Context, st Step) (Answer, error) {
		if st.Op == Advance {
			clock.Advance(st.Delay)
			return Answer{}, nil
		}
		return Perform(ctx, s, st)
	}
}

// A Record is what the callers of one store did. It is safe for concurrent use.
type Record struct {
	Known   Known
	instant atomic.Int64 // beginnings and ends of calls, in their real order

	mu  sync.Mutex
	ops []porcupine.Operation
}

// Do makes one call and records it. An error is one that the model knows nothing of,
// or ErrDied, which is recorded.
func (r *Record) Do(caller int, st Step, do func() (Answer, error)) (Answer, error) {
	begin := r.instant.Add(1)
	a, err := do()
	end := r.instant.Add(1)
	switch {
	case errors.Is(err, ErrDied):
		a = Answer{Unknown: true}
	case err != nil:
		return a, fmt.Errorf("%s: %w", text(st), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Known.Learn(a)
	r.ops = append(r.ops, porcupine.Operation{ClientId: caller, Input: st, Output: a, Call: begin, Return: end})
	return a, err
}

// Run begins a history with the first caller alone, and then lets all make so many
// calls at the same time. A caller that dies is done.
func (r *Record) Run(ctx context.Context, rng *rand.Rand, calls int, callers ...Caller) error {
	for _, st := range callers[0].Mix.Prime() {
		if err := r.one(ctx, 0, callers[0], st.With(r.Known.receiptBefore(0))); err != nil {
			return err
		}
	}
	errs := make([]error, len(callers))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range callers {
		own := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		wg.Go(func() {
			<-start
			for range calls {
				if errs[i] = r.one(ctx, i, c, c.Mix.Step(own, &r.Known)); errs[i] != nil {
					return
				}
				runtime.Gosched() // calls can be short: one caller would be done before the next one begins
			}
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		if errors.Is(err, ErrDied) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

func (r *Record) one(ctx context.Context, caller int, c Caller, st Step) error {
	_, err := r.Do(caller, st, func() (Answer, error) { return c.Make(ctx, st) })
	return err
}

// Look records everything that can be seen when all is over.
func (r *Record) Look(ctx context.Context, caller int, c Caller) error {
	for _, st := range c.Mix.Looks() {
		if err := r.one(ctx, caller, c, st); err != nil {
			return err
		}
	}
	return nil
}

// Looks are steps that show everything of the queues of a mix.
func (x Mix) Looks() []Step {
	out := []Step{{Op: Status, Queues: x.Queues}}
	for _, name := range x.Queues {
		out = append(out, Step{Op: List, Queue: name}, Step{Op: Cursor, Queue: name})
		for _, space := range []string{"", aside} {
			out = append(out, Step{Op: ListFailed, Queue: name, Space: space})
		}
		for _, id := range x.IDs {
			out = append(out, Step{Op: Show, Queue: name, IDs: []string{id}})
		}
	}
	return out
}

// Calls counts the recorded calls, and those among them without an answer.
func (r *Record) Calls() (all, unknown int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, op := range r.ops {
		if op.Output.(Answer).Unknown {
			unknown++
		}
	}
	return len(r.ops), unknown
}

// Check returns nil if there is an order of the calls, each at some instant between
// its beginning and its end, in which a store that begins as begin gives all their
// answers. Else the error shows the history.
func (r *Record) Check(begin *Model) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if porcupine.CheckOperations(sequential(begin), r.ops) {
		return nil
	}
	var b strings.Builder
	b.WriteString("no order of these calls gives their answers:\n")
	for _, op := range slices.SortedFunc(slices.Values(r.ops), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) }) {
		fmt.Fprintf(&b, "%d %d..%d %s -> %s\n", op.ClientId, op.Call, op.Return, text(op.Input), text(op.Output))
	}
	return errors.New(b.String())
}

// A stage is a model between two steps, which nobody changes, and its text.
type stage struct {
	model *Model
	text  string
	hash  uint64
}

func stageOf(m *Model) stage {
	text := m.String()
	h := fnv.New64a()
	h.Write([]byte(text))
	return stage{m, text, h.Sum64()}
}

// sequential is the model as the checker wants it. A call without an answer leads to
// two stages.
func sequential(begin *Model) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{stageOf(begin.Clone())} },
		Step: func(state, input, output any) []any {
			st, got, before := input.(Step), output.(Answer), state.(stage)
			next := before.model.Clone()
			if got.Unknown {
				next.Apply(st, nil)
				return []any{before, stageOf(next)}
			}
			if _, ok := next.Apply(st, &got); !ok {
				return nil
			}
			return []any{stageOf(next)}
		},
		Equal: func(a, b any) bool { return a.(stage).text == b.(stage).text },
		Hash:  func(a any) uint64 { return a.(stage).hash },
	}
	return m.ToModel()
}
