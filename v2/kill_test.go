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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

var killRounds = flag.Int("kill.rounds", 60, "how often TestKillAtRandom kills a process")

func init() {
	roles["work until killed"] = workUntilKilled
	roles["die at"] = dieAt
}

// A track is one goroutine of a process that is to be killed: it works on a queue of
// its own, so that it knows what each call must answer. It notes each step before
// and its answer after.
type track struct {
	s     *Store
	queue string
	rng   *rand.Rand
	next  int // number of the next ID
	note  func(queue, what string, v any)

	receipts []string // claims that were not settled
	failed   []string
}

func (l *track) do(st seqStep) (seqAnswer, error) {
	st.Queue = l.queue
	l.note(l.queue, "begin", st)
	a, err := perform(context.Background(), l.s, st)
	if err == nil {
		l.note(l.queue, "end", a)
	}
	return a, err
}

// run works for ever. First it takes over what its former lives left claimed.
func (l *track) run() error {
	page, err := l.s.List(context.Background(), l.queue, queue.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range page.Entries {
		if e.State == queue.Processing {
			a, err := l.do(seqStep{Op: "load", IDs: []string{e.ID}})
			if err != nil {
				return err
			}
			l.receipts = append(l.receipts, a.Receipts...)
		}
	}
	for {
		if err := l.one(); err != nil {
			return err
		}
	}
}

func (l *track) one() error {
	switch n := l.rng.IntN(10); {
	case n < 3:
		ids := make([]string, 1+l.rng.IntN(3))
		for i := range ids {
			ids[i] = fmt.Sprintf("%s-%d", l.queue, l.next)
			l.next++
		}
		_, err := l.do(seqStep{Op: "enqueue", IDs: ids})
		return err
	case n < 5:
		a, err := l.do(seqStep{Op: "claim", N: 1 + l.rng.IntN(4)})
		l.receipts = append(l.receipts, a.Receipts...)
		return err
	case n == 9 && len(l.failed) > 0:
		name := l.failed[0]
		l.failed = l.failed[1:]
		_, err := l.do(seqStep{Op: "purge", IDs: []string{name}})
		return err
	case n == 9 && l.rng.IntN(8) == 0:
		_, err := l.do(seqStep{Op: "clear"})
		return err
	case len(l.receipts) > 0:
		at := l.rng.IntN(len(l.receipts))
		text := l.receipts[at]
		l.receipts = slices.Delete(l.receipts, at, at+1)
		r, err := queue.ParseReceipt(text)
		if err != nil {
			return err
		}
		op := []string{"ack", "ack", "release", "fail"}[l.rng.IntN(4)]
		if op == "fail" {
			l.failed = append(l.failed, r.ID)
		}
		_, err = l.do(seqStep{Op: op, IDs: []string{r.ID}, Receipt: text})
		return err
	}
	return nil
}

// workUntilKilled takes a directory, the queues, the number of the first ID and a
// seed.
func workUntilKilled(args []string) error {
	first, _ := strconv.Atoi(args[2])
	seed, _ := strconv.ParseUint(args[3], 10, 64)
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i, name := range strings.Split(args[1], ",") {
		l := &track{s: s, queue: name, rng: rand.New(rand.NewPCG(seed, uint64(i))), next: first, note: note}
		go func() { failed <- l.run() }()
	}
	return <-failed // it does not end otherwise
}

var noting sync.Mutex

// note prints one line of a journal, in one write: it is there whole or not at all.
func note(queueName, what string, v any) {
	noting.Lock()
	defer noting.Unlock()
	fmt.Fprintf(os.Stdout, "%s %s %s\n", queueName, what, jsonOf(v))
}

// Whenever a process is killed: what it was told is there, exactly once and in its
// right place; what it was not told happened wholly or not at all.
func TestKillAtRandom(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s, dir := newTestStore(t, nil)
	queues := []string{"a", "b"}
	models := map[string]*seqModel{"a": {}, "b": {}}
	var steps, stale, open, applied int
	for round := range *killRounds {
		p := start(t, "work until killed", dir, strings.Join(queues, ","), fmt.Sprint(round*10000), fmt.Sprint(rng.Uint64()))
		var lines []string
		for range 1 + rng.IntN(40) {
			lines = append(lines, p.line(t))
		}
		for range rng.IntN(1 << 14) { // on into whatever comes next
			runtime.Gosched()
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		more, err := p.rest()
		if killedBy(err) != syscall.SIGKILL {
			t.Fatalf("round %d: the child ended by itself: %v", round, err)
		}
		if found, _ := afterDeath(t, s, p.cmd.Process.Pid); found {
			stale++
		}
		for _, name := range queues {
			answered, last := models[name].follow(t, name, append(lines, more...))
			steps += answered
			if last != nil {
				open++
			}
			if models[name].settle(t, s, name, last) {
				applied++
			}
		}
	}
	t.Logf("%d rounds, %d calls answered; found: %d stale locks, %d calls without an answer, %d of which had happened",
		*killRounds, steps, stale, open, applied)
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

// follow takes a journal's lines of one queue and checks each answer. It gives the
// step that has none.
func (m *seqModel) follow(t testing.TB, name string, lines []string) (answered int, open *seqStep) {
	t.Helper()
	for _, line := range lines {
		word := strings.SplitN(line, " ", 3)
		switch {
		case word[0] != name:
		case word[1] == "begin":
			open = &seqStep{}
			if err := json.Unmarshal([]byte(word[2]), open); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		default:
			var a seqAnswer
			if err := json.Unmarshal([]byte(word[2]), &a); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if want := m.apply(*open, &a); !want.agrees(a, false) {
				t.Fatalf("%+v answered %+v, want %+v", *open, a, want)
			}
			answered++
			open = nil
		}
	}
	return answered, open
}

// settle compares a queue with the model, to which the step without an answer has
// happened or not, and tells which.
func (m *seqModel) settle(t testing.TB, s *Store, name string, open *seqStep) (happened bool) {
	t.Helper()
	found, before := seen(t, s, name), m.String()
	if open != nil {
		after := m.clone()
		after.apply(*open, nil)
		happened = found.String() == after.String() && after.String() != before
		if happened {
			*m = *after
		}
	}
	if found.String() != m.String() {
		t.Fatalf("queue %s is\n%s\nand was\n%s\nwith, perhaps, %+v", name, found, before, open)
	}
	for i, h := range found.live {
		if m.live[i].gen == "" {
			m.live[i].gen = h.gen
		}
		if m.live[i].gen != h.gen {
			t.Fatalf("%s/%s: generation %s, want %s", name, h.id, h.gen, m.live[i].gen)
		}
	}
	return happened
}

// The same at every point of each transition, exactly; of enqueue it is T21, the
// store's part: nothing but an orphan is left. The process kills itself
// before and after operation k, for k = 1, 2… until it has none left.
func TestKillAtEveryOperation(t *testing.T) {
	for _, op := range []string{"enqueue", "claim", "ack", "fail", "recover"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			template, base, next := prepared(t, op)
			for _, when := range []string{"before", "after"} {
				happened := false
				for k := 1; ; k++ {
					dir := copyStore(t, template)
					p := start(t, "die at", dir, when, fmt.Sprint(k), jsonOf(next))
					lines, err := p.rest()
					if err == nil { // the plan did not fire
						if k < 8 || len(lines) != 1 {
							t.Fatalf("%s: %d operations, answer %q", op, k-1, lines)
						}
						break
					}
					if killedBy(err) != syscall.SIGKILL || len(lines) > 0 {
						t.Fatalf("%s operation %d: %v, %q", when, k, err, lines)
					}
					now := base.clone().goesOn(t, dir, p.cmd.Process.Pid, next)
					if happened && !now {
						t.Errorf("%s operation %d: gone, although a death earlier on left it there", when, k)
					}
					happened = now
				}
				if op != "recover" && !happened {
					t.Errorf("killed %s the last operation, and it had not happened", when)
				}
			}
		})
	}
}

// prepared makes a store in which next can be done, and the model of it.
func prepared(t *testing.T, op string) (dir string, m *seqModel, next seqStep) {
	s, dir := newTestStore(t, nil)
	m = &seqModel{}
	do := func(st seqStep) seqAnswer {
		st.Queue = "mail"
		a, err := perform(t.Context(), s, st)
		if err != nil || !m.apply(st, &a).agrees(a, true) {
			t.Fatalf("%+v: %+v, %v", st, a, err)
		}
		return a
	}
	do(seqStep{Op: "enqueue", IDs: []string{"m1", "m2", "m3"}})
	claimed := do(seqStep{Op: "claim", N: 1})
	do(seqStep{Op: "enqueue", IDs: []string{"m4"}})
	next = seqStep{Op: op, Queue: "mail", IDs: []string{"m1"}, Receipt: claimed.Receipts[0], N: 2}
	switch op {
	case "enqueue":
		next.IDs = []string{"m5", "m6"}
	case "recover":
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
func (m *seqModel) goesOn(t testing.TB, dir string, pid int, next seqStep) (happened bool) {
	t.Helper()
	s, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if next.Op == "recover" {
		pid = 0 // the record is that of the one before
	}
	_, r := afterDeath(t, s, pid)
	happened = m.settle(t, s, next.Queue, &next)
	if r.Orphans > 1 || r.Orphans == 1 && (next.Op != "enqueue" || happened) {
		t.Errorf("%d orphans after %s", r.Orphans, next.Op)
	}
	a, err := perform(t.Context(), s, next)
	if want := m.apply(next, &a); err != nil || !want.agrees(a, true) {
		t.Errorf("the same call again: %+v %v, want %+v", a, err, want)
	}
	m.settle(t, s, next.Queue, nil)
	return happened
}

// dieAt takes a directory, before or after, the number of an operation, and the
// step in which to die there.
func dieAt(args []string) error {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, err := Open(context.Background(), args[0], &Options{fs: w})
	if err != nil {
		return err
	}
	var st seqStep
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
	if _, err := perform(context.Background(), s, st); err != nil {
		return err
	}
	fmt.Println("answered")
	return nil
}
