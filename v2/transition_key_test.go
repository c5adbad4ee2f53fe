//go:build unix

package holdfast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// Messages with a key: in order and one at a time among those of the key.

// lanes enqueues messages named by their key and a number, as "a1 b1 -1"; those of
// "-" have none. Each is a commit of its own, so that "a1" may come again after it left.
func (r *rig) lanes(ids string) {
	r.Helper()
	for _, id := range strings.Fields(ids) {
		_, err := r.enqueue("mail", keyed(id))
		r.settled(err)
	}
}

func keyed(id string) arrival {
	return arrival{id: id, payload: fmt.Appendf(nil, "%q", id), key: strings.TrimPrefix(id[:1], "-")}
}

// receiptOf gives the receipt of the claim of id that is out or was reaped.
func (r *rig) receiptOf(id string) queue.Receipt {
	r.Helper()
	s, _ := r.st().queue("mail").find(id)
	return receiptOf(r.base.store, "mail", id, s.claimed)
}

// Each case is what happens to some messages, and what is claimed along the way.
func TestTransitionKeys(t *testing.T) {
	later := func(r *rig, id string, wait time.Duration) {
		a := keyed(id)
		a.notBefore = r.now.Wall.Add(wait).UnixMilli()
		_, err := r.enqueue("mail", a)
		r.settled(err)
	}
	retry := func(r *rig, id string, delay time.Duration) {
		_, err := r.retry(r.receiptOf(id), queue.RetryOptions{Delay: delay})
		r.settled(err)
	}
	claims := func(r *rig, want string) {
		r.Helper()
		if got := r.claimIDs(9); got != want {
			r.Fatalf("delivered %q, want %q", got, want)
		}
	}
	gauges := func(r *rig, ready, scheduled, blocked, processing uint64) {
		r.Helper()
		r.gauged(ready, scheduled, blocked, processing, 0)
	}
	for _, c := range []struct {
		name string
		do   func(r *rig)
	}{
		{"one of each key, and those without", func(r *rig) {
			r.lanes("a1 a2 b1 -1 b2 -2 a3")
			gauges(r, 4, 0, 3, 0)
			claims(r, "a1 b1 -1 -2")
			gauges(r, 0, 0, 3, 4)
			claims(r, "")
		}},
		{"in order of their enqueue", func(r *rig) {
			r.lanes("b9 a3 b1 a1")
			claims(r, "b9 a3")
		}},
		{"the next when the one before is acked", func(r *rig) {
			r.lanes("a1 a2 a3")
			claims(r, "a1")
			r.settled(r.ack(r.receiptOf("a1")))
			claims(r, "a2")
		}},
		{"the next when the one before has failed", func(r *rig) {
			r.lanes("a1 a2")
			claims(r, "a1")
			_, err := r.fail(r.receiptOf("a1"), "no", "")
			r.settled(err)
			claims(r, "a2")
		}},
		{"the next when the one before has failed by its cap", func(r *rig) {
			r.lanes("a1 a2")
			claims(r, "a1")
			_, err := r.retry(r.receiptOf("a1"), queue.RetryOptions{MaxFailures: 1})
			r.settled(err)
			claims(r, "a2")
		}},
		{"the next when the one before is cleared", func(r *rig) {
			r.lanes("a1")
			claims(r, "a1")
			r.clear("mail", true)
			r.lanes("a2")
			claims(r, "a2")
		}},
		{"the same one when it comes back", func(r *rig) {
			r.lanes("a1 a2")
			claims(r, "a1")
			r.settled(r.release(r.receiptOf("a1")))
			gauges(r, 1, 0, 1, 0)
			claims(r, "a1")
			retry(r, "a1", 0)
			claims(r, "a1")
			r.reap("mail", "a1")
			claims(r, "a1")
		}},
		{"a delay holds those behind it", func(r *rig) {
			r.lanes("a1 a2 b1 -1")
			claims(r, "a1 b1 -1")
			retry(r, "a1", time.Minute)
			r.settled(r.snooze(r.receiptOf("b1"), time.Minute))
			r.settled(r.snooze(r.receiptOf("-1"), time.Minute))
			r.lanes("b2 -2")
			gauges(r, 1, 3, 2, 0)
			claims(r, "-2")
			r.past(time.Minute - time.Millisecond)
			claims(r, "")
			r.past(time.Millisecond)
			gauges(r, 3, 0, 2, 1)
			claims(r, "a1 b1 -1")
			claims(r, "")
		}},
		{"a delay holds those behind it until it has ended", func(r *rig) {
			r.lanes("a1 a2")
			claims(r, "a1")
			retry(r, "a1", time.Minute)
			r.clear("mail", false)
			r.lanes("a3")
			claims(r, "a3")
		}},
		{"a scheduled one holds nobody", func(r *rig) {
			later(r, "a1", time.Minute)
			r.lanes("a2 a3")
			gauges(r, 1, 1, 1, 0)
			claims(r, "a2")
			gauges(r, 0, 1, 1, 1)
		}},
		{"a scheduled one takes its place when it is due", func(r *rig) {
			later(r, "a1", time.Minute)
			r.lanes("a2 a3")
			claims(r, "a2")
			r.past(time.Minute)
			gauges(r, 0, 0, 2, 1)
			claims(r, "") // a2 is out
			r.settled(r.ack(r.receiptOf("a2")))
			claims(r, "a1") // enqueued before a3
			r.settled(r.ack(r.receiptOf("a1")))
			claims(r, "a3")
		}},
		{"one that comes due goes before one that came back", func(r *rig) {
			later(r, "a1", time.Minute)
			r.lanes("a2")
			claims(r, "a2")
			retry(r, "a2", time.Hour)
			r.past(time.Minute)
			gauges(r, 1, 1, 0, 0)
			claims(r, "a1")
		}},
		{"the clock set back takes it out of its place again", func(r *rig) {
			later(r, "a1", time.Minute)
			r.lanes("a2")
			r.past(time.Minute)
			gauges(r, 1, 0, 1, 0)
			r.now.Wall = r.now.Wall.Add(-time.Minute)
			gauges(r, 1, 1, 0, 0)
			claims(r, "a2")
		}},
		{"keys of different case are two", func(r *rig) {
			r.lanes("a1 A1 a2 A2")
			claims(r, "a1 A1")
		}},
		{"one generation of an ID, whatever the keys", func(r *rig) {
			r.lanes("a1 b1")
			claims(r, "a1 b1")
			newer := keyed("a1")
			newer.key, newer.ifExists = "c", queue.Replace // waits behind the older
			_, err := r.enqueue("mail", newer)
			r.settled(err)
			r.lanes("c1 a2")
			claims(r, "c1")
			r.settled(r.ack(r.receiptOf("a1")))
			gauges(r, 1, 0, 1, 2) // a2 is free; the newer a1 is behind c1
			claims(r, "a2")
			r.settled(r.ack(r.receiptOf("c1")))
			claims(r, "a1")
		}},
		{"a superseding one goes to the end of its lane", func(r *rig) {
			r.lanes("a1 a2")
			newer := keyed("a1")
			newer.ifExists = queue.Replace
			_, err := r.enqueue("mail", newer)
			r.settled(err)
			claims(r, "a2")
			r.settled(r.ack(r.receiptOf("a2")))
			claims(r, "a1")
		}},
		{"a superseding one with another key leaves its lane", func(r *rig) {
			r.lanes("a1 a2")
			newer := keyed("a1")
			newer.key, newer.ifExists = "b", queue.Replace
			_, err := r.enqueue("mail", newer)
			r.settled(err)
			claims(r, "a2 a1")
		}},
		{"an overdue one still holds", func(r *rig) {
			r.lanes("a1 a2")
			claims(r, "a1")
			r.past(time.Hour)
			claims(r, "")
			_, err := r.reapAll(queue.ReapOptions{})
			r.settled(err)
			claims(r, "a1")
		}},
		{"a damaged one lets the next go in the same claim", func(r *rig) {
			r.lanes("a1 a2 -1")
			s, _ := r.base.queue("mail").find("a1")
			r.damage(s.pending)
			claims(r, "a2 -1")
		}},
		{"paused", func(r *rig) {
			r.lanes("a1 -1")
			r.pause("mail", true)
			claims(r, "")
			r.pause("mail", false)
			claims(r, "a1 -1")
		}},
		{"of another queue", func(r *rig) {
			r.lanes("a1 a2")
			_, err := r.enqueue("news", keyed("a1"))
			r.settled(err)
			claims(r, "a1")
			c, err := r.claim("news", oneMinute)
			if r.settled(err); len(c.Deliveries) != 1 {
				r.Fatalf("claimed %+v", c)
			}
		}},
	} {
		for _, decoded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/decoded %v", c.name, decoded), func(t *testing.T) {
				r := newRig(t)
				r.decoded = decoded
				c.do(r)
			})
		}
	}
}

// Load takes one out of the middle, but never beside another of its key.
func TestTransitionLoadAmongKeys(t *testing.T) {
	r := newRig(t)
	r.lanes("a1 a2 a3 b1")
	if d := r.take("a2"); d.Key != "a" || d.Receipt.Attempt != 1 {
		t.Errorf("loaded %+v", d)
	}
	r.gauged(1, 0, 2, 1, 0)
	for _, id := range []string{"a1", "a3"} {
		_, err := r.load("mail", id, oneMinute) // apply looks for a trace
		if r.is(err, queue.ErrLeased); !strings.Contains(err.Error(), `key "a"`) || !strings.Contains(err.Error(), "mail/"+id) {
			t.Errorf("%v", err)
		}
	}
	r.take("b1")
	if got := r.claimIDs(9); got != "" {
		t.Errorf("delivered %q", got)
	}
	r.past(time.Hour) // overdue, it still is out
	_, err := r.load("mail", "a1", oneMinute)
	r.is(err, queue.ErrLeased)
	r.commit()
	if d := r.take("a2"); d.Receipt.Attempt != 2 || d.Lapses != 1 { // its own lease does not stand in its way
		t.Errorf("taken over: %+v", d)
	}
	r.settled(r.release(r.receiptOf("a2")))
	if got := r.claimIDs(9); got != "a1" { // before a2, which was enqueued later
		t.Errorf("delivered %q", got)
	}
}

// A reaped message whose place another of its key has taken cannot be extended; it can
// be settled all the same.
func TestTransitionExtendBesideItsKey(t *testing.T) {
	for _, call := range []string{"ack", "release", "snooze", "retry", "retry at the cap", "fail", "replacePayload", "extend after that one"} {
		t.Run(call, func(t *testing.T) {
			r := newRig(t)
			r.lanes("a1 a2 b1")
			x := r.take("a1").Receipt
			r.reap("mail", "a1")
			other := r.take("a2").Receipt
			old := r.base.queue("mail")
			_, err := r.extend(x, time.Hour) // apply looks for a trace
			r.lost(err, x, queue.ErrStale, 1)
			if r.st().queue("mail") != old || !strings.Contains(err.Error(), "key") {
				t.Errorf("%v", err)
			}
			r.commit()
			if call == "extend after that one" {
				r.settled(r.ack(other))
				_, err := r.extend(x, time.Hour)
				r.settled(err)
				r.gauged(1, 0, 0, 1, 0)
				return
			}
			r.settled(settlements[call](r, x))
			r.settled(r.ack(other))
		})
	}
	t.Run("a lease that was not reaped", func(t *testing.T) {
		r := newRig(t)
		r.lanes("a1 a2")
		x := r.take("a1").Receipt
		r.past(time.Hour)
		_, err := r.extend(x, time.Hour) // it is the one that is out
		r.settled(err)
	})
}
