//go:build unix

package holdfast

import (
	"maps"
	"slices"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// settlements are the calls that a receipt entitles to.
var settlements = map[string]func(r *rig, x queue.Receipt) error{
	"ack":            func(r *rig, x queue.Receipt) error { return r.ack(x) },
	"release":        func(r *rig, x queue.Receipt) error { return r.release(x) },
	"fail":           func(r *rig, x queue.Receipt) error { _, err := r.fail(x, "no", ""); return err },
	"fail as":        func(r *rig, x queue.Receipt) error { _, err := r.fail(x, "no", "elsewhere"); return err },
	"replacePayload": func(r *rig, x queue.Receipt) error { return r.replacePayload(x, "2") },
	"snooze":         func(r *rig, x queue.Receipt) error { return r.snooze(x, time.Minute) },
	"retry": func(r *rig, x queue.Receipt) error {
		_, err := r.retry(x, queue.RetryOptions{Cause: "smtp: 450"})
		return err
	},
	"retry later": func(r *rig, x queue.Receipt) error {
		_, err := r.retry(x, queue.RetryOptions{Delay: time.Minute})
		return err
	},
	"retry at the cap": func(r *rig, x queue.Receipt) error {
		_, err := r.retry(x, queue.RetryOptions{MaxFailures: 1})
		return err
	},
	"extend":          func(r *rig, x queue.Receipt) error { _, err := r.extend(x, time.Hour); return err },
	"extend for ever": func(r *rig, x queue.Receipt) error { _, err := r.extend(x, queue.NoDeadline); return err },
}

// Trial T04, for every settlement: which receipts are good, and what the others are
// told. apply looks for a trace of the refused ones.
func TestReceipts(t *testing.T) {
	with := func(x queue.Receipt, change func(x *queue.Receipt)) queue.Receipt {
		change(&x)
		return x
	}
	for _, c := range []struct {
		name    string
		receipt func(r *rig) queue.Receipt
		err     error
		current uint64
	}{
		{"right", func(r *rig) queue.Receipt { return r.stand("leased") }, nil, 0},
		{"right, without a deadline", func(r *rig) queue.Receipt { return r.stand("leased for ever") }, nil, 0},
		{"right, a newer generation behind", func(r *rig) queue.Receipt { return r.stand("leased+pending") }, nil, 0},
		{"right, past the deadline", func(r *rig) queue.Receipt {
			x := r.stand("leased")
			r.past(time.Hour)
			return x
		}, nil, 0},
		{"reaped", func(r *rig) queue.Receipt { return r.stand("reaped") }, nil, 0},
		{"reaped, a newer generation behind", func(r *rig) queue.Receipt { return r.stand("reaped+pending") }, nil, 0},
		{"extended", func(r *rig) queue.Receipt { return r.stand("extended") }, nil, 0},
		{"reaped and extended", func(r *rig) queue.Receipt { return r.stand("reaped, extended") }, nil, 0},
		{"reaped and extended, a newer generation behind", func(r *rig) queue.Receipt { return r.stand("reaped, extended+pending") }, nil, 0},
		{"after its payload was replaced", func(r *rig) queue.Receipt {
			x := r.stand("leased")
			r.settled(r.replacePayload(x, `"new"`))
			return x
		}, nil, 0},
		{"given in this very commit", func(r *rig) queue.Receipt {
			r.stand("pending")
			d, err := r.load("mail", "m", oneMinute)
			r.is(err, nil)
			return d.Receipt
		}, nil, 0},

		{"taken over", func(r *rig) queue.Receipt {
			x := r.stand("leased")
			r.past(time.Hour)
			r.take("m")
			return x
		}, queue.ErrStale, 2},
		{"reaped and claimed again", func(r *rig) queue.Receipt {
			x := r.stand("reaped")
			r.take("m")
			return x
		}, queue.ErrStale, 2},
		{"reaped, claimed again and reaped again", func(r *rig) queue.Receipt {
			x := r.stand("reaped")
			r.take("m")
			r.reap("mail", "m")
			r.commit()
			return x
		}, queue.ErrStale, 2},
		{"released", func(r *rig) queue.Receipt { return r.stand("returned") }, queue.ErrStale, 1},
		{"released, a newer generation behind", func(r *rig) queue.Receipt { return r.stand("returned+pending") }, queue.ErrStale, 1},
		{"snoozed", func(r *rig) queue.Receipt { return r.stand("snoozed") }, queue.ErrStale, 1},
		{"snoozed, and due again", func(r *rig) queue.Receipt {
			x := r.stand("snoozed")
			r.past(2 * time.Hour)
			return x
		}, queue.ErrStale, 1},
		{"retried", func(r *rig) queue.Receipt { return r.stand("retried") }, queue.ErrStale, 1},
		{"retried, a newer generation behind", func(r *rig) queue.Receipt { return r.stand("retried+pending") }, queue.ErrStale, 1},
		{"retried with a delay", func(r *rig) queue.Receipt { return r.stand("retried later") }, queue.ErrStale, 1},
		{"retried and claimed again", func(r *rig) queue.Receipt {
			x := r.stand("retried")
			r.take("m")
			return x
		}, queue.ErrStale, 2},
		{"reaped and then retried", func(r *rig) queue.Receipt {
			x := r.stand("reaped")
			_, err := r.retry(x, queue.RetryOptions{})
			r.settled(err)
			return x
		}, queue.ErrStale, 1},
		{"reprocessed", func(r *rig) queue.Receipt { return r.stand("reprocessed") }, queue.ErrStale, 1},
		{"reprocessed, a newer generation behind", func(r *rig) queue.Receipt { return r.stand("reprocessed+pending") }, queue.ErrStale, 1},
		{"reprocessed and claimed again", func(r *rig) queue.Receipt {
			x := r.stand("reprocessed")
			r.take("m")
			return x
		}, queue.ErrStale, 2},
		{"taken over by proof of death", func(r *rig) queue.Receipt {
			r.stand("pending")
			d, err := r.load("mail", "m", taking{max: 1, lease: time.Hour, holder: namedToken("holder")})
			r.settled(err)
			r.dead = func(token) (bool, error) { return true, nil }
			r.take("m")
			return d.Receipt
		}, queue.ErrStale, 2},
		{"reaped and then released", func(r *rig) queue.Receipt {
			x := r.stand("reaped")
			r.settled(r.release(x))
			return x
		}, queue.ErrStale, 1},
		{"released and claimed again", func(r *rig) queue.Receipt {
			x := r.stand("returned")
			r.take("m")
			return x
		}, queue.ErrStale, 2},
		{"an attempt that never was", func(r *rig) queue.Receipt {
			return with(r.stand("leased"), func(x *queue.Receipt) { x.Attempt = 7 })
		}, queue.ErrStale, 1},
		{"a generation that was never claimed", func(r *rig) queue.Receipt {
			x := r.stand("leased+pending")
			x.Generation = r.slot().pending.gen.String()
			return x
		}, queue.ErrStale, 0},

		{"acked", func(r *rig) queue.Receipt {
			x := r.stand("leased")
			r.settled(r.ack(x))
			return x
		}, queue.ErrGone, 0},
		{"acked, in this very commit", func(r *rig) queue.Receipt {
			x := r.stand("leased")
			r.is(r.ack(x), nil)
			return x
		}, queue.ErrGone, 0},
		{"acked, another generation pending", func(r *rig) queue.Receipt {
			x := r.stand("leased+pending")
			r.settled(r.ack(x))
			return x
		}, queue.ErrGone, 0},
		{"acked, another generation leased", func(r *rig) queue.Receipt {
			x := r.stand("leased+pending")
			r.settled(r.ack(x))
			r.take("m")
			return x
		}, queue.ErrGone, 0},
		{"failed", func(r *rig) queue.Receipt { return r.stand("failed") }, queue.ErrGone, 0},
		{"failed by the cap of failures", func(r *rig) queue.Receipt {
			x := r.stand("leased")
			_, err := r.retry(x, queue.RetryOptions{MaxFailures: 1})
			r.settled(err)
			return x
		}, queue.ErrGone, 0},
		{"failed by the cap of lapses", func(r *rig) queue.Receipt {
			x := r.stand("overdue")
			_, err := r.reapAll(queue.ReapOptions{MaxLapses: 1})
			r.settled(err)
			return x
		}, queue.ErrGone, 0},
		{"failed and purged", func(r *rig) queue.Receipt {
			x := r.stand("failed")
			r.settled(r.purge("", "m"))
			return x
		}, queue.ErrGone, 0},
		{"failed, another generation reprocessed", func(r *rig) queue.Receipt {
			x := r.stand("failed")
			r.put("m")
			_, err := r.fail(r.take("m").Receipt, "no", "again")
			r.settled(err)
			r.settled(r.reprocess("", "again"))
			return x
		}, queue.ErrGone, 0},
		{"reaped and cleared", func(r *rig) queue.Receipt {
			x := r.stand("reaped")
			r.clear("mail", false)
			r.commit()
			return x
		}, queue.ErrGone, 0},
		{"cleared", func(r *rig) queue.Receipt {
			x := r.stand("leased")
			r.clear("mail", true)
			r.commit()
			return x
		}, queue.ErrGone, 0},
		{"another ID's, not live", func(r *rig) queue.Receipt {
			return with(r.stand("leased"), func(x *queue.Receipt) { x.ID = "n" })
		}, queue.ErrGone, 0},
		{"another ID's, leased too", func(r *rig) queue.Receipt {
			x := r.stand("leased")
			r.take("bystander")
			x.ID = "bystander"
			return x
		}, queue.ErrGone, 0},
		{"another queue's", func(r *rig) queue.Receipt {
			return with(r.stand("leased"), func(x *queue.Receipt) { x.Queue = "news" })
		}, queue.ErrGone, 0},
		{"another generation's", func(r *rig) queue.Receipt {
			return with(r.stand("leased"), func(x *queue.Receipt) { x.Generation = generation{namedToken("other"), 0}.String() })
		}, queue.ErrGone, 0},
		{"no generation at all", func(r *rig) queue.Receipt {
			return with(r.stand("leased"), func(x *queue.Receipt) { x.Generation = "" })
		}, queue.ErrGone, 0},

		{"another store's", func(r *rig) queue.Receipt {
			return with(r.stand("leased"), func(x *queue.Receipt) { x.Store = namedToken("other").String() })
		}, queue.ErrInvalidReceipt, 0},
		{"no receipt", func(r *rig) queue.Receipt {
			r.stand("leased")
			return queue.Receipt{}
		}, queue.ErrInvalidReceipt, 0},
	} {
		for _, call := range slices.Sorted(maps.Keys(settlements)) {
			t.Run(c.name+"/"+call, func(t *testing.T) {
				r := newRig(t)
				x := c.receipt(r)
				before := r.slot()
				switch err := settlements[call](r, x); c.err {
				case nil:
					r.is(err, nil)
				case queue.ErrInvalidReceipt:
					r.is(err, c.err)
				default:
					r.lost(err, x, c.err, c.current)
				}
				if after := r.slot(); c.err != nil && (after.claimed != before.claimed || after.pending != before.pending) {
					t.Errorf("refused, and the message is %+v; before: %+v", after, before)
				}
				r.commit()
			})
		}
	}
}

// What a settlement leaves, from each standing in which its receipt is good.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		call, standing             string
		counted                    queue.Counters
		ready, blocked, processing uint64 // beside the bystander, which is ready
		failed                     uint64
		claims                     string // what is delivered then
	}{
		{"ack", "leased", queue.Counters{Completed: 1}, 0, 0, 0, 0, "bystander"},
		{"ack", "leased+pending", queue.Counters{Completed: 1}, 1, 0, 0, 0, "bystander m"},
		{"ack", "reaped", queue.Counters{Completed: 1}, 0, 0, 0, 0, "bystander"},
		{"ack", "reaped+pending", queue.Counters{Completed: 1}, 1, 0, 0, 0, "bystander m"},
		{"release", "leased", queue.Counters{Released: 1}, 1, 0, 0, 0, "bystander m"},
		{"release", "leased+pending", queue.Counters{Released: 1}, 1, 1, 0, 0, "bystander m"},
		{"release", "reaped", queue.Counters{Released: 1}, 1, 0, 0, 0, "bystander m"},
		{"release", "reaped+pending", queue.Counters{Released: 1}, 1, 1, 0, 0, "bystander m"},
		{"fail", "leased", queue.Counters{Failed: 1}, 0, 0, 0, 1, "bystander"},
		{"fail", "leased+pending", queue.Counters{Failed: 1}, 1, 0, 0, 1, "bystander m"},
		{"fail", "reaped", queue.Counters{Failed: 1}, 0, 0, 0, 1, "bystander"},
		{"fail", "reaped+pending", queue.Counters{Failed: 1}, 1, 0, 0, 1, "bystander m"},
		{"replacePayload", "leased", queue.Counters{}, 0, 0, 1, 0, "bystander"},
		{"replacePayload", "leased+pending", queue.Counters{}, 0, 1, 1, 0, "bystander"},
		{"replacePayload", "reaped", queue.Counters{}, 1, 0, 0, 0, "bystander m"},
		{"replacePayload", "reaped+pending", queue.Counters{}, 1, 1, 0, 0, "bystander m"},
	} {
		t.Run(c.call+"/"+c.standing, func(t *testing.T) {
			r := newRig(t)
			x := r.stand(c.standing)
			old, before := r.slot(), r.counters()
			r.past(time.Second)
			r.is(settlements[c.call](r, x), nil)
			r.counted(before, c.counted)
			r.gauged(1+c.ready, 0, c.blocked, c.processing, c.failed)
			now := r.slot()
			if now.pending != old.pending {
				t.Errorf("the newer generation was touched: %+v", now.pending)
			}
			want := *old.claimed
			switch c.call {
			case "ack", "fail":
				if now.claimed != nil {
					t.Errorf("it is live still: %+v", now.claimed)
				}
			case "release": // a release excuses its attempt, and a lapse was none then
				want.returned, want.lease, want.excused, want.lapses = released, lease{}, 1, 0
				if *now.claimed != want {
					t.Errorf("got %+v, want %+v", *now.claimed, want)
				}
			case "replacePayload": // everything else stays as it is
				want.object, want.off, want.size, want.sum = token{}, 0, 1, checksum([]byte("2"))
				if *now.claimed != want {
					t.Errorf("got %+v, want %+v", *now.claimed, want)
				}
			}
			r.commit()
			if got := r.claimIDs(9); got != c.claims {
				t.Errorf("claims deliver %q, want %q", got, c.claims)
			}
		})
	}
}

// However claims end, excused and lapsed ones are attempts, and no more than there
// were: the decoder refuses anything else, and commit reads every state back.
func TestExcusedAndLapsesAreAttempts(t *testing.T) {
	r := newRig(t)
	r.put("m")
	for i, how := range []string{"release", "reap", "reap and release", "take over", "release", "reap"} {
		d, err := r.load("mail", "m", oneMinute)
		r.settled(err)
		switch how {
		case "release":
			r.is(r.release(d.Receipt), nil)
		case "reap":
			r.reap("mail", "m")
		case "reap and release":
			r.reap("mail", "m")
			r.commit()
			r.is(r.release(d.Receipt), nil)
		case "take over":
			r.past(time.Hour)
			_, err := r.load("mail", "m", oneMinute)
			r.settled(err)
			r.past(time.Hour)
			continue
		}
		r.commit()
		if c := r.slot().claimed; c.failures() != 0 || c.excused+c.lapses != c.attempts {
			t.Errorf("after %d (%s): %d attempts, %d excused, %d lapses", i, how, c.attempts, c.excused, c.lapses)
		}
	}
	if c := r.slot().claimed; c.attempts != 7 || c.excused != 3 || c.lapses != 4 {
		t.Errorf("%d attempts, %d excused, %d lapses", c.attempts, c.excused, c.lapses)
	}
}

// A settlement of one message moves no other, whatever the queue.
func TestSettleTouchesNothingElse(t *testing.T) {
	for call, settle := range settlements {
		r := newRig(t)
		_, err := r.enqueue("news", arrivalOf("m", queue.Refuse))
		r.settled(err)
		_, err = r.load("news", "m", oneMinute)
		r.settled(err)
		x := r.stand("leased")
		other := r.take("bystander").Receipt
		was := r.base.queue("news")
		r.is(settle(r, x), nil)
		if r.st().queue("news") != was {
			t.Errorf("%s touched another queue", call)
		}
		r.commit()
		r.is(r.ack(other), nil)
	}
}
