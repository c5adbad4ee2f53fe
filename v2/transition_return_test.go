//go:build unix

package holdfast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// How a claim comes back: retry, release and extend. Which receipts they take is in
// TestReceipts.

// goodStandings are those in which m's last receipt is good.
var goodStandings = []string{"leased", "leased for ever", "overdue", "extended", "reaped", "reaped, extended"}

// A returning is one call, and what it makes of a claim whose receipt was good.
type returning struct {
	call    string
	do      func(r *rig, x queue.Receipt) error
	after   func(c *claim, now instant)
	counted queue.Counters
	state   queue.State // then
}

var returnings = []returning{
	{
		"release", func(r *rig, x queue.Receipt) error { return r.release(x) },
		func(c *claim, _ instant) { c.returned, c.lease = released, lease{}; c.excused++ },
		queue.Counters{Released: 1}, queue.Ready,
	},
	{
		"snooze", func(r *rig, x queue.Receipt) error { return r.snooze(x, 90*time.Second) },
		func(c *claim, now instant) {
			c.returned, c.lease, c.notBefore = released, lease{}, now.Wall.Add(90*time.Second).UnixMilli()
			c.excused++
		},
		queue.Counters{Released: 1}, queue.Scheduled,
	},
	{
		"retry", func(r *rig, x queue.Receipt) error {
			got, err := r.retry(x, queue.RetryOptions{Cause: "smtp: 450"})
			return r.returned(got, err, queue.Returned{Queue: "mail", ID: "m", Attempt: 1})
		},
		func(c *claim, _ instant) { c.returned, c.lease, c.lastError = retried, lease{}, "smtp: 450" },
		queue.Counters{Retried: 1}, queue.Ready,
	},
	{
		"retry later", func(r *rig, x queue.Receipt) error {
			got, err := r.retry(x, queue.RetryOptions{Delay: 90 * time.Second})
			return r.returned(got, err, queue.Returned{Queue: "mail", ID: "m", Attempt: 1, NotBefore: r.now.Wall.Add(90 * time.Second)})
		},
		func(c *claim, now instant) {
			c.returned, c.lease, c.notBefore = retried, lease{}, now.Wall.Add(90*time.Second).UnixMilli()
		},
		queue.Counters{Retried: 1}, queue.Scheduled,
	},
	{
		"extend", func(r *rig, x queue.Receipt) error { return r.until(x, 2*time.Minute, r.now.Wall.Add(2*time.Minute)) },
		func(c *claim, now instant) {
			c.returned, c.lease.deadline = leased, now.Wall.Add(2*time.Minute).UnixMilli()
			c.lease.bootID, c.lease.bootEnds = now.BootID, (now.Boot + 2*time.Minute).Milliseconds()
		},
		queue.Counters{}, queue.Processing,
	},
	{
		"extend by the default", func(r *rig, x queue.Receipt) error { return r.until(x, 0, r.now.Wall.Add(5*time.Minute)) },
		func(c *claim, now instant) {
			c.returned, c.lease.deadline = leased, now.Wall.Add(5*time.Minute).UnixMilli()
			c.lease.bootID, c.lease.bootEnds = now.BootID, (now.Boot + 5*time.Minute).Milliseconds()
		},
		queue.Counters{}, queue.Processing,
	},
	{
		"extend for ever", func(r *rig, x queue.Receipt) error { return r.until(x, queue.NoDeadline, time.Time{}) },
		func(c *claim, _ instant) {
			c.returned, c.lease.deadline, c.lease.bootID, c.lease.bootEnds = leased, 0, "", 0
		},
		queue.Counters{}, queue.Processing,
	},
}

// returned compares what a retry or a reaping says.
func (r *rig) returned(got queue.Returned, err error, want queue.Returned) error {
	r.Helper()
	if err == nil && (!got.NotBefore.Equal(want.NotBefore) || got.NotBefore.IsZero() != want.NotBefore.IsZero()) {
		r.Fatalf("returned to be due at %s, want %s", got.NotBefore, want.NotBefore)
	}
	if got.NotBefore = want.NotBefore; err == nil && got != want {
		r.Fatalf("got %+v, want %+v", got, want)
	}
	return err
}

// until extends, and compares the deadline.
func (r *rig) until(x queue.Receipt, lease time.Duration, want time.Time) error {
	r.Helper()
	got, err := r.extend(x, lease)
	if err == nil && (!got.Equal(want) || got.IsZero() != want.IsZero()) {
		r.Fatalf("extended until %s, want %s", got, want)
	}
	return err
}

func TestTransitionReturn(t *testing.T) {
	for _, c := range returnings {
		for _, standing := range goodStandings {
			for _, behind := range []bool{false, true} {
				name := standing
				if behind {
					name += "+pending"
				}
				t.Run(c.call+"/"+name, func(t *testing.T) {
					r := newRig(t)
					x := r.stand(name)
					r.past(time.Second)
					old, before := r.slot(), r.counters()
					want := *old.claimed
					if c.after(&want, r.now); standing == "reaped" { // the receipt was good: no lapse
						want.lapses--
					}
					r.is(c.do(r, x), nil)
					r.counted(before, c.counted)
					now := r.slot()
					if *now.claimed != want || now.pending != old.pending {
						t.Errorf("got %+v,\nwant %+v; behind it %v, before %v", *now.claimed, want, now.pending, old.pending)
					}
					gauges := map[queue.State]uint64{c.state: 1}
					if behind {
						gauges[queue.Blocked]++
					}
					r.gauged(gauges[queue.Ready]+1, gauges[queue.Scheduled], gauges[queue.Blocked], gauges[queue.Processing], 0)
					if e := r.st().entries(r.st().queue("mail").at(r.now.millis()), &now, r.now)[0]; e.State != c.state || e.Returned != want.returned.String() {
						t.Errorf("shown as %+v", e)
					}
					r.commit()
					if c.state == queue.Processing {
						r.settled(r.ack(x))
						return
					}
					err := r.ack(x)
					r.lost(err, x, queue.ErrStale, 1)
					if !strings.Contains(err.Error(), want.returned.String()) {
						t.Errorf("%v; want it to say %s", err, want.returned)
					}
					r.commit()
					r.past(90 * time.Second)
					if got := r.claimIDs(9); got != "bystander m" {
						t.Errorf("claims deliver %q", got)
					}
					if c := r.slot().claimed; c.attempts != 2 || c.notBefore != 0 {
						t.Errorf("claimed again: %+v", c)
					}
				})
			}
		}
	}
}

// A delay ends at its millisecond, by the wall clock.
func TestTransitionDelay(t *testing.T) {
	for _, call := range []string{"snooze", "retry later"} {
		for name, c := range map[string]struct {
			wall time.Duration
			want string
		}{
			"before":                     {90*time.Second - time.Millisecond, ""},
			"at":                         {90 * time.Second, "m"},
			"the wall clock set back":    {-time.Hour, ""},
			"the wall clock set forward": {time.Hour, "m"},
		} {
			t.Run(call+"/"+name, func(t *testing.T) {
				r := newRig(t)
				x := r.stand("leased")
				r.take("bystander")
				i := slices.IndexFunc(returnings, func(c returning) bool { return c.call == call })
				r.settled(returnings[i].do(r, x))
				r.now.Wall = r.now.Wall.Add(c.wall)
				if got := r.claimIDs(9); got != c.want {
					t.Errorf("delivered %q, want %q", got, c.want)
				}
			})
		}
	}
	t.Run("beyond the year 9999", func(t *testing.T) {
		r := newRig(t)
		x := r.stand("leased")
		r.now.Wall = time.UnixMilli(maxMillis).AddDate(0, 0, -1)
		r.settled(r.snooze(x, queue.MaxLease))
		if at := r.slot().claimed.notBefore; at != maxMillis {
			t.Errorf("not before %d, want %d", at, int64(maxMillis))
		}
	})
}

// The last error is the last cause; without one the error before it stays.
func TestTransitionLastError(t *testing.T) {
	r := newRig(t)
	r.put("m")
	long := strings.Repeat("é", queue.MaxErrorBytes)
	for _, c := range []struct{ cause, want string }{{"", ""}, {"first", "first"}, {"", "first"}, {"\xff\x00", "\uFFFD\x00"}, {long, long[:queue.MaxErrorBytes]}, {"last", "last"}} {
		d := r.take("m")
		_, err := r.retry(d.Receipt, queue.RetryOptions{Cause: c.cause})
		r.settled(err)
		if got := r.slot().claimed.lastError; got != c.want {
			t.Errorf("after %.20q: %.20q, want %.20q", c.cause, got, c.want)
		}
	}
	d := r.take("m")
	if d.LastError != "last" || d.Failures != 6 || d.Receipt.Attempt != 7 {
		t.Errorf("delivered as %+v", d)
	}
	r.settled(r.release(d.Receipt)) // says nothing of an error
	if got := r.slot().claimed.lastError; got != "last" {
		t.Errorf("after a release: %q", got)
	}
	d = r.take("m")
	if _, err := r.retry(d.Receipt, queue.RetryOptions{MaxFailures: 7}); err != nil || r.st().failedEntry("", "m").ref.lastError != "last" {
		t.Errorf("%v, failed with %+v", err, r.st().failedEntry("", "m"))
	}
}

// Extend keeps who holds the claim, and counts from now by the clocks that can be
// read now.
func TestTransitionExtendClocks(t *testing.T) {
	holder := namedToken("holder")
	for _, c := range []struct {
		name      string
		holder    token
		bootThen  string
		bootNow   string
		lease     time.Duration
		wantBoot  string
		wantUntil bool
	}{
		{"one boot", holder, "boot 1", "boot 1", time.Minute, "boot 1", true},
		{"another boot", holder, "boot 1", "boot 2", time.Minute, "boot 2", true},
		{"no boot clock now", holder, "boot 1", "", time.Minute, "", true},
		{"no boot clock then", holder, "", "boot 1", time.Minute, "boot 1", true},
		{"for ever, with a holder", holder, "boot 1", "boot 2", queue.NoDeadline, "boot 2", false},
		{"for ever, with a holder, no boot clock now", holder, "boot 1", "", queue.NoDeadline, "", false},
		{"for ever, without a holder", token{}, "boot 1", "boot 2", queue.NoDeadline, "", false},
	} {
		for _, reap := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reaped %v", c.name, reap), func(t *testing.T) {
				r := newRig(t)
				r.stand("pending")
				r.now.BootID = c.bootThen
				d, err := r.load("mail", "m", taking{max: 1, lease: time.Second, holder: c.holder, label: "worker 1"})
				r.settled(err)
				if reap {
					r.reap("mail", "m")
					r.commit()
				}
				r.past(time.Hour)
				r.now.BootID = c.bootNow
				until, err := r.extend(d.Receipt, c.lease)
				r.is(err, nil)
				want := lease{holder: c.holder, label: "worker 1", fence: d.Fence, bootID: c.wantBoot}
				if c.wantUntil {
					want.deadline = r.now.Wall.Add(c.lease).UnixMilli()
					if c.wantBoot != "" {
						want.bootEnds = (r.now.Boot + c.lease).Milliseconds()
					}
				}
				if got := r.slot().claimed; got.lease != want || got.returned != leased || until.IsZero() == c.wantUntil {
					t.Errorf("until %s:\n got %+v\nwant %+v", until, got.lease, want)
				}
				r.commit()
			})
		}
	}
}

// A claim that was reaped by a version that kept no lease is extended all the same.
func TestTransitionExtendWithoutALease(t *testing.T) {
	for _, length := range []time.Duration{time.Minute, queue.NoDeadline} {
		r := newRig(t)
		x := r.stand("reaped")
		d := r.open()
		s, _ := d.queue("mail").find("m")
		c := *s.claimed
		c.lease = lease{}
		d.queue("mail").put("m", nil, &c)
		r.decoded = true
		r.commit()
		_, err := r.extend(x, length)
		r.settled(err)
		if c := r.slot().claimed; c.returned != leased || c.lapses != 0 || !c.lease.holder.zero() || (c.lease.deadline == 0) != (length == queue.NoDeadline) {
			t.Errorf("got %+v", *c)
		}
		r.settled(r.ack(x))
	}
}
