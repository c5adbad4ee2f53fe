//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"example.com/holdfast/queue"
)

// A cliReel plays back the statuses that looks find, and interrupts at its end.
type cliReel struct {
	store
	statuses []queue.Status
	end      error // of the last look; nil: it is interrupted
	stop     context.CancelFunc
	asked    []queue.StatusOptions
}

func (r *cliReel) Close() error { return nil }

func (r *cliReel) List(context.Context, string, queue.ListOptions) (queue.Page, error) {
	return queue.Page{Entries: []queue.Entry{{EnqueuedAt: time.Unix(100, 0)}}, Next: "more"}, nil
}

func (r *cliReel) Status(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
	r.asked = append(r.asked, o)
	if len(r.statuses) == 0 {
		if r.end == nil {
			r.stop()
			return queue.Status{}, ctx.Err()
		}
		return queue.Status{}, r.end
	}
	st := r.statuses[0]
	r.statuses = r.statuses[1:]
	return st, nil
}

func cliFrame(revision, ready, scheduled uint64) queue.Status {
	return queue.Status{Revision: revision, Settled: true, Orphans: -1, Queues: map[string]queue.QueueStatus{
		"chat": {Pending: ready + scheduled, Ready: ready, Scheduled: scheduled, Counters: queue.Counters{Enqueued: 1, Completed: 1 - ready - scheduled}},
	}}
}

// A watchRun is one run of status --watch over frames, with a clock that goes on by a second a look.
type watchRun struct {
	r         *cliReel
	code      int
	out, errs bytes.Buffer
}

func watchOver(t *testing.T, frames []queue.Status, end error, tty bool, env map[string]string, width, height int, args ...string) *watchRun {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	run := &watchRun{r: &cliReel{statuses: frames, stop: stop, end: end}}
	a := newApp(strings.NewReader(""), &run.out, &run.errs)
	a.engine = *with(run.r)
	a.tty = func(any) bool { return tty }
	a.env = func(name string) string { return env[name] }
	a.size = func(any) (int, int) { return width, height }
	clock := time.Unix(160, 0)
	a.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	a.after = func(d time.Duration) <-chan time.Time {
		if d != 300*time.Millisecond {
			t.Errorf("it looks every %v", d)
		}
		now := make(chan time.Time, 1)
		now <- time.Time{}
		return now
	}
	run.code = a.run(ctx, append([]string{"--dir", "/fake", "status", "chat", "--watch", "--interval", "300ms"}, args...))
	return run
}

var watchFrames = []queue.Status{cliFrame(7, 0, 1), cliFrame(7, 0, 1), cliFrame(7, 1, 0), cliFrame(7, 1, 0), cliFrame(8, 0, 0), cliFrame(8, 0, 0), cliFrame(8, 0, 0)}

func TestStatusWatch(t *testing.T) {
	for _, try := range []struct {
		name string
		args []string
		end  error
		exit int
		want string // revision, scheduled, ready and messages out per second
	}{
		{"text", nil, nil, exitDone, "7 1 0 - | 7 0 1 0 | 8 0 0 1.0 | 8 0 0 0 |"},
		{"json", []string{"--json"}, nil, exitDone, "7 1 0 - | 7 0 1 0 | 8 0 0 1.0 | 8 0 0 0 |"},
		{"error", []string{"--json"}, errors.New("no look"), exitIO, "7 1 0 - | 7 0 1 0 | 8 0 0 1.0 | 8 0 0 0 |"},
	} {
		t.Run(try.name, func(t *testing.T) {
			run := watchOver(t, watchFrames, try.end, false, nil, 20, 5, try.args...)
			if run.code != try.exit || (run.errs.Len() > 0) != (try.end != nil) {
				t.Errorf("exit %d, %s", run.code, run.errs.String())
			}
			if len(run.r.asked) != len(watchFrames)+1 || len(run.r.asked[0].Queues) != 1 || run.r.asked[0].Orphans {
				t.Errorf("looks: %+v", run.r.asked)
			}
			shown := ""
			for i, l := range lines(run.out.String()) {
				if try.args == nil {
					f := strings.Fields(l) // date, time, revision, queue, ready, scheduled, ...
					if i > 0 {
						shown += fmt.Sprintln(f[2], f[5], f[4], f[11], "|")
					}
					continue
				}
				line := decode[watchLine](t, l)
				q := line.Queues["chat"]
				shown += fmt.Sprintln(line.Revision, q.Scheduled, q.Ready, rateText(line.Watch["chat"].Out), "|")
				if oldest := line.Watch["chat"].Oldest; (oldest == nil) != (q.Unacked == 0) {
					t.Errorf("the oldest is of %v: %s", oldest, l)
				}
			}
			if shown = strings.Join(strings.Fields(shown), " "); shown != try.want {
				t.Errorf("shown %q, want %q:\n%s", shown, try.want, run.out.String())
			}
			if strings.Contains(run.out.String(), "\x1b") {
				t.Errorf("escape sequences in what is no terminal: %q", run.out.String())
			}
		})
	}
}

// On a terminal the table stays in one place, is as wide as it, and is cleared once.
func TestStatusWatchOnATerminal(t *testing.T) {
	run := watchOver(t, watchFrames[:2], nil, true, nil, 80, 24)
	want := "\x1b[2J\x1b[H" + when(time.Unix(161, 0)) + ", revision 7\x1b[K\n" +
		"\x1b[1mQUEUE  READY  SCHED  BLOCK  PROC  FAIL  OLDEST  IN/S  OUT/S\x1b[0m\x1b[K\n" +
		"chat       0      1      0     0     0     61s     -      -\x1b[K\n\x1b[J" +
		"\x1b[H" + when(time.Unix(162, 0)) + ", revision 7\x1b[K\n" +
		"\x1b[1mQUEUE  READY  SCHED  BLOCK  PROC  FAIL  OLDEST  IN/S  OUT/S\x1b[0m\x1b[K\n" +
		"chat       0      1      0     0     0     62s     0      0\x1b[K\n\x1b[J"
	if got := run.out.String(); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}

	long := cliFrame(9, 5, 0)
	for _, name := range []string{"a/very-long-name-of-a-queue-that-does-not-fit", "b", "c", "d", "e"} {
		q := long.Queues["chat"]
		q.Paused = true
		long.Queues[name] = q
	}
	long.Settled, long.Owner = false, &queue.Owner{Token: "x", PID: 42, Host: "phone\x1b]0;evil\a", Since: time.Unix(1, 0)}
	run = watchOver(t, []queue.Status{long}, nil, true, map[string]string{"NO_COLOR": "1"}, 40, 7)
	text := ansi.Strip(run.out.String())
	if got := lines(text); len(got) > 6 || !strings.HasPrefix(got[1], "store busy") || got[len(got)-1] != "… 4 more queues" {
		t.Errorf("in 40x7: %q", got)
	}
	for _, l := range lines(text) {
		if ansi.StringWidth(l) > 40 {
			t.Errorf("%d cells: %q", ansi.StringWidth(l), l)
		}
	}
	if out := run.out.String(); strings.Contains(out, "\x1b[31m") || strings.Contains(out, "evil\a") || !strings.Contains(out, "…") {
		t.Errorf("%q", out)
	}
}

// On a real store, between commits of others.
func TestStatusWatchSeesCommits(t *testing.T) {
	s := newStore(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	wrote := make(chan string, 10)
	a := newApp(strings.NewReader(""), cliSink(wrote), &bytes.Buffer{})
	a.env = func(string) string { return "" }
	tick := make(chan time.Time)
	a.after = func(time.Duration) <-chan time.Time { return tick }
	clock := time.Unix(0, 0)
	a.now = func() time.Time { clock = clock.Add(2 * time.Second); return clock }
	code := make(chan int)
	go func() { code <- a.run(ctx, []string{"--dir", s.dir, "status", "--watch", "--json"}) }()
	last := decode[watchLine](t, <-wrote)
	for i := range 3 {
		e := decode[enqueuedLine](t, s.must("enqueue", "chat", "1", "--json"))
		tick <- time.Time{}
		st := decode[watchLine](t, <-wrote)
		if st.Revision != e.Revision || st.Revision <= last.Revision || st.Queues["chat"].Ready != uint64(i+1) || rateText(st.Watch["chat"].In) != "0.5" {
			t.Errorf("after an enqueue at %d: %+v", e.Revision, st)
		}
		last = st
	}
	tick <- time.Time{}
	if st := decode[watchLine](t, <-wrote); rateText(st.Watch["chat"].In) != "0" {
		t.Errorf("once nothing comes any more: %+v", st)
	}
	tick <- time.Time{} // nothing new
	tick <- time.Time{}
	interrupt()
	if got := <-code; got != exitDone || len(wrote) != 0 {
		t.Errorf("exit %d, %d more written", got, len(wrote))
	}
}

// A cliSink passes on what is written to it.
type cliSink chan string

func (s cliSink) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}
