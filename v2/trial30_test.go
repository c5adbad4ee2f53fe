//go:build unix

package holdfast

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// trial30Jumps are what happens to the clocks of a machine: of the wall clock, and of the
// boot clock, which only goes on.
var trial30Jumps = []struct {
	name       string
	wall, boot time.Duration
}{
	{"nothing", 0, 0},
	{"back one hour", -time.Hour, 0},
	{"forward one hour", time.Hour, 0},
	{"a suspend of 120 s", 120 * time.Second, 120 * time.Second},
	{"back one hour, and a suspend of 120 s", 120*time.Second - time.Hour, 120 * time.Second},
	{"one lease, exactly", trial30Lease, trial30Lease},
	{"one lease, but for a millisecond", trial30Lease - time.Millisecond, trial30Lease - time.Millisecond},
}

const trial30Lease = 90 * time.Second

// trial30Clock is a clock before the jump, and what makes the jump.
func trial30Clock() (*setClock, func(wall, boot time.Duration)) {
	c := &setClock{}
	wall, boot := time.UnixMilli(1_700_000_000_000), 10*time.Hour
	c.set(wall, "b", boot)
	return c, func(w, b time.Duration) { c.set(wall.Add(w), "b", boot+b) }
}

// T30, a lease: whatever the clocks do, two valid receipts never exist. The next process
// takes the message over where the boot clock has passed the deadline, the very instant
// included, and nowhere else.
func TestTrial30TwoReceiptsAreNeverGood(t *testing.T) {
	for _, j := range trial30Jumps {
		for _, how := range []string{"load", "reap and claim"} {
			t.Run(j.name+"/"+how, func(t *testing.T) {
				ctx := t.Context()
				clock, jump := trial30Clock()
				s, dir := newTestStore(t, &Options{clock: clock})
				mustEnqueue(t, s, "mail", small("a"))
				first := mustClaim(t, s, "mail", queue.ClaimOptions{Lease: trial30Lease})[0]
				var o *Options
				set := ownHolders(&o)
				o.clock = clock
				other, err := Open(ctx, dir, o)
				mustDo(t, err)
				defer set.die()
				defer other.Close()
				jump(j.wall, j.boot)
				var good []queue.Receipt
				if how == "load" {
					d, err := other.Load(ctx, "mail", "a", queue.LoadOptions{Lease: trial30Lease})
					if err == nil {
						good = append(good, d.Receipt)
					} else if !errors.Is(err, queue.ErrLeased) {
						t.Fatal(err)
					}
				} else {
					mustDo(t, second(other.Reap(ctx, queue.ReapOptions{})))
					c, err := other.Claim(ctx, "mail", queue.ClaimOptions{Lease: trial30Lease})
					mustDo(t, err)
					for _, d := range c.Deliveries {
						good = append(good, d.Receipt)
					}
				}
				over := j.boot >= trial30Lease
				if (len(good) == 1) != over {
					t.Fatalf("taken over: %v, want %v", good, over)
				}
				valid := 0
				for _, r := range append(good, first.Receipt) {
					switch _, err := s.Extend(ctx, r, trial30Lease); {
					case err == nil:
						valid++
					case !errors.Is(err, queue.ErrStale):
						t.Errorf("extend: %v", err)
					}
				}
				if valid != 1 {
					t.Errorf("%d receipts are good", valid)
				}
			})
		}
	}
}

// T30, a delay: it goes by the wall clock. While a step back hides a message, the status
// shows that it waits, and a look at it until when; at its very time it is due.
func TestTrial30DelayShowsInStatus(t *testing.T) {
	for _, j := range trial30Jumps {
		t.Run(j.name, func(t *testing.T) {
			clock, jump := trial30Clock()
			s, _ := newTestStore(t, &Options{clock: clock})
			m := small("a")
			m.NotBefore = clock.Now().Wall.Add(trial30Lease)
			mustEnqueue(t, s, "mail", m)
			jump(j.wall, j.boot)
			due := j.wall >= trial30Lease
			q := gaugesOf(t, s)
			if (q.Ready == 1) != due || (q.Scheduled == 1) == due || q.Pending != 1 {
				t.Errorf("due %v: %+v", due, q)
			}
			if shown, err := s.Show(t.Context(), "mail", "a"); err != nil || len(shown) != 1 || !shown[0].NotBefore.Equal(m.NotBefore) {
				t.Errorf("shown: %+v %v, want the time %v", shown, err, m.NotBefore)
			}
			c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{})
			if err != nil || (len(c.Deliveries) == 1) != due {
				t.Errorf("claim: %+v %v", c, err)
			}
		})
	}
}

// T30, a lock: no clock says whose it is. Who waits for it goes on waiting, and whoever died
// holding it did so, however old or young its record looks.
func TestTrial30LockIsNoMatterOfTime(t *testing.T) {
	for _, j := range trial30Jumps {
		t.Run(j.name, func(t *testing.T) {
			clock, jump := trial30Clock()
			s, dir := newTestStore(t, &Options{clock: clock})
			lock := openLock(t, dir)
			lock.lock(t)
			plantRecord(t, dir, encodeRecord(newOwner(token{9}, clock.Now())))
			answer := make(chan error, 1)
			go func() { answer <- second(s.Enqueue(t.Context(), "mail", small("a"))) }()
			until(func() bool { return (waiter{Store: s}).queued() == 1 })
			jump(j.wall, j.boot)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if err := second(s.Recover(ctx)); !errors.Is(err, context.DeadlineExceeded) || len(answer) != 0 {
				t.Errorf("while its owner lives: %v, %d answers", err, len(answer))
			}
			lock.unlock(t)
			if err := <-answer; !errors.Is(err, ErrStaleLock) {
				t.Errorf("after its owner's death: %v", err)
			}
			mustDo(t, second(s.Recover(t.Context())))
			mustEnqueue(t, s, "mail", small("a"))
		})
	}
}
