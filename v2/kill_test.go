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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

var killRounds = flag.Int("kill.rounds", 60, "how often TestKillAtRandom kills a process")

func init() {
	roles["work until killed"] = workUntilKilled
	roles["die at"] = dieAt
}

// A track is one goroutine of a process that is to be killed: it works on two queues
// of its own, so that it is known what each call must answer. It notes each step
// before and its answer after.
type track struct {
	s     *Store
	name  string
	mix   history.Mix
	rng   *rand.Rand
	known history.Known
}

// trackMix is what a track does: its queues, its IDs, its keys.
func trackMix(name, holder string) history.Mix {
	x := history.Mix{Queues: []string{name, name + "/x"}, Keys: []string{"", "", "k", "l"}, Holder: holder}
	for i := range 4 {
		x.IDs = append(x.IDs, fmt.Sprintf("%s-%d", name, i))
	}
	return x
}

func (l *track) do(st history.Step) error {
	note(l.name, "begin", st)
	a, err := history.Perform(context.Background(), l.s, st)
	if err == nil {
		note(l.name, "end", a)
		l.known.Learn(a)
	}
	return err
}

// run works for ever. First it takes over what its former lives left claimed, and
// learns what they knew.
func (l *track) run() error {
	if err := l.do(history.Step{Op: history.Reap, Queues: l.mix.Queues}); err != nil {
		return err
	}
	for _, name := range l.mix.Queues {
		if err := l.do(history.Step{Op: history.List, Queue: name}); err != nil {
			return err
		}
	}
	for {
		if err := l.do(l.mix.Step(l.rng, &l.known)); err != nil {
			return err
		}
	}
}

// workUntilKilled takes a directory, the tracks, its name as a holder and a seed.
func workUntilKilled(args []string) error {
	seed, _ := strconv.ParseUint(args[3], 10, 64)
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i, name := range strings.Split(args[1], ",") {
		l := &track{s: s, name: name, mix: trackMix(name, args[2]), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		go func() { failed <- l.run() }()
	}
	return <-failed // it does not end otherwise
}

var noting sync.Mutex

// note prints one line of a journal, in one write: it is there whole or not at all.
func note(name, what string, v any) {
	noting.Lock()
	defer noting.Unlock()
	fmt.Fprintf(os.Stdout, "%s %s %s\n", name, what, jsonOf(v))
}

// Whenever a process is killed: what it was told is there, exactly once and in its
// right place; what it was not told happened wholly or not at all. What it had
// claimed comes back to the next process by proof of its death.
func TestKillAtRandom(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s, dir := newTestStore(t, nil)
	names := []string{"a", "b"}
	models := map[string]*history.Model{}
	for _, name := range names {
		models[name] = &history.Model{Timeless: true, Shared: true}
	}
	ops := map[string]int{}
	var steps, stale, open, applied int
	rounds := *killRounds
	if raceDetector() {
		rounds = max(1, rounds/4) // the kernel kills no better with it
	}
	for round := range rounds {
		holder := fmt.Sprint("round", round)
		p := start(t, "work until killed", dir, strings.Join(names, ","), holder, fmt.Sprint(rng.Uint64()))
		lines := p.KillAtRandom(t, rng, 80, 1<<14)
		if found, _ := afterDeath(t, s, p.Cmd.Process.Pid); found {
			stale++
		}
		for _, name := range names {
			m := models[name]
			answered, last := follow(t, m, name, lines, ops)
			steps += answered
			if last != nil {
				open++
			}
			m, happened := settled(t, m, s, trackMix(name, "").Queues, last)
			if happened {
				applied++
			}
			m.Apply(history.Step{Op: history.Die, Holder: holder}, nil)
			models[name] = m
		}
	}
	t.Logf("%d rounds, %d calls answered; found: %d stale locks, %d calls without an answer, %d of which had happened",
		rounds, steps, stale, open, applied)
	t.Logf("%v", ops)
}

// afterDeath brings a store back into use after pid died (0: some other process did
// before), and tells whether it took the operator, and what Verify then says.
func afterDeath(t testing.TB, s *Store, pid int) (stale bool, r Report) {
	t.Helper()
	ctx := t.Context()
	st, err := s.Status(ctx, queue.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !st.Settled {
		_, err := s.Enqueue(ctx, "refused", small("x"))
		var lock *StaleLockError
		if !errors.As(err, &lock) || pid != 0 && lock.Owner.PID != pid {
			t.Fatalf("enqueue after the death of %d: %v", pid, err)
		}
		if r, err := s.Recover(ctx); err != nil || r.Owner == nil || *r.Owner != lock.Owner {
			t.Fatalf("recover: %+v %v", r, err)
		}
	}
	if r, err = s.Verify(ctx, VerifyOptions{}); err != nil || !r.OK || !r.Settled || r.Temps != 0 {
		t.Fatalf("verify: %+v %v", r, err)
	}
	return !st.Settled, r
}

// The same at every point of each transition, exactly; of enqueue it is T21, the
// store's part: nothing but an orphan is left. The process kills itself
// before and after operation k, for k = 1, 2… until it has none left.
func TestKillAtEveryOperation(t *testing.T) {
	for _, tt := range fatalSteps {
		if raceDetector() && tt.name != "enqueue" {
			continue // a process that is killed reports no race
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			template, base, next := prepared(t, tt)
			for _, when := range tt.deaths() {
				happened := false
				for k := 1; ; k++ {
					dir := copyStore(t, template)
					p := start(t, "die at", dir, when, fmt.Sprint(k), jsonOf(next))
					lines, err := p.Rest()
					if err == nil { // the plan did not fire
						if k < 8 || len(lines) != 1 {
							t.Fatalf("%s: %d operations, answer %q", next.Op, k-1, lines)
						}
						break
					}
					if killedBy(err) != syscall.SIGKILL || len(lines) > 0 {
						t.Fatalf("%s operation %d: %v, %q", when, k, err, lines)
					}
					now := goesOn(t, base.Clone(), dir, p.Cmd.Process.Pid, next)
					if happened && !now {
						t.Errorf("%s operation %d: gone, although a death earlier on left it there", when, k)
					}
					happened = now
				}
				if next.Op != "recover" && !happened {
					t.Errorf("killed %s the last operation, and it had not happened", when)
				}
			}
		})
	}
}

// A fatalStep is a step in which a process dies at every operation.
type fatalStep struct {
	name   string
	before []history.Step // made in a store with m1 claimed, and m2, m3, m4 pending
	step   history.Step   // which has the receipt of m1

	// briefly: it dies after each operation only. To die before the next one is the same
	// but for operations that are done at one time.
	briefly bool
}

func (f fatalStep) deaths() []string {
	if f.briefly || raceDetector() {
		return []string{"after"}
	}
	return []string{"before", "after"}
}

var fatalSteps = []fatalStep{
	{name: "enqueue", step: history.Step{Op: history.Enqueue, Queue: "mail", IDs: []string{"m5", "m6"}}},
	{name: "claim", step: history.Step{Op: history.Claim, Queue: "mail", N: 2, Holder: "child"}},
	{name: "ack", step: history.Step{Op: history.Ack}},
	{name: "fail", step: history.Step{Op: history.Fail, Cause: "a bad day"}},
	{name: "retry", step: history.Step{Op: history.Retry, Delay: time.Hour, Cause: "a bad day"}, briefly: true},
	{name: "retry at the cap", step: history.Step{Op: history.Retry, Most: 1, Cause: "the last one"}, briefly: true},
	{name: "extend", step: history.Step{Op: history.Extend, Lease: time.Hour}, briefly: true},
	{name: "reap", before: []history.Step{
		{Op: history.Load, Queue: "mail", IDs: []string{"m2"}, Holder: "gone"},
		{Op: history.Load, Queue: "mail", IDs: []string{"m4"}, Holder: "gone", Lease: time.Hour},
		{Op: history.Die, Holder: "gone"},
	}, step: history.Step{Op: history.Reap}, briefly: true},
	{name: "reprocess", before: []history.Step{{Op: history.Fail}}, step: history.Step{Op: history.Reprocess, IDs: []string{"m1"}}, briefly: true},
	{name: "update", step: history.Step{Op: history.Update, Changes: []history.Step{
		{Op: history.Ack},
		{Op: history.Enqueue, Queue: "post", IDs: []string{"p1"}},
		{Op: history.Claim, Queue: "mail", Holder: "child"},
		{Op: history.Cursor, Queue: "post", Cursor: "offset 42"},
	}}, briefly: true},
	{name: "recover", step: history.Step{Op: "recover"}},
}

// fatalQueues are what is looked at after each death.
var fatalQueues = []string{"mail", "post"}

// prepared makes a store in which the step can be done, and the model of it.
func prepared(t *testing.T, f fatalStep) (dir string, m *history.Model, next history.Step) {
	s, dir := newTestStore(t, nil)
	m = &history.Model{Timeless: true}
	do := func(st history.Step) (a history.Answer) {
		var err error
		if st.Op == history.Die {
			s.opts.holders.die()
		} else if a, err = history.Perform(t.Context(), s, st); err != nil {
			t.Fatalf("%+v: %v", st, err)
		}
		if want, ok := m.Apply(st, &a); !ok {
			t.Fatalf("%+v: %+v, want %+v", st, a, want)
		}
		return a
	}
	do(history.Step{Op: history.Enqueue, Queue: "mail", IDs: []string{"m1", "m2", "m3"}})
	receipt := do(history.Step{Op: history.Claim, Queue: "mail"}).Receipts()[0]
	do(history.Step{Op: history.Enqueue, Queue: "mail", IDs: []string{"m4"}})
	next = f.step.With(receipt)
	for _, st := range f.before {
		do(st.With(receipt))
	}
	if next.Op == "recover" {
		template := copyStore(t, dir) // s goes on to verify clean
		if err := leaveDeadOwner(template); err != nil {
			t.Fatal(err)
		}
		return template, m, next
	}
	return dir, m, next
}

// goesOn opens a store in which next was cut off, and tells whether it happened. Then
// it makes the same call again.
func goesOn(t testing.TB, m *history.Model, dir string, pid int, next history.Step) (happened bool) {
	t.Helper()
	var o *Options
	set := ownHolders(&o)
	defer set.die()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if next.Op == "recover" {
		pid = 0 // the record is that of the one before
	}
	_, r := afterDeath(t, s, pid)
	m, happened = settled(t, m, s, fatalQueues, &next)
	enqueues := next.Op == history.Enqueue || next.Op == history.Update
	if r.Orphans > 1 || r.Orphans == 1 && (!enqueues || happened) {
		t.Errorf("%d orphans after %s", r.Orphans, next.Op)
	}
	callAgain(t, m, s, next)
	return happened
}

// callAgain makes a call that was cut off once more: its answer, and what the store then
// holds, must be what they are for whoever knows whether it had happened.
func callAgain(t testing.TB, m *history.Model, s *Store, next history.Step) {
	t.Helper()
	a, err := linPerform(t.Context(), s, next)
	if err != nil {
		t.Fatal(err)
	}
	if want, ok := m.Apply(next, &a); !ok {
		t.Errorf("the same call again: %s, want %s", jsonOf(a), jsonOf(want))
	}
	settled(t, m, s, fatalQueues, nil)
}

// dieAt takes a directory, before or after, the number of an operation, and the
// step in which to die there.
func dieAt(args []string) error {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, err := Open(context.Background(), args[0], &Options{fs: w})
	if err != nil {
		return err
	}
	var st history.Step
	if err := json.Unmarshal([]byte(args[3]), &st); err != nil {
		return err
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	plan := crashtest.StopBefore(n)
	if args[1] == "after" {
		plan = crashtest.StopAfter(n)
	}
	plan.OnStop = crashtest.KillSelf
	w.Arm(plan)
	if _, err := linPerform(context.Background(), s, st); err != nil {
		return err
	}
	fmt.Println("answered")
	return nil
}
