package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
)

// A scene is a worker on a store in memory, inside a bubble of its own time. Nothing
// is drawn: every delay is the longest that it may be, every interval the middle one.
type scene struct {
	t     *testing.T
	store *memory.Store
	tap   *tap
	skew  atomic.Int64 // of the wall clock, which the store has too
	turns atomic.Int64 // of the worker's loop

	mu     sync.Mutex
	events []Event
	notes  []string
	began  time.Time
}

// inScene runs a test in a scene. All its goroutines must end with it.
func inScene(t *testing.T, f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, began: time.Now()}
		s.store = memory.New(&memory.Options{Now: s.wall})
		s.tap = &tap{Store: s.store}
		f(s)
	})
}

// options fills the seams in.
func (s *scene) options(o Options) Options {
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Observe == nil {
		o.Observe = s.observe
	}
	o.seams = seams{
		wall: func(now time.Time) time.Time { s.turns.Add(1); return now.Add(time.Duration(s.skew.Load())) },
		draw: func(most time.Duration) time.Duration {
			if most == o.ReapEvery/5 || most == DefaultReapEvery/5 {
				return most / 2
			}
			return most
		},
	}
	return o
}

func (s *scene) observe(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// A worked is a worker that a scene started.
type worked struct {
	s      *scene
	cancel context.CancelFunc
	done   chan error
}

// start runs a worker on the queue "mail", of strings.
func (s *scene) start(o Options, h Handler[string]) *worked {
	return s.run(func(ctx context.Context) error {
		return Run(ctx, queue.New[string](s.tap, "mail"), h, s.options(o))
	})
}

func (s *scene) run(f func(context.Context) error) *worked {
	ctx, cancel := context.WithCancel(context.Background())
	w := &worked{s, cancel, make(chan error, 1)}
	go func() { w.done <- f(ctx) }()
	return w
}

// stop cancels the worker and gives what Run returned.
func (w *worked) stop() error {
	w.cancel()
	return <-w.done
}

// wantStop stops the worker, which must end without an error.
func (w *worked) wantStop() {
	w.s.t.Helper()
	if err := w.stop(); err != nil {
		w.s.t.Errorf("Run: %v", err)
	}
}

// enqueue puts messages into "mail" whose values are their IDs.
func (s *scene) enqueue(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.put("mail", id, "")
	}
}

func (s *scene) put(name, id, key string) {
	s.t.Helper()
	q := queue.New[string](s.store, name)
	if _, err := q.Enqueue(context.Background(), id, queue.EnqueueOptions{ID: id, Key: key}); err != nil {
		s.t.Fatal(err)
	}
}

// note adds to what handlers note; noted gives it.
func (s *scene) note(text string) { s.locked(func() { s.notes = append(s.notes, text) }) }

func (s *scene) noted() (notes []string) {
	s.locked(func() { notes = slices.Clone(s.notes) })
	return notes
}

// locked lets handlers that run at once share a variable of the test.
func (s *scene) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// status gives the gauges of a queue.
func (s *scene) status(name string) queue.QueueStatus {
	s.t.Helper()
	st, err := s.store.Status(context.Background(), queue.StatusOptions{Queues: []string{name}})
	if err != nil {
		s.t.Fatal(err)
	}
	return st.Queues[name]
}

// wantCounters compares the counters of "mail" that are not zero, but for enqueued.
func (s *scene) wantCounters(want string) {
	s.t.Helper()
	c := s.status("mail").Counters
	var got []string
	for _, f := range []struct {
		name string
		n    uint64
	}{{"claimed", c.Claimed}, {"completed", c.Completed}, {"retried", c.Retried}, {"released", c.Released}, {"reaped", c.Reaped}, {"failed", c.Failed}} {
		if f.n > 0 {
			got = append(got, fmt.Sprintf("%s %d", f.name, f.n))
		}
	}
	if got := strings.Join(got, ", "); got != want {
		s.t.Errorf("counters: got %s, want %s", got, want)
	}
}

// failed gives the failed message of that name.
func (s *scene) failed(name string) queue.Entry {
	s.t.Helper()
	e, err := s.store.ShowFailed(context.Background(), name, queue.FailedOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// seen gives the events of these kinds, or all but claimed and renewed, as "kind id",
// in order.
func (s *scene) seen(kinds ...EventKind) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var seen []string
	for _, e := range s.events {
		if len(kinds) == 0 && e.Kind != EventClaimed && e.Kind != EventRenewed || slices.Contains(kinds, e.Kind) {
			seen = append(seen, strings.TrimSpace(string(e.Kind)+" "+e.ID))
		}
	}
	return seen
}

// event gives the one event of that kind.
func (s *scene) event(kind EventKind) Event {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Event
	for _, e := range s.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("%d events %q, want one", len(found), kind)
	}
	return found[0]
}

// pass lets time pass, and what happens at its end happen.
func (s *scene) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// at gives the time since the scene began.
func (s *scene) at() time.Duration { return time.Since(s.began) }

// wall tells the time of the wall clock.
func (s *scene) wall() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) }

// jump moves the wall clock, for the store and the worker.
func (s *scene) jump(by time.Duration) {
	s.skew.Add(int64(by))
	s.store.Recheck()
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

var errDisk = errors.New("input/output error")

// sleep lets time pass for the handler, or less when its context is cancelled.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
