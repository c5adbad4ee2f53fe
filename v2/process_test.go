//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/holdfast/queue"
)

func init() {
	roles["mixed work"] = mixedWork
	roles["hand over"] = handOver
}

// An event is one line of a process's journal.
type event struct {
	What    string `json:"what"` // enqueued, claimed, acked, released, failed
	Queue   string `json:"queue"`
	ID      string `json:"id"`
	Gen     string `json:"gen"`
	Attempt uint64 `json:"attempt,omitempty"`
	Fence   uint64 `json:"fence,omitempty"`
	Payload []byte `json:"payload,omitempty"`
}

// A hand works on one store beside others and prints what came of it.
type hand struct {
	s       *Store
	rng     *rand.Rand
	highest *atomic.Uint64 // fence that any hand of this process was given
}

func (h *hand) print(what string, r queue.Receipt, fence uint64, payload []byte) {
	noting.Lock()
	defer noting.Unlock()
	fmt.Println(jsonOf(event{what, r.Queue, r.ID, r.Generation, r.Attempt, fence, payload}))
}

func (h *hand) enqueue(ctx context.Context, name string, ids ...string) error {
	var ms []queue.Message
	for _, id := range ids {
		ms = append(ms, queue.Message{ID: id, Payload: payloadOf(id)})
	}
	es := make([]queue.Enqueued, 1)
	var err error
	if len(ms) == 1 {
		es[0], err = h.s.Enqueue(ctx, name, ms[0])
	} else {
		es, err = h.s.EnqueueBatch(ctx, name, ms)
	}
	if err != nil {
		return err
	}
	for i, e := range es {
		h.print("enqueued", queue.Receipt{Queue: name, ID: e.ID, Generation: e.Generation}, 0, ms[i].Payload)
	}
	return nil
}

// claim claims, and checks that fences grow: those of a claim that began after
// another of this process had ended are higher.
func (h *hand) claim(ctx context.Context, name string, n int) ([]queue.Receipt, error) {
	before := h.highest.Load()
	c, err := h.s.Claim(ctx, name, queue.ClaimOptions{Max: n, Lease: queue.NoDeadline})
	if err != nil || len(c.Damaged) > 0 {
		return nil, fmt.Errorf("claim: %v %v", c.Damaged, err)
	}
	var rs []queue.Receipt
	for _, d := range c.Deliveries {
		if d.Fence <= before {
			return nil, fmt.Errorf("%s: fence %d after %d", d.Receipt, d.Fence, before)
		}
		for old := h.highest.Load(); old < d.Fence && !h.highest.CompareAndSwap(old, d.Fence); {
			old = h.highest.Load()
		}
		h.print("claimed", d.Receipt, d.Fence, d.Payload)
		rs = append(rs, d.Receipt)
	}
	return rs, nil
}

// settle releases with the chance of release, fails with that of fail, else acks.
func (h *hand) settle(ctx context.Context, r queue.Receipt, release, fail float64) (what string, err error) {
	switch x := h.rng.Float64(); {
	case x < release:
		what, err = "released", h.s.Release(ctx, r, queue.ReleaseOptions{})
	case x < release+fail:
		what = "failed"
		_, err = h.s.Fail(ctx, r, queue.FailOptions{Cause: "x"})
	default:
		what, err = "acked", h.s.Ack(ctx, r)
	}
	if err == nil {
		h.print(what, r, 0, nil)
	}
	return what, err
}

// hands runs several goroutines on one handle.
func hands(dir, seed string, n int, work func(i int, h *hand) error) error {
	s, err := Open(context.Background(), dir, nil)
	if err != nil {
		return err
	}
	number, _ := strconv.ParseUint(seed, 10, 64)
	var highest atomic.Uint64
	errs := make(chan error, n)
	for i := range n {
		h := &hand{s: s, rng: rand.New(rand.NewPCG(number, uint64(i))), highest: &highest}
		go func() { errs <- work(i, h) }()
	}
	for range n {
		if e := <-errs; e != nil && err == nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	return s.Close()
}

// mixedWork takes a directory, a name of its own and a seed.
func mixedWork(args []string) error {
	const goroutines, rounds = 4, 15
	ctx := context.Background()
	return hands(args[0], args[2], goroutines, func(i int, h *hand) error {
		for round := range rounds {
			ids := make([]string, 1+h.rng.IntN(3))
			for k := range ids {
				ids[k] = fmt.Sprintf("%s-%d-%d-%d", args[1], i, round, k)
			}
			name := []string{"x", "y/z"}[h.rng.IntN(2)]
			if err := h.enqueue(ctx, name, ids...); err != nil {
				return err
			}
			rs, err := h.claim(ctx, name, 1+h.rng.IntN(3))
			if err != nil {
				return err
			}
			for _, r := range rs {
				if _, err := h.settle(ctx, r, 0.3, 0.1); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// A fate is what a message went through, by the journals of all processes.
type fate struct {
	payload        string
	claimed, ended map[uint64]string // by attempt
}

// judge puts all journals together: no message lost, none delivered twice under one
// attempt, none settled twice, every delivery after the first with a release before
// it, every payload as it was handed in.
func judge(t *testing.T, lines []string) (counts map[string]uint64) {
	t.Helper()
	counts = map[string]uint64{}
	fates := map[string]*fate{}
	fences := map[uint64]bool{}
	var events []event
	for _, line := range lines {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, e)
		counts[e.What]++
		if e.What == "enqueued" {
			if fates[e.Gen] != nil {
				t.Errorf("generation %s was given twice", e.Gen)
			}
			fates[e.Gen] = &fate{string(e.Payload), map[uint64]string{}, map[uint64]string{}}
		}
	}
	for _, e := range events {
		f := fates[e.Gen]
		switch {
		case f == nil:
			t.Errorf("%+v: nobody enqueued it", e)
		case e.What == "claimed":
			if f.claimed[e.Attempt] != "" || fences[e.Fence] {
				t.Errorf("claimed twice: %+v", e)
			}
			if string(e.Payload) != f.payload {
				t.Errorf("%s: payload %s, was %s", e.ID, e.Payload, f.payload)
			}
			fences[e.Fence], f.claimed[e.Attempt] = true, e.ID
		case e.What != "enqueued":
			if f.ended[e.Attempt] != "" {
				t.Errorf("%+v: was %s before", e, f.ended[e.Attempt])
			}
			f.ended[e.Attempt] = e.What
		}
	}
	for gen, f := range fates {
		last := uint64(len(f.claimed))
		for n := uint64(1); n <= last; n++ {
			if f.claimed[n] == "" || f.ended[n] == "" || (f.ended[n] == "released") != (n < last) {
				t.Errorf("%s: claims %v, ends %v", gen, f.claimed, f.ended)
			}
		}
		if last == 0 {
			t.Errorf("%s is lost: it was never delivered", gen)
		}
	}
	return counts
}

// TestProcesses lets three processes work on one store, and then the journals.
func TestProcesses(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	s, dir := newTestStore(t, nil)
	children := make([]*process, 3)
	for i := range children {
		children[i] = start(t, "mixed work", dir, fmt.Sprint("p", i), fmt.Sprint(seed+uint64(i)))
	}
	var lines []string
	for i, p := range children {
		own, err := p.Rest()
		if err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
		lines = append(lines, own...)
	}
	mustVerify(t, dir)
	// What they released and did not claim again is still there.
	for _, name := range []string{"x", "y/z"} {
		c, err := s.Claim(t.Context(), name, queue.ClaimOptions{Max: maxClaim, Lease: queue.NoDeadline})
		if err != nil || len(c.Damaged) > 0 {
			t.Fatal(c.Damaged, err)
		}
		for _, d := range c.Deliveries {
			r := d.Receipt
			if err := s.Ack(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, jsonOf(event{"claimed", name, r.ID, r.Generation, r.Attempt, d.Fence, d.Payload}),
				jsonOf(event{"acked", name, r.ID, r.Generation, r.Attempt, 0, nil}))
		}
	}
	counts := judge(t, lines)
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil || !st.Complete() {
		t.Fatalf("at the end: %+v %v", st, err)
	}
	var sum queue.Counters
	for _, q := range st.Queues {
		sum.Enqueued += q.Counters.Enqueued
		sum.Claimed += q.Counters.Claimed
		sum.Completed += q.Counters.Completed
		sum.Released += q.Counters.Released
		sum.Failed += q.Counters.Failed
	}
	want := queue.Counters{Enqueued: counts["enqueued"], Claimed: counts["claimed"], Completed: counts["acked"],
		Released: counts["released"], Failed: counts["failed"]}
	if sum != want {
		t.Errorf("the store counted %+v, the journals say %+v", sum, want)
	}
	t.Logf("%+v in %d revisions", want, st.Revision)
}

// TestHandOvers counts how the lock goes round among processes that all want it all
// the time, readers between them.
func TestHandOvers(t *testing.T) {
	t.Parallel()
	const processes, commits = 3, 1500
	s, dir := newTestStore(t, nil)
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := st.Revision + commits
	children := make([]*process, processes)
	for i := range children {
		children[i] = start(t, "hand over", dir, fmt.Sprint(last))
		children[i].Line(t) // it is ready
	}
	for _, p := range children {
		if err := p.In.Close(); err != nil { // go
			t.Fatal(err)
		}
	}
	owner := map[uint64]int{}
	from, to := uint64(0), last // while all three contend
	looks := 0
	for i, p := range children {
		lines, err := p.Rest()
		if err != nil || len(lines) < 2 {
			t.Fatalf("process %d: %v %q", i, err, lines)
		}
		var own []uint64
		for _, line := range lines[:len(lines)-1] {
			rev, err := strconv.ParseUint(line, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if first, twice := owner[rev]; twice {
				t.Fatalf("revision %d was made by %d and by %d", rev, first, i)
			}
			owner[rev] = i
			own = append(own, rev)
		}
		from, to = max(from, own[0]), min(to, own[len(own)-1])
		n, err := strconv.Atoi(strings.TrimPrefix(lines[len(lines)-1], "looks "))
		if err != nil {
			t.Fatal(err)
		}
		looks += n
	}
	handOvers, run, longest := 0, 0, 0
	for rev := from; rev <= to; rev++ {
		if _, ok := owner[rev]; !ok {
			t.Fatalf("nobody made revision %d", rev)
		}
		if rev > from && owner[rev] != owner[rev-1] {
			handOvers++
			run = 0
		}
		run++
		longest = max(longest, run)
	}
	t.Logf("%d processes, %d commits, %d hand-overs, %d looks between; the longest run of one holder: %d commits",
		processes, to-from+1, handOvers, looks, longest)
	// Of those that the kernel wakes, the scheduler lets one be first: a busy machine
	// makes longer runs.
	if longest > 100 {
		t.Errorf("one process held the lock for %d commits in a row", longest)
	}
	if handOvers < 1000 || looks == 0 {
		t.Errorf("%d hand-overs, %d looks", handOvers, looks)
	}
}

// handOver commits and prints the revision, again and again up to the one given,
// while another handle looks.
func handOver(args []string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	last, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	s, err := Open(ctx, args[0], nil)
	if err != nil {
		return err
	}
	reader, err := OpenReadOnly(ctx, args[0], nil)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is closed
	looks, looked := 0, make(chan error, 1)
	go func() {
		for {
			_, err := reader.Status(ctx, queue.StatusOptions{})
			if err != nil {
				if ctx.Err() != nil {
					err = nil
				}
				looked <- err
				return
			}
			looks++
		}
	}()
	for made := uint64(0); made < last; {
		err := s.submit(ctx, &call{writes: true, decide: func(v *view) error {
			v.draft.dirty = true // a revision that changes nothing else
			made = v.draft.st.revision
			return nil
		}})
		if err != nil {
			return err
		}
		fmt.Println(made)
	}
	stop()
	err = <-looked
	fmt.Println("looks", looks)
	return err
}
