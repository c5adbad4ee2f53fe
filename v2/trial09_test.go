//go:build unix

package holdfast

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

var trial09Rounds = flag.Int("trial09.rounds", 0, "how often trial 9 kills a worker; 0: as often as there is time for")

func init() {
	roles["trial 09 worker"] = trial09Worker
	roles["trial 09 claims"] = trial09Claims
}

// trial09Lease is longer than the test: what comes back before came back by proof.
const trial09Lease = time.Hour

// trial09Worker takes a directory, a clock's file and "hold" or "work". With four slots it
// claims and prints what it holds for ever, or prints what it acked, until SIGTERM.
func trial09Worker(args []string) error {
	s, err := Open(context.Background(), args[0], &Options{clock: steppedClock{file: args[1]}})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return worker.Run(ctx, queue.New[string](s, "mail"), func(_ context.Context, m *queue.Received[string]) error {
		if args[2] == "hold" {
			fmt.Println("held", m.Receipt.ID)
			select {}
		}
		return nil
	}, worker.Options{
		Concurrency: 4, Lease: trial09Lease, ReapEvery: 10 * time.Millisecond, Fatal: NeedsOperator, Logger: slog.New(slog.DiscardHandler),
		Observe: func(e worker.Event) {
			if e.Kind == worker.EventAcked {
				fmt.Println("acked", e.ID)
			}
		},
	})
}

// trial09Claims takes the same. It claims four messages of which no death is a proof, and
// waits for its own.
func trial09Claims(args []string) error {
	s, err := Open(context.Background(), args[0], &Options{clock: steppedClock{file: args[1]}})
	if err != nil {
		return err
	}
	c, err := s.Claim(context.Background(), "mail", queue.ClaimOptions{Max: 4, Lease: trial09Lease, WithoutHolder: true})
	if err != nil {
		return err
	}
	for _, d := range c.Deliveries {
		fmt.Println("held", d.Receipt.ID)
	}
	select {}
}

// T09: four slots, a hundred messages, SIGKILL with four claimed, one restart with consent
// to recover. All four come back while the new process runs: at once, by proof of the
// death; or, where a claim rests on its deadline alone, when that has passed.
func TestTrial09WorkerKilledAndRestarted(t *testing.T) {
	for _, role := range []string{"trial 09 worker", "trial 09 claims"} {
		t.Run(strings.TrimPrefix(role, "trial 09 "), func(t *testing.T) {
			t.Parallel()
			clock := steppedClock{file: filepath.Join(t.TempDir(), "clock")}
			clock.step(t, 0, 0)
			s, dir := newTestStore(t, &Options{clock: clock, OnDeadOwner: AutoRecover})
			mustEnqueue(t, s, "mail", smallStrings(0, 100)...)

			first := start(t, role, dir, clock.file, "hold")
			var held []string
			for range 4 {
				held = append(held, strings.TrimPrefix(first.Line(t), "held "))
			}
			first.Kill(t)
			if q := gaugesOf(t, s); q.Processing != 4 || q.Pending != 96 {
				t.Fatalf("after the death: %+v", q)
			}

			second := start(t, "trial 09 worker", dir, clock.file, "work")
			acked := map[string]int{}
			read := func(n int) {
				for range n {
					acked[strings.TrimPrefix(second.Line(t), "acked ")]++
				}
			}
			if role == "trial 09 claims" {
				read(96)
				if slices.ContainsFunc(held, func(id string) bool { return acked[id] > 0 }) {
					t.Error("a lease that is not over was ended without a proof")
				}
				clock.step(t, trial09Lease, trial09Lease)
				read(4)
			} else {
				read(100)
			}
			mustDo(t, second.Cmd.Process.Signal(syscall.SIGTERM))
			if more, err := second.Rest(); err != nil || len(more) > 0 {
				t.Errorf("the second process: %q %v", more, err)
			}
			if len(acked) != 100 {
				t.Errorf("%d messages were acked, want 100", len(acked))
			}
			if c := gaugesOf(t, s).Counters; c.Claimed != 104 || c.Completed != 100 || c.Reaped != 4 || c.Failed != 0 {
				t.Errorf("counters: %+v", c)
			}
		})
	}
}

// Then SIGKILL at random moments, again and again: the counts always add up, the store
// verifies clean, and in the end each message was acked once.
func TestTrial09RandomKills(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 9))
	clock := steppedClock{file: filepath.Join(t.TempDir(), "clock")}
	clock.step(t, 0, 0)
	s, dir := newTestStore(t, &Options{OnDeadOwner: AutoRecover})
	rounds := *trial09Rounds
	switch {
	case rounds > 0:
	case testing.Short() || raceDetector():
		rounds = 5
	case testrun.Thorough():
		rounds = 40
	default:
		rounds = 6
	}
	const each = 20
	told := map[string]int{} // what the processes could say before they died
	note := func(lines []string) {
		for _, line := range lines {
			told[strings.TrimPrefix(line, "acked ")]++
		}
	}
	add := func(round int) uint64 {
		mustEnqueue(t, s, "mail", smallStrings(round*each, (round+1)*each)...)
		return uint64((round + 1) * each)
	}
	var total uint64
	for round := range rounds {
		total = add(round)
		p := start(t, "trial 09 worker", dir, clock.file, "work")
		note(p.KillAtRandom(t, rng, each, 1<<12))
		q := gaugesOf(t, s) // and with it the recovery
		if c := q.Counters; c.Enqueued != total || c.Enqueued != c.Completed+q.Pending+q.Processing || q.Processing > 4 || c.Failed != 0 {
			t.Fatalf("round %d: %+v", round, q)
		}
		if r, err := s.Verify(t.Context(), VerifyOptions{}); err != nil || !r.OK || !r.Settled {
			t.Fatalf("round %d: %+v %v", round, r, err)
		}
	}
	total = add(rounds) // what it says of these tells that it listens to SIGTERM
	p := start(t, "trial 09 worker", dir, clock.file, "work")
	for left := gaugesOf(t, s).Unacked(); left > 0; left-- {
		note([]string{p.Line(t)})
	}
	mustDo(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	lines, err := p.Rest()
	mustDo(t, err)
	note(lines)
	for id, n := range told {
		if n > 1 {
			t.Errorf("%s was acked %d times", id, n)
		}
	}
	if q := gaugesOf(t, s); q.Counters.Completed != total || q.Unacked() != 0 || uint64(len(told)) > total || uint64(len(told)+4*rounds) < total {
		t.Errorf("%d told, %d enqueued: %+v", len(told), total, q)
	}
	t.Logf("%d kills, %d messages, %d reaped", rounds, total, gaugesOf(t, s).Counters.Reaped)
}

// smallStrings are messages whose payloads are strings.
func smallStrings(from, to int) (ms []queue.Message) {
	for i := from; i < to; i++ {
		ms = append(ms, queue.Message{ID: fmt.Sprintf("m%05d", i), Payload: []byte(`"x"`)})
	}
	return ms
}

func gaugesOf(t testing.TB, s *Store) queue.QueueStatus {
	t.Helper()
	st, err := s.Status(t.Context(), queue.StatusOptions{})
	if err != nil || !st.Settled {
		t.Fatalf("status: %+v %v", st, err)
	}
	return st.Queues["mail"]
}
