//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

func init() {
	roles["park"] = parkRole
	roles["enqueue when told"] = enqueueRole
}

// needEvents leaves the test out where events are not sure.
func needEvents(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" && runtime.GOOS != "android" {
		skip(t, "events are not sure on this system")
	}
}

// byEvent opens a store on the real filesystem that is woken by events alone.
func byEvent(t *testing.T, dir string, open func(context.Context, string, *Options) (*Store, error)) *Store {
	t.Helper()
	needEvents(t)
	o := &Options{pollOff: true}
	holders := ownHolders(&o)
	s, err := open(t.Context(), dir, o)
	mustDo(t, err)
	t.Cleanup(func() {
		s.Close()
		holders.die()
	})
	return s
}

// looked waits until s has looked n times for those who wait.
func looked(s *Store, n int64) { until(func() bool { return s.wake.looks.Load() >= n }) }

// Two handles of one process wake each other by event, one that was opened for looking
// too: no poll helps.
func TestHandlesWakeByEvent(t *testing.T) {
	for name, open := range map[string]func(context.Context, string, *Options) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
		t.Run(name, func(t *testing.T) {
			one, dir := newTestStore(t, nil)
			mustEnqueue(t, one, "busy", small("b"))
			two := byEvent(t, dir, open)
			due := wakeGo(func() error { return two.WaitDue(t.Context(), "mail") })
			idle := wakeGo(func() error {
				return second(two.Wait(t.Context(), queue.WaitOptions{Queues: []string{"busy"}}))
			})
			looked(two, 2)
			mustEnqueue(t, one, "mail", small("a"))
			mustDo(t, <-due)
			mustDo(t, one.Ack(t.Context(), mustClaim(t, one, "busy", queue.ClaimOptions{})[0].Receipt), <-idle)
		})
	}
}

// A claimer that is parked in another process gets a new message by event: it says
// that it found nothing before the message is enqueued, and nothing but the event can
// wake it.
func TestProcessesWakeByEvent(t *testing.T) {
	s, dir := newTestStore(t, nil)
	byEvent(t, dir, Open)
	p := start(t, "park", dir)
	for _, id := range []string{"a", "b", "c"} {
		if got := p.Line(t); got != "parked" {
			t.Fatalf("got %q", got)
		}
		mustEnqueue(t, s, "mail", small(id))
		if got := p.Line(t); got != "claimed "+id {
			t.Fatalf("got %q, want %s", got, id)
		}
	}
	mustDo(t, p.In.Close())
	if lines, err := p.Rest(); err != nil {
		t.Fatal(err, lines)
	}

	// And the other way round: the child enqueues when it is told.
	two := byEvent(t, dir, Open)
	p = start(t, "enqueue when told", dir)
	wait := wakeGo(func() error { return two.WaitDue(t.Context(), "mail") })
	looked(two, 1)
	mustDo(t, second(p.In.Write([]byte("d\n"))), p.In.Close(), <-wait)
	if got := mustClaim(t, two, "mail", queue.ClaimOptions{})[0].Receipt.ID; got != "d" {
		t.Errorf("claimed %s", got)
	}
	if lines, err := p.Rest(); err != nil {
		t.Fatal(err, lines)
	}
}

// parkRole waits for messages by event, claims and acks each, three of them.
func parkRole(args []string) error {
	ctx := context.Background()
	s, err := Open(ctx, args[0], &Options{pollOff: true})
	if err != nil {
		return err
	}
	for range 3 {
		before := s.wake.looks.Load()
		wait := wakeGo(func() error { return s.WaitDue(ctx, "mail") })
		looked(s, before+1)
		fmt.Println("parked")
		if err := <-wait; err != nil {
			return err
		}
		c, err := s.Claim(ctx, "mail", queue.ClaimOptions{})
		if err != nil || len(c.Deliveries) != 1 {
			return fmt.Errorf("woken, and found %d messages: %w", len(c.Deliveries), err)
		}
		if err := s.Ack(ctx, c.Deliveries[0].Receipt); err != nil {
			return err
		}
		fmt.Println("claimed", c.Deliveries[0].Receipt.ID)
	}
	return s.Close()
}

// enqueueRole enqueues the message that it is told.
func enqueueRole(args []string) error {
	var id string
	if _, err := fmt.Scanln(&id); err != nil {
		return err
	}
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	_, err = s.Enqueue(context.Background(), "mail", small(id))
	return errors.Join(err, s.Close())
}

// Looks of others, their locks and the temps of their commits that fail wake nobody: in
// the end there was one look for the one commit.
func TestNoiseDoesNotWake(t *testing.T) {
	s, dir := newTestStore(t, nil)
	two := byEvent(t, dir, Open)
	noisy, err := Open(t.Context(), dir, &Options{fs: crashtest.Wrap(fsguard.OS(), crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		return isCommitPoint(op, path)
	}, syscall.EIO, 0))})
	mustDo(t, err)
	defer noisy.Close()
	wait := wakeGo(func() error { return two.WaitDue(t.Context(), "mail") })
	looked(two, 1)
	for range 20 {
		_, err := noisy.Enqueue(t.Context(), "mail", small("a"))
		refusal(t, "a commit that fails", err, syscall.EIO, "")
		if _, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mustEnqueue(t, s, "mail", small("b"))
	mustDo(t, <-wait)
	if got := two.wake.looks.Load(); got != 2 {
		t.Errorf("%d looks, want 2", got)
	}
	if got := two.commits.Load() + noisy.commits.Load(); got != 0 {
		t.Errorf("%d commits", got)
	}
}

// Nothing is missed, however arming, looking, parking and the commits of others fall
// together: were one missed, its waiter would wait for ever.
func TestNoWakeIsMissed(t *testing.T) {
	const producers, each = 3, 40
	s, dir := newTestStore(t, nil)
	var consumers sync.WaitGroup
	var got sync.Map
	left := make(chan struct{}, producers*each)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		c := byEvent(t, dir, Open)
		consumers.Go(func() {
			for {
				err := c.WaitDue(ctx, "mail")
				if errors.Is(err, context.Canceled) {
					return
				}
				found, err2 := c.Claim(t.Context(), "mail", queue.ClaimOptions{})
				if err != nil || err2 != nil {
					t.Error(err, err2)
					return
				}
				for _, d := range found.Deliveries {
					if _, twice := got.LoadOrStore(d.Receipt.ID, true); twice {
						t.Errorf("%s came twice", d.Receipt.ID)
					}
					left <- struct{}{}
				}
			}
		})
	}
	for p := range producers {
		go func() {
			for i := range each {
				if _, err := s.Enqueue(t.Context(), "mail", small(fmt.Sprintf("%d-%d", p, i))); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for range producers * each {
		<-left
	}
	cancel()
	consumers.Wait()
}

// When nobody waits any more no descriptor and no goroutine is left of it.
func TestWaitsLeaveNothing(t *testing.T) {
	needEvents(t)
	s, dir := newTestStore(t, nil)
	before, goroutines := wakeDescriptors(t), runtime.NumGoroutine()
	for name, end := range map[string]func(s *Store, cancel func()){
		"cancelled": func(s *Store, cancel func()) {
			cancel()
			s.wake.posted.Wait()
		},
		"closed": func(s *Store, _ func()) { s.Close() },
	} {
		two := byEvent(t, dir, Open)
		ctx, cancel := context.WithCancel(t.Context())
		var waits []<-chan error
		for range 3 {
			waits = append(waits, wakeGo(func() error { return two.WaitDue(ctx) }))
		}
		looked(two, 3)
		if slices.Equal(wakeDescriptors(t), before) {
			t.Error("no descriptor while somebody waits: this test sees nothing")
		}
		end(two, func() {
			cancel()
			for _, w := range waits {
				if err := <-w; !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
		if after := wakeDescriptors(t); !slices.Equal(after, before) {
			t.Errorf("%s: open %q, before %q", name, after, before)
		}
		if name == "closed" {
			for _, w := range waits {
				refusal(t, "a wait under Close", <-w, queue.ErrClosed, "")
			}
		}
		cancel()
	}
	until(func() bool { return runtime.NumGoroutine() <= goroutines }) // those that end are counted a little longer
	mustDo(t, s.Close())
}

// wakeDescriptors lists what this process has open for watching.
func wakeDescriptors(t *testing.T) (open []string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	mustDo(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && strings.Contains(to, "inotify") {
			open = append(open, fd.Name())
		}
	}
	return open
}

// A store that is moved away under somebody who waits is answered as to every call.
func TestWaitMeetsAMovedStore(t *testing.T) {
	s, dir := newTestStore(t, nil)
	two := byEvent(t, dir, Open)
	wait := wakeGo(func() error { return two.WaitDue(t.Context(), "mail") })
	looked(two, 1)
	space := filepath.Join(dir, namespaceDir)
	mustDo(t, os.Rename(space, space+"-moved")) // the directory that is watched
	refusal(t, "a wait", <-wait, ErrReplaced, "")
	mustDo(t, os.Rename(space+"-moved", space), s.Close())
}
