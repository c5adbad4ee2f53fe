package memory

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// A parked is a call that waits in a goroutine of its own.
type parked struct {
	s    *scene
	done chan error
}

func (s *scene) park(wait func(ctx context.Context) error) parked {
	p := parked{s, make(chan error, 1)}
	go func() { p.done <- wait(bg) }()
	return p
}

// still says that the call has not returned once every goroutine is at rest.
func (p parked) still(when string) {
	p.s.t.Helper()
	synctest.Wait()
	select {
	case err := <-p.done:
		p.s.t.Fatalf("%s: it returned %v", when, err)
	default:
	}
}

// back says that the call returns without more.
func (p parked) back(when string, want error) {
	p.s.t.Helper()
	synctest.Wait()
	select {
	case err := <-p.done:
		p.s.wants(err, want)
	default:
		p.s.t.Fatalf("%s: it is still parked", when)
	}
}

// bubble runs f on a store of the bubble's own time.
func bubble(t *testing.T, f func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, Store: New(nil)}
		f(s)
		s.audit()
	})
}

func waitDue(s *scene, names ...string) parked {
	return s.park(func(ctx context.Context) error { return s.WaitDue(ctx, names...) })
}

func TestWaitDue(t *testing.T) {
	t.Run("due already", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("m")
			waitDue(s).back("any queue", nil)
			waitDue(s, "other", "mail").back("one of two", nil)
			waitDue(s, "other").still("another queue")
			s.must(s.Close())
		})
	})
	t.Run("an enqueue wakes", func(t *testing.T) {
		bubble(t, func(s *scene) {
			p, other := waitDue(s, "mail"), waitDue(s, "post")
			p.still("nothing there")
			s.puts("m")
			p.back("enqueued", nil)
			other.still("enqueued elsewhere")
			s.must(s.Close())
			other.back("closed", queue.ErrClosed)
		})
	})
	t.Run("time wakes, at that time", func(t *testing.T) {
		bubble(t, func(s *scene) {
			begin := time.Now()
			s.put(queue.Message{ID: "far", NotBefore: begin.Add(2 * time.Hour)})
			s.put(queue.Message{ID: "near", NotBefore: begin.Add(time.Hour)})
			p := waitDue(s)
			p.still("an hour early")
			s.must(<-p.done)
			if passed := time.Since(begin); passed != time.Hour {
				t.Errorf("woken after %v", passed)
			}
			s.is("claimed", s.claims(queue.ClaimOptions{Max: 9}), "near")
		})
	})
	t.Run("an earlier one moves the time", func(t *testing.T) {
		bubble(t, func(s *scene) {
			begin := time.Now()
			s.put(queue.Message{ID: "far", NotBefore: begin.Add(2 * time.Hour)})
			p := waitDue(s)
			p.still("two hours early")
			s.put(queue.Message{ID: "near", NotBefore: begin.Add(time.Hour)})
			s.must(<-p.done)
			if passed := time.Since(begin); passed != time.Hour {
				t.Errorf("woken after %v", passed)
			}
		})
	})
	t.Run("a delay wakes", func(t *testing.T) {
		bubble(t, func(s *scene) {
			begin := time.Now()
			s.puts("m")
			s.must(s.Release(bg, s.take("m").Receipt, queue.ReleaseOptions{Delay: time.Minute}))
			s.must(s.WaitDue(bg))
			if passed := time.Since(begin); passed != time.Minute {
				t.Errorf("woken after %v", passed)
			}
		})
	})
	t.Run("a pause holds, resume wakes", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.must(s.Pause(bg, "mail"))
			p := waitDue(s)
			s.puts("m")
			p.still("paused")
			s.must(s.Resume(bg, "mail"))
			p.back("resumed", nil)
		})
	})
	t.Run("a key holds, its settlement wakes", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("a/k", "b/k")
			r := s.take("a").Receipt
			p := waitDue(s)
			p.still("its key is leased")
			s.must(s.Ack(bg, r))
			p.back("acked", nil)
		})
	})
	t.Run("a key still in the way at its time", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("a/k")
			s.put(queue.Message{ID: "b", Key: "k", NotBefore: time.Now().Add(time.Hour)})
			r := s.take("a").Receipt
			p := waitDue(s)
			time.Sleep(2 * time.Hour) // of the bubble's time: the timer has fired
			p.still("due, but behind its key")
			s.must(s.Ack(bg, r))
			p.back("acked", nil)
		})
	})
	t.Run("an overdue lease is not due, reap makes it so", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("m")
			s.take("m")
			p := waitDue(s)
			time.Sleep(time.Hour)
			p.still("overdue")
			s.reaps(queue.ReapOptions{}, 1)
			p.back("reaped", nil)
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		bubble(t, func(s *scene) {
			ctx, cancel := context.WithCancel(bg)
			p := s.park(func(context.Context) error { return s.WaitDue(ctx) })
			p.still("nothing there")
			cancel()
			p.back("cancelled", context.Canceled)
		})
	})
}

// A parked caller of an idle store is not run: with nothing scheduled there is no
// timer, and with one scheduled there is one.
func TestParkedRunsOnlyWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		s := &scene{t: t, Store: New(&Options{Now: func() time.Time { looks.Add(1); return time.Now() }})}
		p := waitDue(s)
		p.still("nothing there")
		time.Sleep(24 * time.Hour)
		p.still("a day later")
		if looks.Load() != 1 {
			t.Errorf("looked %d times in an idle day, want once", looks.Load())
		}
		s.put(queue.Message{ID: "m", NotBefore: time.Now().Add(24 * time.Hour)})
		p.still("a day early")
		looks.Store(0)
		s.must(<-p.done)
		if looks.Load() != 1 {
			t.Errorf("looked %d times until it was due, want once", looks.Load())
		}
	})
}

// Whoever moves the store's clock rechecks.
func TestRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &memClock{now: noon}
		s := &scene{t: t, Store: New(&Options{Now: c.Now}), clock: c}
		s.put(queue.Message{ID: "m", NotBefore: noon.Add(time.Hour)})
		p := waitDue(s)
		s.pass(time.Hour - 1)
		p.still("a nanosecond early")
		s.pass(1)
		p.back("at its time", nil)
	})
}

func TestWait(t *testing.T) {
	wait := func(s *scene, o queue.WaitOptions) parked {
		return s.park(func(ctx context.Context) error {
			st, err := s.Wait(ctx, o)
			if err == nil && !st.Settled {
				return errors.New("an unsettled status")
			}
			return err
		})
	}
	t.Run("nothing there", func(t *testing.T) {
		bubble(t, func(s *scene) {
			wait(s, queue.WaitOptions{}).back("all queues", nil)
			wait(s, queue.WaitOptions{Queues: []string{"unknown"}}).back("an unknown queue", nil)
			wait(s, queue.WaitOptions{Queues: []string{"unknown"}, Message: "m"}).back("an unknown message", nil)
		})
	})
	t.Run("until the last settlement", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("a", "b")
			all, other := wait(s, queue.WaitOptions{}), wait(s, queue.WaitOptions{Queues: []string{"post"}})
			other.back("another queue", nil)
			a, b := s.take("a").Receipt, s.take("b").Receipt
			s.must(s.Ack(bg, a))
			all.still("one is left")
			_, err := s.Retry(bg, b, queue.RetryOptions{Delay: time.Hour})
			s.must(err)
			all.still("one is scheduled")
			_, err = s.Store.Fail(bg, s.take("b").Receipt, queue.FailOptions{})
			s.must(err)
			all.back("acked and failed", nil)
		})
	})
	t.Run("the status is the final one", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("a")
			s.must(s.Ack(bg, s.take("a").Receipt))
			st, err := s.Wait(bg, queue.WaitOptions{Queues: []string{"mail", "unknown"}})
			s.must(err)
			if !st.Complete() || st.Revision != 3 || len(st.Queues) != 2 || st.Queues["mail"].Counters.Completed != 1 {
				t.Errorf("got %+v", st)
			}
		})
	})
	t.Run("scheduled ones aside", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.put(queue.Message{ID: "later", NotBefore: time.Now().Add(time.Hour)})
			s.puts("m")
			p := wait(s, queue.WaitOptions{IgnoreScheduled: true})
			p.still("one is due")
			r := s.take("m").Receipt
			p.still("one is processing")
			one := wait(s, queue.WaitOptions{Queues: []string{"mail"}, Message: "later"})
			one.still("scheduled ones are waited for")
			s.must(s.Ack(bg, r))
			p.back("only scheduled ones are left", nil)
			wait(s, queue.WaitOptions{Queues: []string{"mail"}, Message: "later", IgnoreScheduled: true}).back("the scheduled one itself", nil)
			time.Sleep(time.Hour)
			p = wait(s, queue.WaitOptions{IgnoreScheduled: true})
			p.still("it is due now")
			_, err := s.Clear(bg, "mail", queue.ClearOptions{})
			s.must(err)
			p.back("cleared", nil)
			one.back("cleared", nil)
		})
	})
	t.Run("what waits behind scheduled ones aside", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("a/k", "b/k", "c")
			for _, id := range []string{"a", "c"} {
				s.must(s.Release(bg, s.take(id).Receipt, queue.ReleaseOptions{Delay: time.Hour}))
			}
			s.put(queue.Message{ID: "c", IfExists: queue.Replace})
			s.is("live", s.places(), "a scheduled, b blocked, c scheduled, c blocked")
			wait(s, queue.WaitOptions{IgnoreScheduled: true}).back("nothing can be delivered", nil)
			one := queue.WaitOptions{Queues: []string{"mail"}, Message: "c", IgnoreScheduled: true}
			wait(s, one).back("the older generation is not due", nil)
			s.take("c")
			p := wait(s, one)
			p.still("the older generation is processing")
			s.must(s.Ack(bg, mustShow(s, "c").Receipt))
			p.still("the newer one is due")
			s.must(s.Ack(bg, s.take("c").Receipt))
			p.back("both are acked", nil)
		})
	})
	t.Run("one message, every generation of it", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("m", "n")
			r := s.take("m").Receipt
			s.put(queue.Message{ID: "m", IfExists: queue.Replace})
			p := wait(s, queue.WaitOptions{Queues: []string{"mail"}, Message: "m"})
			s.must(s.Ack(bg, r))
			p.still("the newer generation is there")
			s.must(s.Ack(bg, s.take("m").Receipt))
			p.back("both are acked", nil)
		})
	})
	t.Run("closed and cancelled", func(t *testing.T) {
		bubble(t, func(s *scene) {
			s.puts("m")
			ctx, cancel := context.WithCancel(bg)
			p := s.park(func(context.Context) error { _, err := s.Wait(ctx, queue.WaitOptions{}); return err })
			q := wait(s, queue.WaitOptions{})
			cancel()
			p.back("cancelled", context.Canceled)
			q.still("of another context")
			s.must(s.Close())
			q.back("closed", queue.ErrClosed)
		})
	})
}
