//go:build unix

package holdfast

import (
	"fmt"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// What runs cost: syncs, reads, bytes of the state and of memory. Counted, not timed.

// The syncs of a commit that seals, and of one that brings a run back.
func TestSyncBudgetOfRuns(t *testing.T) {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, _ := newTestStore(t, &Options{fs: w, block: 2, prepare: -1, gather: -1, clock: &handClock{rigStart}})
	ctx := t.Context()
	for _, m := range smalls(6) {
		mustEnqueue(t, s, "mail", m)
	}
	claim := func(n int) func() error {
		return func() error {
			c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: n, Lease: queue.NoDeadline, WithoutHolder: true})
			if len(c.Deliveries) != n {
				return fmt.Errorf("claimed %d, want %d: %w", len(c.Deliveries), n, err)
			}
			return err
		}
	}
	for _, step := range []struct {
		name  string
		do    func() error
		syncs int
		runs  int
	}{
		{"an enqueue that seals a run", func() error { return second(s.Enqueue(ctx, "mail", small("m006"))) }, 6, 1},
		{"a batch that seals three", func() error { return second(s.EnqueueBatch(ctx, "mail", two())) }, 10, 4},
		{"a claim before the runs", claim(1), 1, 4},
		{"a claim that brings one back", claim(3), 1, 3},
		{"a load of a sealed message", func() error {
			return second(s.Load(ctx, "mail", "n000", queue.LoadOptions{Lease: queue.NoDeadline, WithoutHolder: true}))
		}, 1, 3},
		{"an update that claims", func() error {
			return second(s.Update(ctx, queue.ClaimChange{Queue: "mail", Options: queue.ClaimOptions{Lease: queue.NoDeadline, WithoutHolder: true}}))
		}, 1, 3},
		{"a clearing", func() error { return second(s.Clear(ctx, "mail", queue.ClearOptions{})) }, 1, 0},
	} {
		waitIdle(s)
		w.Arm(crashtest.Plan{})
		mustDo(t, step.do())
		if got := syncsBesideNames(s, w); got != step.syncs {
			t.Errorf("%s: %d syncs, want %d\n%s", step.name, got, step.syncs, w.Trace())
		}
		if runs, _ := runsOf(t, s, "mail"); runs != step.runs {
			t.Errorf("%s leaves %d runs, want %d", step.name, runs, step.runs)
		}
	}
}

// A commit that does not enqueue seals nothing, however much stands inline.
func TestOnlyEnqueuesSeal(t *testing.T) {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, _ := newTestStore(t, &Options{fs: w, block: -1, prepare: -1, clock: &handClock{rigStart}})
	if _, err := s.EnqueueBatch(t.Context(), "mail", smalls(20)); err != nil {
		t.Fatal(err)
	}
	waitIdle(s)
	s.opts.block = 2
	w.Arm(crashtest.Plan{})
	d := mustClaim(t, s, "mail", queue.ClaimOptions{Lease: queue.NoDeadline, WithoutHolder: true})
	mustDo(t, s.Ack(t.Context(), d[0].Receipt))
	if runs, _ := runsOf(t, s, "mail"); runs != 0 || slices.ContainsFunc(syncGroups(w), func(n int) bool { return n != 1 }) {
		t.Errorf("%d runs and syncs %v, want none, and of one file at a time", runs, w.SyncGroups())
	}
	mustEnqueue(t, s, "mail", small("more"))
	if runs, _ := runsOf(t, s, "mail"); runs == 0 {
		t.Error("and an enqueue seals nothing either: the test shows nothing")
	}
}

// readsOf counts what was opened in objects/ since the wrapper was armed: files of runs,
// those of them that were read whole, and payloads.
func readsOf(w *crashtest.Wrapper) (opened map[string]int, payloads int) {
	opened = map[string]int{}
	for _, e := range w.Events() {
		if e.Op != fsguard.OpOpen {
			continue
		}
		switch path.Base(e.Path) {
		case runFile:
			opened[e.Path]++
		case payloadFile:
			payloads++
		}
	}
	return opened, payloads
}

// Of a deep store opening reads no run and no payload; nor does an enqueue whose ID the
// store made. A caller's own ID asks the filter of each run, once in a process. A claim
// reads the runs that it comes to, once.
func TestRunsAreReadWhenTheyAreNeeded(t *testing.T) {
	dir := t.TempDir() + "/store"
	maker, err := Create(t.Context(), dir, nil)
	mustDo(t, err)
	const deep = 10_000
	for i := range deep / 1000 {
		ms := make([]queue.Message, 1000)
		for j := range ms {
			ms[j] = queue.Message{ID: fmt.Sprintf("m%06d", 1000*i+j), Payload: []byte(`1`)}
		}
		if _, err := maker.EnqueueBatch(t.Context(), "mail", ms); err != nil {
			t.Fatal(err)
		}
	}
	runs := len(maker.cached.st.queue("mail").runs)
	mustDo(t, maker.Close())

	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, err := Open(t.Context(), dir, &Options{fs: w, holders: &holderSet{}})
	mustDo(t, err)
	defer s.Close()
	for _, step := range []struct {
		name           string
		do             func() error
		runs, payloads int
	}{
		{"opening", func() error { return nil }, 0, 0},
		{"a status", func() error { return second(s.Status(t.Context(), queue.StatusOptions{})) }, 0, 0},
		{"an ID of the store's", func() error { return second(s.Enqueue(t.Context(), "mail", queue.Message{Payload: []byte(`1`)})) }, 0, 0},
		{"an ID of the caller's", func() error { return second(s.Enqueue(t.Context(), "mail", small("own"))) }, runs, 0},
		{"another", func() error { return second(s.Enqueue(t.Context(), "mail", small("own-2"))) }, 0, 0},
		{"a look into one run", func() error { return second(s.Show(t.Context(), "mail", "m005000")) }, 1, 1},
		{"another into it", func() error { return second(s.Show(t.Context(), "mail", "m005001")) }, 0, 1},
		{"a claim of the head", func() error {
			return second(s.Claim(t.Context(), "mail", queue.ClaimOptions{Lease: queue.NoDeadline, WithoutHolder: true}))
		}, 0, 1},
		{"a claim of what the first run has", func() error {
			c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 300, Lease: queue.NoDeadline, WithoutHolder: true})
			if len(c.Deliveries) != 300 {
				return fmt.Errorf("claimed %d: %w", len(c.Deliveries), err)
			}
			return err
		}, 1, 1},
		{"the next", func() error {
			return second(s.Claim(t.Context(), "mail", queue.ClaimOptions{Lease: queue.NoDeadline, WithoutHolder: true}))
		}, 0, 1},
	} {
		mustDo(t, step.do())
		waitIdle(s)
		opened, payloads := readsOf(w)
		w.Arm(crashtest.Plan{})
		if len(opened) != step.runs || payloads != step.payloads {
			t.Errorf("%s: %d runs and %d payloads were opened, want %d and %d", step.name, len(opened), payloads, step.runs, step.payloads)
		}
		for at, n := range opened {
			if n > 1 {
				t.Errorf("%s: %s was opened %d times", step.name, at, n)
			}
		}
	}
	mustDo(t, s.Close())
	mustVerify(t, dir)
}

// A core is a store without a disk: what its commits decide, seal and encode.
type core struct {
	runReader // nothing fails in it: asked for failed messages it panics

	t      testing.TB
	st     *state
	size   int64
	tokens uint64
	filled int // messages
	bodies map[token]*body
}

func newCore(t testing.TB) *core {
	c := &core{t: t, bodies: map[token]*body{}}
	c.st = &state{commit: c.token(), store: c.token(), revision: 1, settings: Settings{Stop}, reader: c}
	return c
}

func (c *core) token() token {
	c.tokens++
	return namedToken(fmt.Sprint("core ", c.tokens))
}

func (c *core) members(r *run) (*body, error) { return c.bodies[r.name], nil }
func (c *core) mayHold(r *sealedObject, id string) (bool, error) {
	_, ok := c.bodies[r.name].find(id)
	return ok, nil
}

// commit makes a change, seals where an enqueue does, and encodes.
func (c *core) commit(enqueues bool, change func(d *draft) error) {
	c.t.Helper()
	d := newDraft(c.st, c.token(), rigStart, c.size)
	fresh := func() (token, error) { return c.token(), nil }
	mustDo(c.t, change(d))
	mustDo(c.t, second(d.pack(fresh)))
	if enqueues {
		made, err := d.sealRuns(fresh, d.ripe)
		mustDo(c.t, err)
		for _, x := range made {
			c.bodies[x.run.name] = x.body
		}
	}
	d.seal()
	c.st, c.size = d.st, int64(len(encodeState(make([]byte, 0, c.size+1<<12), d.st)))
}

// fill enqueues messages until there have been n, so many in each commit. Their IDs are as
// long as those that the store makes.
func (c *core) fill(n, each int) {
	for c.filled < n {
		as := make([]arrival, each)
		for i := range as {
			as[i] = arrival{id: fmt.Sprintf("0198a2b4-7c1d-7000-9abc-%012x", c.filled), payload: []byte(`1`), fresh: true}
			c.filled++
		}
		c.commit(true, func(d *draft) error { return second(d.enqueueAll("mail", as, roomy)) })
	}
}

// The state's size at a depth, and that it grows like the square root of it. These are
// the figures of docs/durability.md.
func TestStateSizeAtDepth(t *testing.T) {
	depths := []int{1_000, 10_000, 100_000}
	if raceDetector() || testing.Short() {
		depths = depths[:2]
	}
	bounds := map[int]int64{1_000: 80_000, 10_000: 90_000, 100_000: 180_000}
	c, before := newCore(t), int64(0)
	for _, n := range depths {
		c.fill(n, 25)
		q := c.st.queue("mail")
		t.Logf("%7d pending: %7d bytes, %d inline, %d runs", n, c.size, len(q.slots), len(q.runs))
		if q.live() != int64(n) || c.size > bounds[n] {
			t.Errorf("%d pending: %d bytes of state, the bound is %d", q.live(), c.size, bounds[n])
		}
		if most := int64(float64(before) * math.Sqrt(10) * 1.1); before > 0 && c.size > most {
			t.Errorf("%d pending: %d bytes of state, a tenth of them took %d", n, c.size, before)
		}
		before = c.size
	}
}

// Working a deep queue off costs as much for each message as a shallow one, whose state
// is as large as its: in bytes that are allocated, by commits that claim one and ack it.
func TestDeepClaims(t *testing.T) {
	load := func(*ref) ([]byte, string, error) { return []byte("1"), "", nil }
	cost := func(deep, messages int) uint64 {
		c := newCore(t)
		c.fill(deep, 1000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range messages {
			c.commit(false, func(d *draft) error {
				got, err := d.claim("mail", taking{max: 1, lease: time.Minute}, load)
				if err == nil && (len(got.Deliveries) != 1 || !strings.HasSuffix(got.Deliveries[0].Receipt.ID, fmt.Sprintf("%012x", i))) {
					return fmt.Errorf("message %d: %+v", i, got)
				}
				if err != nil {
					return err
				}
				return d.ack(got.Deliveries[0].Receipt)
			})
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / uint64(messages)
	}
	const messages = 900
	shallow, deep := cost(1_000, messages), cost(50_000, messages)
	t.Logf("%d bytes for each message of 1,000, %d of 50,000", shallow, deep)
	if deep > 2*shallow {
		t.Errorf("%d bytes for each message of 50,000, %d of 1,000", deep, shallow)
	}
}
