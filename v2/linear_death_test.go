//go:build unix

package holdfast

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

// linStop stops a process, and returns when the kernel reports that it stands still.
func linStop(t testing.TB, p *linProcess) {
	t.Helper()
	pid := p.Cmd.Process.Pid
	mustDo(t, unix.Kill(pid, unix.SIGSTOP))
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || !status.Stopped():
			t.Fatalf("waiting for a stop: %#x %v", status, err)
		default:
			return
		}
	}
}

// Nothing is taken from a holder that stands still, before its deadline; when it is
// dead, everything is. The order of events decides, nothing else.
func TestStoppedHolderKeepsItsLeases(t *testing.T) {
	t.Parallel()
	s, dir := newTestStore(t, nil)
	m := &history.Model{Timeless: true}
	p := startCalls(t, dir, "stopped")
	worker := p.caller(0, history.Mix{})
	made := func(make func(st history.Step) (history.Answer, error)) func(st history.Step) history.Answer {
		return func(st history.Step) history.Answer {
			t.Helper()
			a, err := make(st)
			if err != nil {
				t.Fatalf("%+v: %v", st, err)
			}
			if want, ok := m.Apply(st, &a); !ok {
				t.Fatalf("%s\nanswered %s\nwant %s", jsonOf(st), jsonOf(a), jsonOf(want))
			}
			return a
		}
	}
	ours := made(func(st history.Step) (history.Answer, error) { return history.Perform(t.Context(), s, st) })
	its := made(func(st history.Step) (history.Answer, error) { return worker.Make(t.Context(), st) })
	reap := history.Step{Op: history.Reap}

	ours(history.Step{Op: history.Enqueue, Queue: "mail", IDs: []string{"a", "b", "c", "d"}})
	ours(history.Step{Op: history.Enqueue, Queue: "post", IDs: []string{"e"}})
	claimed := its(history.Step{Op: history.Claim, Queue: "mail", N: 2, Holder: p.name, Lease: time.Hour})
	its(history.Step{Op: history.Claim, Queue: "mail", Holder: p.name})
	its(history.Step{Op: history.Claim, Queue: "mail"}) // for whoever comes after it
	its(history.Step{Op: history.Claim, Queue: "post", Holder: p.name})
	receipts := claimed.Receipts()

	linStop(t, p)
	if a := ours(reap); a.Reaped != nil {
		t.Fatalf("a stopped holder lost %+v", a.Reaped)
	}
	for _, id := range []string{"a", "c"} { // with a deadline, and without
		ours(history.Step{Op: history.Load, Queue: "mail", IDs: []string{id}, Holder: "ours"}) // refused
	}
	ours(history.Step{Op: history.Claim, Queue: "mail", N: 9}) // nothing is due

	mustDo(t, unix.Kill(p.Cmd.Process.Pid, unix.SIGCONT))
	its(history.Step{Op: history.Extend, Receipt: receipts[0], Lease: time.Hour})
	its(history.Step{Op: history.Ack, Receipt: receipts[1]})

	linStop(t, p)
	if a := ours(reap); a.Reaped != nil {
		t.Fatalf("a stopped holder lost %+v", a.Reaped)
	}
	// A deadline ends a lease whatever its holder does: by the clock of this handle the
	// hour is over.
	late, err := Open(t.Context(), dir, &Options{clock: linLater{systemClock{}, 2 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if got, err := late.Reap(t.Context(), queue.ReapOptions{}); err != nil || len(got) != 1 || got[0].ID != "a" || got[0].Cause != queue.ByDeadline {
		t.Fatalf("two hours later: %+v %v", got, err)
	}
	// For the model, which knows no time, that was done by name.
	if _, ok := m.Apply(history.Step{Op: history.Reap, Receipt: receipts[0]}, &history.Answer{
		Reaped: []history.Reaped{{Queue: "mail", ID: "a", Attempt: 1, Cause: queue.ByOperator, Lapses: 1}},
	}); !ok {
		t.Fatal("the model had not leased it")
	}

	if _, err := p.die(); err != nil {
		t.Fatal(err)
	}
	m.Apply(history.Step{Op: history.Die, Holder: p.name}, nil)
	if a := ours(reap); len(a.Reaped) != 2 {
		t.Fatalf("of a dead holder came back %+v, want c and e", a.Reaped)
	}
	ours(reap) // once
	// The receipt of what lapsed is good until the next claim, for whoever has it.
	ours(history.Step{Op: history.Ack, Receipt: receipts[0]})
	ours(history.Step{Op: history.Claim, Queue: "mail", N: 9})
	settled(t, m, s, []string{"mail", "post"}, nil)
}

// A linLater is a clock that is ahead.
type linLater struct {
	clock
	by time.Duration
}

func (c linLater) Now() instant {
	now := c.clock.Now()
	now.Wall, now.Boot = now.Wall.Add(c.by), now.Boot+c.by
	return now
}
