//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// Each case acts on a queue that holds "a", "b" and "c", enqueued in this order, and
// says what the claims that follow deliver.
func TestClaimOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		act    func(r *rig)
		claims []int
		want   []string
	}{
		{"first in, first out", func(*rig) {}, []int{1, 1, 1, 1}, []string{"a", "b", "c", ""}},
		{"two at once", func(*rig) {}, []int{2, 2}, []string{"a b", "c"}},
		{"more than there are", func(*rig) {}, []int{9, 9}, []string{"a b c", ""}},
		{"not the order of the names", func(r *rig) { r.put("0") }, []int{9}, []string{"a b c 0"}},
		{"a returned one keeps its place", func(r *rig) { r.settled(r.release(r.take("b").Receipt)) }, []int{9}, []string{"a b c"}},
		{"a returned one goes ahead of what came later", func(r *rig) {
			x := r.take("a").Receipt
			r.put("d")
			r.settled(r.release(x))
		}, []int{9}, []string{"a b c d"}},
		{"a reaped one keeps its place", func(r *rig) {
			r.take("b")
			r.reap("mail", "b")
			r.commit()
		}, []int{9}, []string{"a b c"}},
		{"a replaced payload keeps its place", func(r *rig) {
			x := r.take("b").Receipt
			r.settled(r.replacePayload(x, "2"))
			r.settled(r.release(x))
		}, []int{9}, []string{"a b c"}},
		{"a superseding one takes a new place", func(r *rig) { r.replace("a") }, []int{9}, []string{"b c a"}},
		{"a newer one waits behind a leased one", func(r *rig) {
			r.take("a")
			r.replace("a")
		}, []int{9}, []string{"b c"}},
		{"a newer one waits behind a returned one", func(r *rig) {
			x := r.take("a").Receipt
			r.replace("a")
			r.settled(r.release(x))
		}, []int{9, 9}, []string{"a b c", ""}},
		{"the older of two is delivered, the newer stays", func(r *rig) {
			x := r.take("b").Receipt
			r.replace("b")
			r.settled(r.release(x))
		}, []int{2, 9}, []string{"a b", "c"}},
		{"a newer one is free when the older is acked", func(r *rig) {
			x := r.take("a").Receipt
			r.replace("a")
			r.settled(r.ack(x))
		}, []int{9}, []string{"b c a"}},
		{"a newer one is free when the older has failed", func(r *rig) {
			x := r.take("a").Receipt
			r.replace("a")
			_, err := r.fail(x, "no", "")
			r.settled(err)
		}, []int{9}, []string{"b c a"}},
		{"settled while others wait", func(r *rig) { r.settled(r.ack(r.take("b").Receipt)) }, []int{9}, []string{"a c"}},
		{"paused", func(r *rig) {
			r.pause("mail", true)
			r.commit()
		}, []int{9}, []string{""}},
		{"resumed", func(r *rig) {
			r.pause("mail", true)
			r.put("d")
			r.pause("mail", false)
			r.commit()
		}, []int{9}, []string{"a b c d"}},
		{"cleared", func(r *rig) {
			r.clear("mail", false)
			r.put("d")
		}, []int{9}, []string{"d"}},
	} {
		for _, decoded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/decoded %v", c.name, decoded), func(t *testing.T) {
				r := newRig(t)
				r.decoded = decoded
				for _, id := range []string{"a", "b", "c"} {
					r.put(id)
				}
				c.act(r)
				for i, n := range c.claims {
					if got := r.claimIDs(n); got != c.want[i] {
						t.Errorf("claim %d of %d delivers %q, want %q", i, n, got, c.want[i])
					}
				}
			})
		}
	}
}

// Not-before belongs to the time that is due: at that very millisecond it is.
func TestClaimNotBefore(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  string
	}{
		"before":                         {-time.Millisecond, "b"},
		"at":                             {0, "a b"},
		"after":                          {time.Millisecond, "a b"},
		"the wall clock went back":       {-time.Hour, "b"},
		"the wall clock went forward":    {time.Hour, "a b"},
		"a part of a millisecond before": {-time.Nanosecond, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			due := r.now.Wall.Add(time.Minute)
			a := arrivalOf("a", queue.Refuse)
			a.notBefore = due.UnixMilli()
			_, err := r.enqueue("mail", a)
			r.settled(err)
			r.put("b")
			r.gauged(1, 1, 0, 0, 0)
			r.now.Wall = due.Add(c.after)
			if got := r.claimIDs(9); got != c.want {
				t.Errorf("delivered %q, want %q", got, c.want)
			}
		})
	}
}

// A schedule holds once: a message that comes back is due at once.
func TestClaimEndsTheSchedule(t *testing.T) {
	r := newRig(t)
	r.stand("scheduled")
	r.past(time.Hour)
	r.claimIDs(9)
	r.now.Wall = r.now.Wall.Add(-2 * time.Hour)
	if c := r.slot().claimed; c.notBefore != 0 {
		t.Errorf("not before %d", c.notBefore)
	}
}

func TestClaimNothing(t *testing.T) {
	r := newRig(t)
	r.stand("leased")
	r.take("bystander")
	for _, name := range []string{"mail", "unknown"} {
		c, err := r.claim(name, oneMinute)
		r.is(err, nil)
		if c.Deliveries != nil || c.Damaged != nil || r.d.dirty || r.st().queue("unknown") != nil {
			t.Errorf("%s: got %+v, dirty %v", name, c, r.d.dirty)
		}
	}
}

func TestClaimDelivery(t *testing.T) {
	r := newRig(t)
	a := arrival{id: "m", payload: []byte(" {\"n\": 9007199254740993}\n"), key: "chat"}
	e, err := r.enqueue("mail", a)
	r.settled(err)
	r.put("n")
	r.past(time.Second)
	before := r.counters()
	holder := namedToken("holder")
	c, err := r.claim("mail", taking{max: 2, lease: time.Minute, holder: holder, label: "worker 1"})
	r.is(err, nil)
	if len(c.Deliveries) != 2 || c.Damaged != nil {
		t.Fatalf("got %+v", c)
	}
	d := c.Deliveries[0]
	want := queue.Receipt{Store: r.base.store.String(), Queue: "mail", ID: "m", Generation: e.Generation, Attempt: 1}
	if d.Receipt != want || string(d.Payload) != string(a.payload) || d.Key != "chat" || d.Fence != 1 || d.Failures != 0 || d.Lapses != 0 || d.LastError != "" {
		t.Errorf("got %+v", d)
	}
	if !d.EnqueuedAt.Equal(rigStart.Wall) || !d.Deadline.Equal(r.now.Wall.Add(time.Minute)) {
		t.Errorf("enqueued at %s, deadline %s", d.EnqueuedAt, d.Deadline)
	}
	if f := c.Deliveries[1].Fence; f != 2 || r.st().fence != 2 {
		t.Errorf("the second fence is %d, the state's %d", f, r.st().fence)
	}
	r.counted(before, queue.Counters{Claimed: 2})
	r.gauged(0, 0, 0, 2, 0)
	l := r.slot().claimed.lease
	wantLease := lease{
		deadline: r.now.Wall.Add(time.Minute).UnixMilli(), bootID: r.now.BootID, bootEnds: (r.now.Boot + time.Minute).Milliseconds(),
		holder: holder, label: "worker 1", fence: 1,
	}
	if l != wantLease {
		t.Errorf("lease %+v, want %+v", l, wantLease)
	}
	r.commit()

	// The next claim of the same generation, from another queue's point of the fence.
	r.settled(r.release(d.Receipt))
	d, err = r.load("mail", "m", taking{max: 1, lease: queue.NoDeadline})
	r.is(err, nil)
	if want.Attempt = 2; d.Receipt != want || d.Fence != 3 || !d.Deadline.IsZero() {
		t.Errorf("got %+v", d)
	}
	if l := r.slot().claimed.lease; l != (lease{fence: 3}) {
		t.Errorf("lease %+v", l)
	}
}

// Attempts restart with each generation; the fence is the store's and does not.
func TestAttemptsAndFence(t *testing.T) {
	r := newRig(t)
	first := r.put("m")
	var fence uint64
	for attempt := uint64(1); attempt <= 3; attempt++ {
		d := r.take("m")
		fence++
		if d.Receipt.Attempt != attempt || d.Receipt.Generation != first.Generation || d.Fence != fence {
			t.Errorf("claim %d: %+v", attempt, d)
		}
		if d.Failures != 0 {
			t.Errorf("%d failures of released claims", d.Failures)
		}
		if attempt < 3 {
			r.settled(r.release(d.Receipt))
		} else {
			r.settled(r.ack(d.Receipt))
		}
	}
	r.put("m")
	_, err := r.enqueue("news", arrivalOf("m", queue.Refuse))
	r.settled(err)
	c, err := r.claim("news", oneMinute)
	r.settled(err)
	if d := c.Deliveries[0]; d.Receipt.Attempt != 1 || d.Fence != fence+1 {
		t.Errorf("got %+v", d)
	}
	if d := r.take("m"); d.Receipt.Attempt != 1 || d.Fence != fence+2 {
		t.Errorf("got %+v", d)
	}
}

// What a claim's result says of the past: a failure is an attempt that was neither
// excused nor a lapse.
func TestFailuresOfADelivery(t *testing.T) {
	for _, c := range []struct{ attempts, excused, lapses, want uint64 }{{1, 0, 0, 1}, {5, 2, 1, 2}, {5, 5, 0, 0}, {5, 0, 5, 0}} {
		r := newRig(t)
		r.stand("returned")
		d := r.open()
		q := d.queue("mail")
		s, _ := q.find("m")
		claimed := *s.claimed
		claimed.attempts, claimed.excused, claimed.lapses, claimed.returned, claimed.lastError = c.attempts, c.excused, c.lapses, retried, "smtp: 550"
		q.put("m", nil, &claimed)
		r.commit()
		if got := r.take("m"); got.Failures != c.want || got.Lapses != c.lapses || got.LastError != "smtp: 550" {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

// A damaged payload goes to failed with its evidence, in the same draft; the others
// go on, and it takes no place among the n.
func TestClaimDamaged(t *testing.T) {
	for _, c := range []struct {
		name     string
		standing string // of m, which is damaged
		taken    bool   // its failed name
		n        int
		want     string // what is delivered
		counted  queue.Counters
	}{
		{"pending", "pending", false, 1, "bystander", queue.Counters{Claimed: 1}},
		{"pending, the rest wanted", "pending", false, 9, "bystander", queue.Counters{Claimed: 1, Failed: 1, Damaged: 1}},
		{"pending, name taken", "pending", true, 9, "bystander", queue.Counters{Claimed: 1, Failed: 1, Damaged: 1}},
		{"returned", "returned", false, 9, "bystander", queue.Counters{Claimed: 1, Failed: 1, Damaged: 1}},
		{"reaped, name taken", "reaped", true, 9, "bystander", queue.Counters{Claimed: 1, Failed: 1, Damaged: 1}},
		{"returned, a newer one behind it", "returned+pending", false, 9, "bystander m", queue.Counters{Claimed: 2, Failed: 1, Damaged: 1}},
		{"leased", "leased", false, 9, "bystander", queue.Counters{Claimed: 1}},
		{"scheduled", "scheduled", false, 9, "bystander", queue.Counters{Claimed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			if c.taken {
				r.put("m")
				_, err := r.fail(r.take("m").Receipt, "an earlier one", "")
				r.settled(err)
			}
			r.stand(c.standing)
			old := r.slot()
			hurt := old.pending
			if old.claimed != nil {
				hurt = &old.claimed.ref
			}
			r.damage(hurt)
			before := r.counters()
			got, err := r.claim("mail", taking{max: c.n, lease: time.Minute})
			r.is(err, nil)
			r.counted(before, c.counted)
			var ids []string
			for _, d := range got.Deliveries {
				ids = append(ids, d.Receipt.ID)
			}
			if strings.Join(ids, " ") != c.want {
				t.Errorf("delivered %q, want %q", ids, c.want)
			}
			if uint64(len(got.Damaged)) != c.counted.Damaged {
				t.Fatalf("damaged: %v", got.Damaged)
			}
			if len(got.Damaged) == 1 {
				r.evidence(got.Damaged[0], hurt, c.taken)
				if now := r.slot(); now.claimed != nil && now.claimed.gen == hurt.gen || now.pending != nil && now.pending.gen == hurt.gen {
					t.Errorf("it is live still: %+v", now)
				}
			}
			r.commit()
		})
	}
}

func TestClaimDamagedTakesNoPlace(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"m", "a", "b"} {
		r.put(id)
	}
	r.damage(r.slot().pending)
	c, err := r.claim("mail", oneMinute)
	if r.is(err, nil); len(c.Damaged) != 1 || len(c.Deliveries) != 1 || c.Deliveries[0].Receipt.ID != "a" {
		t.Errorf("got %+v", c)
	}
}

// The bytes that were claimed before a damaged message count, its own do not.
func TestClaimBytesBesideDamage(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"a", "m", "b", "c"} {
		r.put(id)
	}
	size := r.slot().pending.size
	r.damage(r.slot().pending)
	c, err := r.claim("mail", taking{max: 9, bytes: 2*size + size/2, lease: time.Minute})
	r.is(err, nil)
	if len(c.Damaged) != 1 || len(c.Deliveries) != 2 || c.Deliveries[1].Receipt.ID != "b" {
		t.Errorf("got %+v", c)
	}
}

// evidence checks what is kept of m, whose payload was damaged.
func (r *rig) evidence(e *queue.DamagedError, hurt *ref, taken bool) {
	r.Helper()
	name := "m"
	if taken {
		name = "m~" + hurt.gen.String()
	}
	if e.Queue != "mail" || e.ID != "m" || e.FailedName != name || e.Reason != "its checksum is wrong" || !errors.Is(e, queue.ErrDamaged) {
		r.Fatalf("reported as %+v, want the failed name %q", e, name)
	}
	f := r.st().failedEntry("", name)
	if f == nil {
		r.Fatalf("no failed %q", name)
	}
	want := *hurt
	want.lastError, want.notBefore = "damaged payload: its checksum is wrong", 0
	if f.queue != "mail" || f.id != "m" || f.ref != want || f.at != r.now.Wall.UnixMilli() {
		r.Fatalf("the evidence is %+v, want %+v", *f, want)
	}
	if taken {
		if f := r.st().failedEntry("", "m"); f == nil || f.ref.lastError != "an earlier one" {
			r.Fatalf("the evidence that had the name is now %+v", f)
		}
	}
}

// Trouble that says nothing about a message moves nothing, not even the damaged ones
// that the same claim has met.
func TestClaimUnreadable(t *testing.T) {
	eio := errors.New("input/output error")
	for _, c := range []struct {
		name string
		n    int
		err  error
	}{{"not reached", 1, nil}, {"the last wanted", 2, eio}, {"among more", 9, eio}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			for _, id := range []string{"a", "m", "hurt", "b"} {
				r.put(id)
			}
			q := r.base.queue("mail")
			hurt, _ := q.find("hurt")
			r.damage(hurt.pending)
			m := r.slot().pending
			r.broken[spot{m.object, m.off}] = eio
			got, err := r.claim("mail", taking{max: c.n, lease: time.Minute}) // apply looks for a trace
			if r.is(err, c.err); err == nil {
				return
			}
			if r.d.dirty || got.Deliveries != nil || got.Damaged != nil {
				t.Errorf("dirty %v, got %+v", r.d.dirty, got)
			}
			clear(r.broken)
			got, err = r.claim("mail", taking{max: 9, lease: time.Minute})
			if r.is(err, nil); len(got.Deliveries) != 3 || len(got.Damaged) != 1 {
				t.Errorf("the next try gives %+v", got)
			}
		})
	}
}
