//go:build unix

package holdfast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// failedM brings m into failed after one failure and one lapse, and gives the receipt
// of its last attempt. Its place is behind the bystander's.
func (r *rig) failedM() queue.Receipt {
	r.Helper()
	r.stand("pending")
	_, err := r.retry(r.take("m").Receipt, queue.RetryOptions{Cause: "smtp: 450"})
	r.settled(err)
	r.take("m")
	r.past(time.Hour)
	_, err = r.reapAll(queue.ReapOptions{})
	r.settled(err)
	x := r.take("m").Receipt
	_, err = r.fail(x, "smtp: 550", "")
	r.settled(err)
	return x
}

// What stands under the ID of the evidence decides.
func TestTransitionReprocess(t *testing.T) {
	for _, c := range []struct {
		live    string // m's standing meanwhile
		err     error
		word    string // where the refusal says that the other generation is
		blocked uint64
	}{
		{"", nil, "", 0},
		{"pending", nil, "", 1},
		{"scheduled", nil, "", 1},
		{"leased", queue.ErrInFlight, "processing", 0},
		{"leased+pending", queue.ErrInFlight, "processing", 1},
		{"overdue", queue.ErrInFlight, "processing", 0},
		{"reaped", queue.ErrInFlight, "pending", 0},
		{"returned", queue.ErrInFlight, "pending", 0},
		{"snoozed", queue.ErrInFlight, "pending", 0},
		{"retried+pending", queue.ErrInFlight, "pending", 1},
		{"reprocessed", queue.ErrInFlight, "pending", 0},
	} {
		t.Run(c.live, func(t *testing.T) {
			r := newRig(t)
			x := r.failedM()
			r.settled(r.ack(r.take("bystander").Receipt))
			if c.live == "reprocessed" {
				r.put("m")
				_, err := r.fail(r.take("m").Receipt, "no", "another")
				r.settled(err)
				r.settled(r.reprocess("", "another"))
			} else if c.live != "" {
				r.stand(c.live)
				r.settled(r.ack(r.take("bystander").Receipt))
			}
			r.put("other")
			evidence, old, before := *r.st().failedEntry("", "m"), r.slot(), r.counters()
			err := r.reprocess("", "m") // apply looks for a trace
			r.is(err, c.err)
			if c.err != nil {
				if !strings.Contains(err.Error(), "mail/m is "+c.word) || r.d.dirty {
					t.Errorf("%v, dirty %v; want it to say %q", err, r.d.dirty, c.word)
				}
				if e := r.st().failedEntry("", "m"); e == nil || e.ref != evidence.ref {
					t.Errorf("the evidence is %+v", e)
				}
				return
			}
			r.counted(before, queue.Counters{Reprocessed: 1})
			want := claim{ref: evidence.ref, returned: reprocessed}
			want.excused, want.lapses = 3, 0
			if now := r.slot(); *now.claimed != want || now.pending != old.pending {
				t.Errorf("got %+v behind it %v,\nwant %+v", *now.claimed, now.pending, want)
			}
			if r.st().failedEntry("", "m") != nil || len(r.st().failed) != 0 {
				t.Errorf("left among the failed are %+v", r.st().failed)
			}
			r.gauged(2, 0, c.blocked, 0, 0)
			r.commit()
			r.lost(r.ack(x), x, queue.ErrStale, 3)
			r.is(r.reprocess("", "m"), queue.ErrNotFailed)
			r.commit()

			// It is delivered at its old place, ahead of what was enqueued since.
			d, err := r.claim("mail", taking{max: 9, lease: time.Minute})
			r.is(err, nil)
			if n := len(d.Deliveries); n != 2 || d.Deliveries[0].Receipt.ID != "m" {
				t.Fatalf("%d deliveries: %+v", n, d.Deliveries)
			}
			if d := d.Deliveries[0]; d.Receipt.Generation != x.Generation || d.Receipt.Attempt != 4 || d.Failures != 0 || d.Lapses != 0 || d.LastError != "smtp: 550" || string(d.Payload) != `{"id":"m"}` {
				t.Errorf("delivered as %+v", d)
			}
			r.commit()
			// Its caps begin anew: 19 more failures are not enough.
			got, err := r.retry(d.Deliveries[0].Receipt, queue.RetryOptions{MaxFailures: 2})
			if r.settled(err); got.FailedName != "" {
				t.Errorf("retried: %+v", got)
			}
		})
	}
}

func TestTransitionReprocessUnknown(t *testing.T) {
	r := newRig(t)
	r.failedM()
	for _, at := range [][2]string{{"", "n"}, {"", "bystander"}, {"aside", "m"}, {"", "m~" + namedToken("x").String() + ".0"}} {
		err := r.reprocess(at[0], at[1])
		if r.is(err, queue.ErrNotFailed); r.d.dirty || !strings.Contains(err.Error(), at[1]) {
			t.Errorf("%v: dirty %v, %v", at, r.d.dirty, err)
		}
	}
}

// A failed name is not the ID, and the namespace is where it failed, not where its
// queue keeps what fails now.
func TestTransitionReprocessByName(t *testing.T) {
	r := newRig(t)
	r.setNamespace("mail", "aside")
	r.stand("pending")
	_, err := r.fail(r.take("m").Receipt, "no", "x")
	r.settled(err)
	r.setNamespace("mail", "elsewhere")
	r.put("m")
	_, err = r.fail(r.take("m").Receipt, "no", "y")
	r.settled(err)
	for _, at := range [][2]string{{"", "x"}, {"elsewhere", "x"}, {"aside", "m"}} {
		r.is(r.reprocess(at[0], at[1]), queue.ErrNotFailed)
	}
	r.settled(r.reprocess("aside", "x"))
	r.is(r.reprocess("elsewhere", "y"), queue.ErrInFlight)
	if got := r.claimIDs(9); got != "bystander m" {
		t.Errorf("delivered %q", got)
	}
	r.settled(r.ack(receiptOf(r.base.store, "mail", "m", r.slot().claimed)))
	r.settled(r.reprocess("elsewhere", "y"))
	if got := r.claimIDs(9); got != "m" {
		t.Errorf("delivered %q", got)
	}
}

// A failed name is free again at once.
func TestTransitionReprocessedNameIsFree(t *testing.T) {
	for _, together := range []bool{false, true} {
		r := newRig(t)
		r.failedM()
		for i := range 3 {
			r.is(r.reprocess("", "m"), nil)
			if !together {
				r.commit()
			}
			d, err := r.load("mail", "m", oneMinute)
			r.is(err, nil)
			name, err := r.fail(d.Receipt, "again", "")
			r.is(err, nil)
			if e := r.st().failedEntry("", "m"); name != "m" || e.ref.attempts != uint64(i)+4 || e.ref.excused != uint64(i)+3 {
				t.Errorf("together %v: failed as %q: %+v", together, name, e)
			}
			if !together {
				r.commit()
			}
		}
		r.commit()
		r.delivers(map[string]string{"m": `{"id":"m"}`, "bystander": `{"id":"bystander"}`})
	}
}

// All in one commit, the payload is written once and for the place where it stands.
func TestTransitionReprocessInOneCommit(t *testing.T) {
	for _, end := range []string{"returned", "failed again", "acked", "purged"} {
		t.Run(end, func(t *testing.T) {
			r := newRig(t)
			for _, id := range []string{"before", "m", "after"} {
				_, err := r.enqueue("mail", arrivalOf(id, queue.Refuse))
				r.is(err, nil)
			}
			want := map[string]string{"before": `{"id":"before"}`, "after": `{"id":"after"}`, "m": `{"id":"m"}`}
			for range 2 {
				d, err := r.load("mail", "m", oneMinute)
				r.is(err, nil)
				_, err = r.fail(d.Receipt, "no", "x")
				r.is(err, nil)
				r.is(r.reprocess("", "x"), nil)
			}
			switch end {
			case "failed again", "purged":
				d, err := r.load("mail", "m", oneMinute)
				r.is(err, nil)
				_, err = r.fail(d.Receipt, "no", "y")
				r.is(err, nil)
				if end == "purged" {
					r.is(r.purge("", "y"), nil)
					delete(want, "m")
				}
			case "acked":
				d, err := r.load("mail", "m", oneMinute)
				r.is(err, nil)
				r.is(r.ack(d.Receipt), nil)
				delete(want, "m")
			}
			r.commit()
			r.delivers(want)
		})
	}
}

// A payload that was damaged before its first claim went to failed with no attempt; so
// it comes back.
func TestTransitionReprocessWithoutAttempt(t *testing.T) {
	for _, mended := range []bool{true, false} {
		for _, call := range []string{"claim", "load"} {
			t.Run(fmt.Sprintf("mended %v/%s", mended, call), func(t *testing.T) {
				r := newRig(t)
				r.stand("pending")
				hurt := *r.slot().pending
				r.damage(&hurt)
				if _, err := r.load("mail", "m", oneMinute); err == nil {
					t.Fatal("a damaged payload was delivered")
				}
				r.commit()
				if mended {
					r.damage(&hurt) // twice is not at all
				}
				if e := r.st().failedEntry("", "m"); e.ref.attempts != 0 {
					t.Fatalf("failed: %+v", e)
				}
				before := r.counters()
				r.is(r.reprocess("", "m"), nil)
				r.counted(before, queue.Counters{Reprocessed: 1})
				if c := r.slot().claimed; c == nil || c.attempts != 0 || c.excused != 0 || c.lapses != 0 || c.returned != reprocessed || r.slot().pending != nil {
					t.Errorf("got %+v", r.slot())
				}
				r.commit()

				// No receipt is good for it, and nothing supersedes it.
				zero := receiptOf(r.base.store, "mail", "m", r.slot().claimed)
				r.lost(r.ack(zero), zero, queue.ErrStale, 0)
				newer := r.replace("m")
				if s := r.slot(); s.claimed == nil || s.pending.gen.String() != newer.Generation || r.counters().Superseded != 0 {
					t.Errorf("replaced: %+v", s)
				}
				var c queue.Claimed
				var err error
				if call == "load" {
					var d queue.Delivery
					if d, err = r.load("mail", "m", oneMinute); err == nil {
						c.Deliveries = append(c.Deliveries, d)
					}
				} else {
					r.settled(r.ack(r.take("bystander").Receipt))
					c, err = r.claim("mail", oneMinute)
				}
				switch {
				case mended:
					if r.is(err, nil); len(c.Deliveries) != 1 || c.Deliveries[0].Receipt.Attempt != 1 || c.Deliveries[0].Receipt.Generation != hurt.gen.String() {
						t.Errorf("delivered %+v", c)
					}
				case call == "claim":
					if r.is(err, nil); len(c.Damaged) != 1 || len(c.Deliveries) != 1 || c.Deliveries[0].Receipt.Generation != newer.Generation {
						t.Errorf("delivered %+v", c)
					}
				default:
					r.is(err, queue.ErrDamaged)
				}
				r.commit()
			})
		}
	}
}

// Evidence whose place another message has, or that was never given out, cannot come
// of our own doing; it gets a fresh place, for no two may share one.
func TestTransitionReprocessPlantedPlace(t *testing.T) {
	for name, c := range map[string]struct {
		seq   func(r *rig) uint64
		fresh bool
	}{
		"its own":                    {func(*rig) uint64 { return 1 }, false},
		"of a pending message":       {func(r *rig) uint64 { s, _ := r.st().queue("mail").find("a"); return s.pending.seq }, true},
		"of a leased message":        {func(r *rig) uint64 { s, _ := r.st().queue("mail").find("b"); return s.claimed.seq }, true},
		"of its own newer sister":    {func(r *rig) uint64 { return r.slot().pending.seq }, true},
		"the next one":               {func(r *rig) uint64 { return r.st().queue("mail").next }, true},
		"far beyond":                 {func(*rig) uint64 { return maxNumber - 1 }, true},
		"free, of one that has left": {func(r *rig) uint64 { return 0 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.failedM()
			r.settled(r.ack(r.take("bystander").Receipt)) // sequence 0
			for _, id := range []string{"a", "b", "m", "c"} {
				r.put(id)
			}
			r.take("b")
			seq := c.seq(r)
			planted := *r.st().failedEntry("", "m")
			planted.ref.seq, planted.enc = seq, nil
			r.open().space("").entries[0] = &planted
			r.commit()
			next := r.st().queue("mail").next
			r.is(r.reprocess("", "m"), nil)
			wantSeq, wantNext := seq, next
			if c.fresh {
				wantSeq, wantNext = next, next+1
			}
			if s := r.slot(); s.claimed.seq != wantSeq || r.st().queue("mail").next != wantNext {
				t.Errorf("sequence %d, next %d; want %d and %d", s.claimed.seq, r.st().queue("mail").next, wantSeq, wantNext)
			}
			r.commit()
			want := "m a c"
			if c.fresh {
				want = "a c m"
			}
			if got := r.claimIDs(9); got != want {
				t.Errorf("delivered %q, want %q", got, want)
			}
		})
	}
	t.Run("of a queue that is not there", func(t *testing.T) {
		r := newRig(t)
		r.failedM()
		planted := *r.st().failedEntry("", "m")
		planted.queue, planted.enc = "gone", nil
		d := r.open()
		d.space("").entries[0] = &planted
		d.queue("mail").counters.Failed-- // so that they add up
		d.queue("mail").counters.Completed++
		d.queue("gone").counters = queue.Counters{Enqueued: 1, Failed: 1}
		r.commit()
		d = r.open()
		i, _ := d.st.queueIndex("gone")
		d.st.queues = append(d.st.queues[:i:i], d.st.queues[i+1:]...)
		r.is(d.reprocess("", "m"), nil)
		if q := d.st.queue("gone"); q == nil || q.next != 1 || len(q.slots) != 1 || q.slots[0].claimed.seq != 0 {
			t.Errorf("the queue is %+v", q)
		}
	})
}

// A full state refuses it, and keeps the room to settle what is live.
func TestTransitionReprocessFull(t *testing.T) {
	r := newRig(t)
	r.failedM()
	owes := 2 * int64(settleRoom+len("mail")) // the bystander's and its own
	for name, c := range map[string]struct {
		limit func(d *draft) int64
		full  bool
	}{
		"no room":                  {func(d *draft) int64 { return recoveryRoom + owes + d.bytes + slotBytes }, false},
		"the state itself, exact":  {func(d *draft) int64 { d.bytes = 1 << 20; return d.bytes + slotBytes }, false},
		"the state itself, short":  {func(d *draft) int64 { d.bytes = 1 << 20; return d.bytes + slotBytes - 1 }, true},
		"room to settle, exact":    {func(d *draft) int64 { return recoveryRoom + owes }, false},
		"room to settle, short":    {func(d *draft) int64 { return recoveryRoom + owes - 1 }, true},
		"no bound":                 {func(*draft) int64 { return 0 }, false},
		"a bound that was lowered": {func(*draft) int64 { return 1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := r.open()
			d.limit = c.limit(d)
			err := r.apply("reprocess", func(d *draft) error { return d.reprocess("", "m") })
			if c.full {
				if r.is(err, queue.ErrFull); r.st().failedEntry("", "m") == nil || !strings.Contains(err.Error(), `"m"`) {
					t.Errorf("%v; the evidence is %v", err, r.st().failedEntry("", "m"))
				}
			} else {
				r.is(err, nil)
			}
			r.drop()
		})
	}
}

// With a key it takes its old place in its lane.
func TestTransitionReprocessKey(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"a", "b", "c"} {
		_, err := r.enqueue("mail", arrival{id: id, payload: []byte("1"), key: "chat"})
		r.settled(err)
	}
	a := r.take("a").Receipt
	_, err := r.fail(a, "no", "")
	r.settled(err)
	b := r.take("b").Receipt
	r.settled(r.reprocess("", "a"))
	if got := r.claimIDs(9); got != "" {
		t.Errorf("beside b, delivered %q", got)
	}
	r.settled(r.release(b))
	if got := r.claimIDs(9); got != "a" {
		t.Errorf("delivered %q, want a", got)
	}
}
