//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// waitKeyed gives a message with a key.
func waitKeyed(id, key string) queue.Message {
	m := small(id)
	m.Key = key
	return m
}

// waitStates puts a queue of its own into each state that a Wait may meet. The message
// that is waited for is m.
var waitStates = []struct {
	name string
	make func(t *testing.T, sc *wakeScene, q string)

	queue, queueAside     bool // the queue is complete; with IgnoreScheduled
	message, messageAside bool // m is gone; with IgnoreScheduled
}{
	{"unknown", func(*testing.T, *wakeScene, string) {}, true, true, true, true},
	{"emptied", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
		mustDo(t, sc.Ack(t.Context(), mustClaim(t, sc.Store, q, queue.ClaimOptions{})[0].Receipt))
	}, true, true, true, true},
	{"failed", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
		mustDo(t, second(sc.Fail(t.Context(), mustClaim(t, sc.Store, q, queue.ClaimOptions{})[0].Receipt, queue.FailOptions{As: q})))
	}, true, true, true, true},
	{"ready", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
	}, false, false, false, false},
	{"paused", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
		mustDo(t, sc.Pause(t.Context(), q))
	}, false, false, false, false},
	{"another one ready", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("n"))
	}, false, false, true, true},
	{"leased", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
		mustClaim(t, sc.Store, q, queue.ClaimOptions{})
	}, false, false, false, false},
	{"returned", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
		mustDo(t, sc.Release(t.Context(), mustClaim(t, sc.Store, q, queue.ClaimOptions{})[0].Receipt, queue.ReleaseOptions{}))
	}, false, false, false, false},
	{"scheduled", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, wakeLater(sc, "m", time.Hour))
	}, false, true, false, true},
	{"scheduled beside another one leased", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("n"), wakeLater(sc, "m", time.Hour))
		mustClaim(t, sc.Store, q, queue.ClaimOptions{})
	}, false, false, false, true},
	{"snoozed", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
		mustDo(t, sc.Release(t.Context(), mustClaim(t, sc.Store, q, queue.ClaimOptions{})[0].Receipt, queue.ReleaseOptions{Delay: time.Hour}))
	}, false, true, false, true},
	{"snoozed, a newer one behind it", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
		r := mustClaim(t, sc.Store, q, queue.ClaimOptions{})[0].Receipt
		m := small("m")
		m.IfExists = queue.Replace
		mustEnqueue(t, sc.Store, q, m)
		mustDo(t, sc.Release(t.Context(), r, queue.ReleaseOptions{Delay: time.Hour}))
	}, false, true, false, true},
	{"leased, a newer one scheduled behind it", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, small("m"))
		mustClaim(t, sc.Store, q, queue.ClaimOptions{})
		m := wakeLater(sc, "m", time.Hour)
		m.IfExists = queue.Replace
		mustEnqueue(t, sc.Store, q, m)
	}, false, false, false, false},
	{"an import open", func(t *testing.T, sc *wakeScene, q string) {
		mustImport(t, sc.Store, q, namedToken("import"))
	}, false, false, false, false},
	{"blocked behind its key", func(t *testing.T, sc *wakeScene, q string) {
		mustEnqueue(t, sc.Store, q, waitKeyed("n", "k"), waitKeyed("m", "k"))
		mustClaim(t, sc.Store, q, queue.ClaimOptions{})
	}, false, false, false, false},
}

// Wait returns at once when its one snapshot shows complete what was asked for, and
// parks when it does not: for the queue, for the message, and leaving aside what is
// scheduled.
func TestWaitDecides(t *testing.T) {
	for _, c := range waitStates {
		for _, o := range []struct {
			queue.WaitOptions
			want bool
		}{
			{queue.WaitOptions{}, c.queue},
			{queue.WaitOptions{IgnoreScheduled: true}, c.queueAside},
			{queue.WaitOptions{Message: "m"}, c.message},
			{queue.WaitOptions{Message: "m", IgnoreScheduled: true}, c.messageAside},
		} {
			t.Run(fmt.Sprintf("%s/%s,%v", c.name, o.Message, o.IgnoreScheduled), func(t *testing.T) {
				bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
					c.make(t, sc, "mail")
					mustEnqueue(t, sc.Store, "other", small("m")) // is no matter
					o.Queues = []string{"mail"}
					ctx, cancel := context.WithCancel(t.Context())
					wait := wakeGo(func() error { return second(sc.Wait(ctx, o.WaitOptions)) })
					if o.want {
						sc.over(t, wait)
					} else {
						sc.parked(t, wait)
					}
					sc.counted(t, "looks", &sc.wake.looks, 1)
					cancel()
					if !o.want {
						if err := <-wait; !errors.Is(err, context.Canceled) {
							t.Errorf("wait: %v", err)
						}
					}
				})
			})
		}
	}
}

// Several queues, and all, are complete only together, and the status that Wait
// returns is the one that says so.
func TestWaitGivesTheFinalStatus(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		mustEnqueue(t, sc.Store, "a", small("1"))
		mustEnqueue(t, sc.Store, "b", small("2"))
		mustEnqueue(t, sc.Store, "c", small("3"))
		statuses := make([]queue.Status, 3)
		var waits []<-chan error
		for i, names := range [][]string{{"a", "missing"}, {"a", "b"}, nil} {
			waits = append(waits, wakeGo(func() (err error) {
				statuses[i], err = sc.Wait(t.Context(), queue.WaitOptions{Queues: names})
				return err
			}))
		}
		sc.parked(t, waits...)
		for i, name := range []string{"a", "b", "c"} {
			r := mustClaim(t, sc.Store, name, queue.ClaimOptions{})[0].Receipt
			sc.parked(t, waits[i:]...)
			mustDo(t, sc.Ack(t.Context(), r))
			sc.over(t, waits[i])
			now, err := sc.Status(t.Context(), queue.StatusOptions{})
			mustDo(t, err)
			st := statuses[i]
			if !st.Complete() || !st.Settled || st.Owner != nil || st.Revision != now.Revision || st.Orphans != -1 || st.Queues[name].Counters.Completed != 1 {
				t.Errorf("wait %d: %+v", i, st)
			}
		}
		for i, want := range []int{2, 2, 3} {
			if got := len(statuses[i].Queues); got != want {
				t.Errorf("wait %d: %d queues, want %d", i, got, want)
			}
		}
	})
}

// What cannot be waited for is refused before anything is done for it.
func TestWaitRefusals(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for _, c := range []struct {
			name string
			ctx  context.Context
			o    queue.WaitOptions
			want error
		}{
			{"a bad queue", t.Context(), queue.WaitOptions{Queues: []string{"mail", "a/ack"}}, queue.ErrInvalid},
			{"a message in no queue", t.Context(), queue.WaitOptions{Message: "m"}, queue.ErrInvalid},
			{"a message in two queues", t.Context(), queue.WaitOptions{Message: "m", Queues: []string{"a", "b"}}, queue.ErrInvalid},
			{"a bad ID", t.Context(), queue.WaitOptions{Message: "..", Queues: []string{"a"}}, queue.ErrInvalid},
			{"a context that is over", over, queue.WaitOptions{}, context.Canceled},
		} {
			st, err := sc.Wait(c.ctx, c.o)
			refusal(t, c.name, err, c.want, "")
			if st.Queues != nil {
				t.Errorf("%s: %+v", c.name, st)
			}
		}
		refusal(t, "due in a bad queue", sc.WaitDue(t.Context(), "mail", ".."), queue.ErrInvalid, "")
		refusal(t, "due, with a context that is over", sc.WaitDue(over), context.Canceled, "")
		mustDo(t, sc.Close())
		refusal(t, "a closed store", second(sc.Wait(t.Context(), queue.WaitOptions{})), queue.ErrClosed, "")
		if _, n := sc.fs.last(); n != 0 {
			t.Errorf("%d watches", n)
		}
	})
}

// Under a dead owner's record both waits stop, naming the owner; with the consent given
// beforehand they recover by themselves, except on a handle that was opened for
// looking.
func TestWaitOnAnUnsettledStore(t *testing.T) {
	for _, on := range []OnDeadOwner{Stop, AutoRecover} {
		for _, readOnly := range []bool{false, true} {
			for _, parkedBefore := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, read only %v, parked %v", on, readOnly, parkedBefore), func(t *testing.T) {
					bubble(t, Options{OnDeadOwner: on}, func(t *testing.T, sc *wakeScene) {
						mustEnqueue(t, sc.Store, "busy", small("a"))
						if readOnly {
							o := sc.opts
							mustDo(t, sc.Close())
							var err error
							sc.Store, err = OpenReadOnly(t.Context(), simDir, &o)
							mustDo(t, err)
						}
						waits := func() []<-chan error {
							return []<-chan error{sc.due(t.Context(), "mail"), wakeGo(func() error {
								return second(sc.Wait(t.Context(), queue.WaitOptions{Queues: []string{"busy"}}))
							})}
						}
						var wait []<-chan error
						if parkedBefore {
							wait = waits()
							sc.parked(t, wait...)
						}
						dead := newOwner(namedToken("dead"), sc.clock.Now())
						sc.disk.WriteRaw(inSim(lockFile), encodeRecord(dead))
						if parkedBefore {
							sc.wake.all()
						} else {
							wait = waits()
						}
						if on == AutoRecover && !readOnly {
							sc.parked(t, wait...)
							st, err := sc.Status(t.Context(), queue.StatusOptions{})
							if err != nil || !st.Settled {
								t.Errorf("status: %+v, %v", st, err)
							}
							mustEnqueue(t, sc.Store, "mail", small("b"))
							sc.over(t, wait[0])
							mustDo(t, sc.Ack(t.Context(), mustClaim(t, sc.Store, "busy", queue.ClaimOptions{})[0].Receipt))
							sc.over(t, wait[1])
							return
						}
						for i, c := range wait {
							err := <-c
							var stale *StaleLockError
							if !errors.As(err, &stale) || !errors.Is(err, ErrStaleLock) || stale.Owner.Token != dead.Token {
								t.Errorf("wait %d: %v", i, err)
							}
						}
					})
				})
			}
		}
	}
}

// A wait never decides on a look without the lock: with LookAfter it waits for a writer
// all the same, and a handle that was opened for looking changes nothing.
func TestWaitForLookingOnly(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		mustEnqueue(t, sc.Store, "busy", small("a"))
		r := mustClaim(t, sc.Store, "busy", queue.ClaimOptions{})[0].Receipt
		writer := sc.other(t)
		ops := crashtest.Wrap(sc.disk.Process(), crashtest.Plan{})
		look, err := OpenReadOnly(t.Context(), simDir, &Options{fs: ops, clock: sc.clock, LookAfter: time.Millisecond})
		mustDo(t, err)
		defer look.Close()
		ops.Arm(crashtest.Plan{})
		held, err := acquire(writer.pins, fsguard.Exclusive)
		mustDo(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		empty := wakeGo(func() error { return second(look.Wait(ctx, queue.WaitOptions{Queues: []string{"mail"}})) })
		sc.pass(t, time.Minute, empty)
		cancel()
		if err := <-empty; !errors.Is(err, context.Canceled) {
			t.Errorf("wait: %v", err)
		}
		busy := wakeGo(func() error {
			return second(look.Wait(t.Context(), queue.WaitOptions{Queues: []string{"busy"}, Message: "a"}))
		})
		synctest.Wait()
		held.release()
		sc.parked(t, busy)
		mustDo(t, sc.Ack(t.Context(), r))
		sc.pass(t, pollWithoutEvents)
		sc.over(t, busy)
		if n := ops.Count(append(changing, fsguard.OpSync, fsguard.OpSyncDir)...); n != 0 {
			t.Errorf("%d operations that change something:\n%s", n, ops.Trace())
		}
	})
}
