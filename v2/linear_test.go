//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"example.com/holdfast/queue"
)

// A seqStep is one call on a store, as a process notes it before it makes it.
type seqStep struct {
	Op      string   `json:"op"`
	Queue   string   `json:"queue"`
	IDs     []string `json:"ids,omitempty"` // enqueue: the messages; load and what settles: the one
	N       int      `json:"n,omitempty"`   // claim
	Receipt string   `json:"receipt,omitempty"`
}

// A seqAnswer is what the call returned.
type seqAnswer struct {
	Revision uint64   `json:"revision,omitempty"` // enqueue
	Gens     []string `json:"gens,omitempty"`     // enqueue
	Receipts []string `json:"receipts,omitempty"` // claim, load
	Fences   []uint64 `json:"fences,omitempty"`
	Gauges   string   `json:"gauges,omitempty"` // status
	Refused  string   `json:"refused,omitempty"`
}

// payloadOf is the payload of every message of these tests.
func payloadOf(id string) []byte {
	return []byte(`{ "id":"` + id + `", "n":9007199254740993, "s":"😀 <&> \u2028" }`)
}

// perform makes the call of a step; what it claims it claims without a deadline. A
// refusal that the model knows is part of the answer.
func perform(ctx context.Context, s *Store, st seqStep) (seqAnswer, error) {
	a, err := performed(ctx, s, st)
	for _, refusal := range []error{
		queue.ErrDuplicate, queue.ErrStale, queue.ErrGone, queue.ErrFailedExists, queue.ErrNotFailed, queue.ErrNotFound,
	} {
		if errors.Is(err, refusal) {
			return seqAnswer{Refused: refusal.Error()}, nil
		}
	}
	return a, err
}

func performed(ctx context.Context, s *Store, st seqStep) (a seqAnswer, err error) {
	var r queue.Receipt
	if st.Receipt != "" {
		if r, err = queue.ParseReceipt(st.Receipt); err != nil {
			return a, err
		}
	}
	deliver := func(ds ...queue.Delivery) error {
		for _, d := range ds {
			if string(d.Payload) != string(payloadOf(d.Receipt.ID)) {
				return fmt.Errorf("%s: payload %s", d.Receipt, d.Payload)
			}
			a.Receipts = append(a.Receipts, d.Receipt.String())
			a.Fences = append(a.Fences, d.Fence)
		}
		return nil
	}
	switch st.Op {
	case "enqueue":
		var ms []queue.Message
		for _, id := range st.IDs {
			ms = append(ms, queue.Message{ID: id, Payload: payloadOf(id)})
		}
		es := make([]queue.Enqueued, 1)
		if len(ms) == 1 {
			es[0], err = s.Enqueue(ctx, st.Queue, ms[0])
		} else {
			es, err = s.EnqueueBatch(ctx, st.Queue, ms)
		}
		for _, e := range es {
			a.Revision = e.Revision
			a.Gens = append(a.Gens, e.Generation)
		}
	case "claim":
		var c queue.Claimed
		c, err = s.Claim(ctx, st.Queue, queue.ClaimOptions{Max: st.N, Lease: queue.NoDeadline, WithoutHolder: true})
		if len(c.Damaged) > 0 {
			return a, c.Damaged[0]
		}
		err = errors.Join(err, deliver(c.Deliveries...))
	case "load":
		var d queue.Delivery
		if d, err = s.Load(ctx, st.Queue, st.IDs[0], queue.LoadOptions{Lease: queue.NoDeadline, WithoutHolder: true}); err == nil {
			err = deliver(d)
		}
	case "ack":
		err = s.Ack(ctx, r)
	case "release":
		err = s.Release(ctx, r, queue.ReleaseOptions{})
	case "fail":
		_, err = s.Fail(ctx, r, queue.FailOptions{Cause: "a bad day"})
	case "purge":
		err = s.Purge(ctx, st.IDs[0], queue.PurgeOptions{})
	case "clear":
		_, err = s.Clear(ctx, st.Queue, queue.ClearOptions{})
	case "status":
		var status queue.Status
		status, err = s.Status(ctx, queue.StatusOptions{Queues: []string{st.Queue}})
		q := status.Queues[st.Queue]
		a.Gauges = fmt.Sprint(q.Pending, q.Processing, q.Failed, status.Complete(), q.Counters)
	case "recover":
		_, err = s.Recover(ctx)
	default:
		err = fmt.Errorf("no step %q", st.Op)
	}
	return a, err
}

// A seqModel is what one queue must be when its calls are made one after another.
type seqModel struct {
	live   []seqSlot // in order of sequence
	failed []string  // names, sorted
	c      queue.Counters
}

type seqSlot struct {
	id, gen  string // gen empty: accepted, but nobody was told
	attempts uint64
	how      string // pending, leased, released
}

func (m *seqModel) clone() *seqModel {
	return &seqModel{slices.Clone(m.live), slices.Clone(m.failed), m.c}
}

func (m *seqModel) String() string {
	var b strings.Builder
	for _, h := range m.live {
		fmt.Fprintln(&b, h.id, h.how, h.attempts)
	}
	fmt.Fprintf(&b, "failed: %v\n%+v", m.failed, m.c)
	return b.String()
}

func (m *seqModel) find(id string) int {
	return slices.IndexFunc(m.live, func(h seqSlot) bool { return h.id == id })
}

// apply makes a step and gives what it answers. Generations and revisions are the
// store's to choose: they are taken from got, if there is one.
func (m *seqModel) apply(st seqStep, got *seqAnswer) (want seqAnswer) {
	if got != nil {
		want.Revision, want.Gens = got.Revision, got.Gens
	}
	refuse := func(err error) seqAnswer { return seqAnswer{Refused: err.Error()} }
	lease := func(i int) {
		h := &m.live[i]
		if h.how == "leased" {
			m.c.Reaped++
		}
		h.how = "leased"
		h.attempts++
		m.c.Claimed++
		want.Receipts = append(want.Receipts, fmt.Sprintf("%s:%s:%d", h.id, h.gen, h.attempts))
		want.Fences = append(want.Fences, m.c.Claimed)
	}
	switch st.Op {
	case "enqueue":
		for _, id := range st.IDs {
			if m.find(id) >= 0 {
				return refuse(queue.ErrDuplicate)
			}
		}
		for i, id := range st.IDs {
			h := seqSlot{id: id, how: "pending"}
			if i < len(want.Gens) {
				h.gen = want.Gens[i]
			}
			m.live = append(m.live, h)
			m.c.Enqueued++
		}
	case "claim":
		for i := range m.live {
			if m.live[i].how != "leased" && len(want.Receipts) < st.N {
				lease(i)
			}
		}
	case "load":
		i := m.find(st.IDs[0])
		if i < 0 {
			return refuse(queue.ErrNotFound)
		}
		lease(i)
	case "ack", "release", "fail":
		r, _ := queue.ParseReceipt(st.Receipt)
		i := m.find(r.ID)
		switch {
		case i < 0 || m.live[i].gen != r.Generation:
			return refuse(queue.ErrGone)
		case m.live[i].attempts != r.Attempt || m.live[i].how != "leased":
			return refuse(queue.ErrStale)
		}
		switch at, taken := slices.BinarySearch(m.failed, r.ID); {
		case st.Op == "release":
			m.live[i].how = "released"
			m.c.Released++
			return want
		case st.Op == "ack":
			m.c.Completed++
		case taken:
			return refuse(queue.ErrFailedExists)
		default:
			m.failed = slices.Insert(m.failed, at, r.ID)
			m.c.Failed++
		}
		m.live = slices.Delete(m.live, i, i+1)
	case "purge":
		i, ok := slices.BinarySearch(m.failed, st.IDs[0])
		if !ok {
			return refuse(queue.ErrNotFailed)
		}
		m.failed = slices.Delete(m.failed, i, i+1)
		m.c.Purged++
	case "clear":
		before := len(m.live)
		m.live = slices.DeleteFunc(m.live, func(h seqSlot) bool { return h.how != "leased" })
		m.c.Cleared += uint64(before - len(m.live))
	case "status":
		leased := 0
		for _, h := range m.live {
			if h.how == "leased" {
				leased++
			}
		}
		want.Gauges = fmt.Sprint(len(m.live)-leased, leased, len(m.failed), len(m.live) == 0, m.c)
	}
	return want
}

// agrees reports whether got is the answer want. The fence is the store's: it is
// compared where the queue is the only one.
func (want seqAnswer) agrees(got seqAnswer, alone bool) bool {
	ok := len(want.Receipts) == len(got.Receipts) && want.Gauges == got.Gauges && want.Refused == got.Refused &&
		(!alone || slices.Equal(want.Fences, got.Fences))
	for i := 0; ok && i < len(want.Receipts); i++ {
		r, err := queue.ParseReceipt(got.Receipts[i])
		ok = err == nil && want.Receipts[i] == fmt.Sprintf("%s:%s:%d", r.ID, r.Generation, r.Attempt)
	}
	return ok
}

// sequential is the model as porcupine wants it.
var sequential = porcupine.Model{
	Init: func() any { return &seqModel{} },
	Step: func(state, input, output any) (bool, any) {
		next, got := state.(*seqModel).clone(), output.(seqAnswer)
		return next.apply(input.(seqStep), &got).agrees(got, true), next
	},
	Equal: func(a, b any) bool { return a.(*seqModel).String() == b.(*seqModel).String() },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}

// What several goroutines on two handles saw could have been seen by one after
// another, each call at one instant between its beginning and its end.
func TestLinearizable(t *testing.T) {
	seed := newSeed(t)
	for round := range uint64(4) {
		s, dir := newTestStore(t, nil)
		other, err := Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		history := record(t, []*Store{s, other}, rand.New(rand.NewPCG(seed, round)))
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if !porcupine.CheckOperations(sequential, history) {
			for _, op := range history {
				t.Logf("%d %d..%d %s", op.ClientId, op.Call, op.Return, sequential.DescribeOperation(op.Input, op.Output))
			}
			t.Fatalf("round %d: not linearizable", round)
		}
	}
}

// record lets four goroutines work on one queue with two IDs.
func record(t *testing.T, handles []*Store, rng *rand.Rand) (history []porcupine.Operation) {
	const clients, calls = 4, 25
	var instant atomic.Int64 // begins and ends in real order
	var mu sync.Mutex
	var receipts []string // known to all: settled twice, and by others than the claimer
	var wg sync.WaitGroup
	for client := range clients {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
		s := handles[client%len(handles)]
		wg.Go(func() {
			for range calls {
				ops := []string{"enqueue", "enqueue", "claim", "claim", "ack", "release", "fail", "load", "purge", "status", "status", "clear"}
				st := seqStep{Op: ops[rng.IntN(len(ops))], Queue: "mail", IDs: []string{[]string{"a", "b"}[rng.IntN(2)]}, N: 1 + rng.IntN(2)}
				mu.Lock()
				if len(receipts) > 0 {
					st.Receipt = receipts[max(0, len(receipts)-1-rng.IntN(3))]
				} else if st.Op == "ack" || st.Op == "release" || st.Op == "fail" {
					st.Op = "status"
				}
				mu.Unlock()
				call := instant.Add(1)
				a, err := perform(t.Context(), s, st)
				end := instant.Add(1)
				if err != nil {
					t.Errorf("%+v: %v", st, err)
					return
				}
				mu.Lock()
				receipts = append(receipts, a.Receipts...)
				history = append(history, porcupine.Operation{ClientId: client, Input: st, Output: a, Call: call, Return: end})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return history
}

// The check can fail: histories that no store may give are rejected.
func TestLinearizableRejects(t *testing.T) {
	s, _ := newTestStore(t, nil)
	enqueue, claim := seqStep{Op: "enqueue", Queue: "mail", IDs: []string{"a"}}, seqStep{Op: "claim", Queue: "mail", N: 1}
	status := seqStep{Op: "status", Queue: "mail"}
	var history []porcupine.Operation
	for i, st := range []seqStep{enqueue, claim, status, {Op: "ack"}, status} {
		if st.Op == "ack" {
			st.Receipt = history[1].Output.(seqAnswer).Receipts[0]
		}
		a, err := perform(t.Context(), s, st)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, porcupine.Operation{Input: st, Output: a, Call: int64(2 * i), Return: int64(2*i + 1)})
	}
	again := func(i int) porcupine.Operation {
		op := history[i]
		op.Call, op.Return = 100, 101
		return op
	}
	for name, h := range map[string][]porcupine.Operation{
		"one claim given twice":      {history[0], history[1], again(1)},
		"acked twice":                append(slices.Clone(history[:4]), again(3)),
		"an old status":              append(slices.Clone(history), again(2)),
		"a duplicate accepted":       {history[0], again(0)},
		"claimed before it was told": {again(0), history[1]},
	} {
		if porcupine.CheckOperations(sequential, h) {
			t.Errorf("%s: taken for linearizable", name)
		}
	}
	if !porcupine.CheckOperations(sequential, history) {
		t.Error("the history as it was is rejected")
	}
}
