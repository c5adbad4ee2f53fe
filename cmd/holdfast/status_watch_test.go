//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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
		"chat": {Pending: ready + scheduled, Ready: ready, Scheduled: scheduled},
	}}
}

func TestStatusWatch(t *testing.T) {
	frames := []queue.Status{cliFrame(7, 0, 1), cliFrame(7, 0, 1), cliFrame(7, 1, 0), cliFrame(7, 1, 0), cliFrame(8, 0, 0)}
	for _, try := range []struct {
		name string
		args []string
		tty  bool
		end  error
		exit int
	}{
		{"text", nil, false, nil, exitDone},
		{"terminal", nil, true, nil, exitDone},
		{"json", []string{"--json"}, false, nil, exitDone},
		{"error", []string{"--json"}, false, errors.New("no look"), exitIO},
	} {
		t.Run(try.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			r := &cliReel{statuses: frames, stop: stop, end: try.end}
			var out, errs bytes.Buffer
			a := newApp(strings.NewReader(""), &out, &errs)
			a.engine = *with(r)
			a.tty = func(any) bool { return try.tty }
			a.after = func(d time.Duration) <-chan time.Time {
				if d != 300*time.Millisecond {
					t.Errorf("it looks every %v", d)
				}
				now := make(chan time.Time, 1)
				now <- time.Time{}
				return now
			}
			code := a.run(ctx, append([]string{"--dir", "/fake", "status", "chat", "--watch", "--interval", "300ms"}, try.args...))
			if code != try.exit || (errs.Len() > 0) != (try.end != nil) {
				t.Errorf("exit %d, %s", code, errs.String())
			}
			// Of six looks three found something new: by a commit, or by time alone.
			if len(r.asked) != len(frames)+1 || len(r.asked[0].Queues) != 1 || r.asked[0].Orphans {
				t.Errorf("looks: %+v", r.asked)
			}
			shown, want := "", ""
			switch try.name {
			case "json", "error":
				for _, l := range lines(out.String()) {
					q := decode[statusLine](t, l).Queues["chat"]
					shown += string(rune('0'+q.Scheduled)) + string(rune('0'+q.Ready)) + " "
				}
				want = "10 01 00 "
			default:
				for _, l := range lines(out.String()) {
					if _, revision, ok := strings.Cut(l, ", revision "); ok {
						shown += revision + " "
					}
				}
				want = "7 7 8 "
				if cleared := strings.Count(out.String(), "\x1b[H\x1b[2J"); cleared != map[bool]int{true: 3}[try.tty] {
					t.Errorf("cleared %d times", cleared)
				}
			}
			if shown != want {
				t.Errorf("shown %q, want %q:\n%s", shown, want, out.String())
			}
		})
	}
}

// On a real store, between commits of others.
func TestStatusWatchSeesCommits(t *testing.T) {
	s := newStore(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	wrote := make(chan string, 10)
	a := newApp(strings.NewReader(""), cliSink(wrote), &bytes.Buffer{})
	tick := make(chan time.Time)
	a.after = func(time.Duration) <-chan time.Time { return tick }
	code := make(chan int)
	go func() { code <- a.run(ctx, []string{"--dir", s.dir, "status", "--watch", "--json"}) }()
	last := decode[statusLine](t, <-wrote)
	for i := range 3 {
		e := decode[enqueuedLine](t, s.must("enqueue", "chat", "1", "--json"))
		tick <- time.Time{}
		st := decode[statusLine](t, <-wrote)
		if st.Revision != e.Revision || st.Revision <= last.Revision || st.Queues["chat"].Ready != uint64(i+1) {
			t.Errorf("after an enqueue at %d: %+v", e.Revision, st)
		}
		last = st
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
