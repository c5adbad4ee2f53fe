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

// holding leases one message for a holder, or for none, and commits.
func (r *rig) holding(name, id, holder string, lease time.Duration) queue.Receipt {
	r.Helper()
	t := taking{max: 1, lease: lease, label: "worker " + holder}
	if holder != "" {
		t.holder = namedToken(holder)
	}
	if _, err := r.enqueue(name, arrivalOf(id, queue.Keep)); err != nil {
		r.Fatal(err)
	}
	d, err := r.load(name, id, t)
	r.settled(err)
	return d.Receipt
}

var errUnasked = errors.New("too many open files")

// proven makes the rig's answer to whether holders are dead, and counts who was asked.
func (r *rig) proven(answers map[string]error) (asked map[token]int) {
	asked = map[token]int{}
	r.dead = func(holder token) (bool, error) {
		asked[holder]++
		for name, err := range answers {
			if namedToken(name) == holder {
				return err == nil, err
			}
		}
		return false, nil
	}
	return asked
}

// reaped gives what a reaping ended, as "mail/m by proof (lapse 1)".
func reapedText(all []queue.Returned) string {
	var texts []string
	for _, x := range all {
		text := fmt.Sprintf("%s/%s by %s (lapse %d)", x.Queue, x.ID, x.Cause, x.Lapses)
		if x.FailedName != "" {
			text += " failed as " + x.FailedName
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// Which leases a reaping ends, and why.
func TestTransitionReapWhich(t *testing.T) {
	const minute, boot, other = time.Minute, "boot 1", "boot 2"
	for _, c := range []struct {
		name     string
		holder   string
		lease    time.Duration
		bootThen string
		wall     time.Duration // how far the wall clock goes on
		boot     time.Duration
		bootNow  string
		dead     map[string]error
		want     queue.ReapCause // empty: it is not ended
		err      error
		asks     bool
	}{
		{name: "live", holder: "h", lease: minute, bootThen: boot, wall: minute / 2, boot: minute / 2, bootNow: boot, asks: true},
		{name: "live, no holder", lease: minute, bootThen: boot, wall: minute / 2, boot: minute / 2, bootNow: boot},
		{name: "a millisecond before the deadline", lease: minute, bootThen: boot, wall: minute - time.Millisecond, boot: minute - time.Millisecond, bootNow: boot},
		{name: "at the deadline", lease: minute, bootThen: boot, wall: minute, boot: minute, bootNow: boot, want: queue.ByDeadline},
		{name: "past the deadline, the holder alive", holder: "h", lease: minute, bootThen: boot, wall: minute, boot: minute, bootNow: boot, want: queue.ByDeadline},
		{name: "past the deadline, the holder dead", holder: "h", lease: minute, bootThen: boot, wall: minute, boot: minute, bootNow: boot, dead: map[string]error{"h": nil}, want: queue.ByDeadline},
		{name: "past the deadline, the holder cannot be asked", holder: "h", lease: minute, bootThen: boot, wall: minute, boot: minute, bootNow: boot, dead: map[string]error{"h": errUnasked}, want: queue.ByDeadline},
		{name: "the wall clock an hour forward", lease: minute, bootThen: boot, wall: time.Hour, boot: time.Second, bootNow: boot},
		{name: "the wall clock an hour back, past the deadline", lease: minute, bootThen: boot, wall: -time.Hour, boot: minute, bootNow: boot, want: queue.ByDeadline},
		{name: "after a reboot", holder: "h", lease: minute, bootThen: boot, wall: time.Second, boot: -time.Hour, bootNow: other, want: queue.ByDeadline},
		{name: "no boot clock now, before", lease: minute, bootThen: boot, wall: time.Second, bootNow: ""},
		{name: "no boot clock now, past", lease: minute, bootThen: boot, wall: minute, bootNow: "", want: queue.ByDeadline},
		{name: "dead", holder: "h", lease: minute, bootThen: boot, wall: 1, boot: 1, bootNow: boot, dead: map[string]error{"h": nil}, want: queue.ByProof, asks: true},
		{name: "another is dead", holder: "h", lease: minute, bootThen: boot, bootNow: boot, dead: map[string]error{"i": nil}, asks: true},
		{name: "no holder, everybody is dead", lease: minute, bootThen: boot, bootNow: boot, dead: map[string]error{"": nil}},
		{name: "cannot be asked", holder: "h", lease: minute, bootThen: boot, bootNow: boot, dead: map[string]error{"h": errUnasked}, asks: true, err: errUnasked},
		{name: "for ever, no holder", lease: queue.NoDeadline, bootThen: boot, wall: 99999 * time.Hour, boot: 99999 * time.Hour, bootNow: boot},
		{name: "for ever, no holder, after a reboot", lease: queue.NoDeadline, bootThen: boot, wall: time.Hour, boot: -time.Hour, bootNow: other},
		{name: "for ever, alive", holder: "h", lease: queue.NoDeadline, bootThen: boot, wall: time.Hour, boot: time.Hour, bootNow: boot, asks: true},
		{name: "for ever, dead", holder: "h", lease: queue.NoDeadline, bootThen: boot, wall: 1, boot: 1, bootNow: boot, dead: map[string]error{"h": nil}, want: queue.ByProof, asks: true},
		{name: "for ever, after a reboot", holder: "h", lease: queue.NoDeadline, bootThen: boot, wall: 1, boot: -time.Hour, bootNow: other, want: queue.ByProof},
		{name: "for ever, no boot clock then", holder: "h", lease: queue.NoDeadline, bootThen: "", wall: 1, bootNow: other, asks: true},
		{name: "for ever, no boot clock now", holder: "h", lease: queue.NoDeadline, bootThen: boot, wall: 1, bootNow: "", asks: true},
	} {
		for _, how := range []string{"reap", "load"} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				r := newRig(t)
				r.now.BootID = c.bootThen
				x := r.holding("mail", "m", c.holder, c.lease)
				r.now.Wall, r.now.Boot, r.now.BootID = r.now.Wall.Add(c.wall), r.now.Boot+c.boot, c.bootNow
				asked := r.proven(c.dead)
				old, before := r.slot(), r.counters()
				if how == "load" { // takes over exactly what a reaping ends, and what has no holder and no deadline
					_, err := r.load("mail", "m", oneMinute)
					over := c.want != "" || c.lease == queue.NoDeadline && c.holder == ""
					switch {
					case over:
						r.is(err, nil)
						r.counted(before, queue.Counters{Claimed: 1, Reaped: 1})
					case c.err != nil:
						r.is(err, c.err)
					default:
						r.is(err, queue.ErrLeased)
					}
				} else {
					got, err := r.reapAll(queue.ReapOptions{})
					r.is(err, c.err)
					if c.want == "" {
						if got != nil || r.d.dirty || *r.slot().claimed != *old.claimed {
							t.Fatalf("ended: %s; %+v", reapedText(got), r.slot().claimed)
						}
					} else {
						want := queue.Returned{Queue: "mail", ID: "m", Attempt: 1, Cause: c.want, Lapses: 1}
						if len(got) != 1 || got[0] != want {
							t.Fatalf("got %+v, want %+v", got, want)
						}
						after := *old.claimed // its lease stays, for an Extend
						if after.returned, after.lapses = reaped, 1; c.want == queue.ByProof {
							after.lease.holder = token{} // who is dead
						}
						if *r.slot().claimed != after {
							t.Errorf("got %+v\nwant %+v", *r.slot().claimed, after)
						}
						r.counted(before, queue.Counters{Reaped: 1})
						r.gauged(1, 0, 0, 0, 0)
						if c.want == queue.ByProof { // whoever goes on with it is another, and lives
							_, err := r.extend(x, queue.NoDeadline)
							r.is(err, nil)
							more, err := r.reapAll(queue.ReapOptions{})
							if r.is(err, nil); more != nil {
								t.Errorf("extended, and ended again: %s", reapedText(more))
							}
						}
						r.is(r.ack(x), nil)
					}
				}
				r.commit()
				if n := asked[namedToken("h")]; (n > 0) != c.asks || len(asked) > 1 {
					t.Errorf("the holder was asked for %d times; asked were %d", n, len(asked))
				}
			})
		}
	}
}

// Nobody can be proven dead where nothing proves it.
func TestTransitionReapWithoutProof(t *testing.T) {
	r := newRig(t)
	r.holding("mail", "m", "h", queue.NoDeadline)
	r.dead = nil
	got, err := r.reapAll(queue.ReapOptions{})
	if r.is(err, nil); got != nil || r.d.dirty {
		t.Errorf("got %+v", got)
	}
}

// Order, limit and queues. The leases of one scene: c, a and b of mail, enqueued in
// this order and all over, d, which is live, and e and f of news.
func TestTransitionReapOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		o    queue.ReapOptions
		want string
	}{
		{"all", queue.ReapOptions{}, "mail/c mail/a mail/b news/f news/e"},
		{"two", queue.ReapOptions{Limit: 2}, "mail/c mail/a"},
		{"as many as one queue has", queue.ReapOptions{Limit: 3}, "mail/c mail/a mail/b"},
		{"four", queue.ReapOptions{Limit: 4}, "mail/c mail/a mail/b news/f"},
		{"as many as there are", queue.ReapOptions{Limit: 5}, "mail/c mail/a mail/b news/f news/e"},
		{"one queue", queue.ReapOptions{Queues: []string{"news"}}, "news/f news/e"},
		{"one queue, one lease", queue.ReapOptions{Queues: []string{"news"}, Limit: 1}, "news/f"},
		{"two queues, in the order of their names", queue.ReapOptions{Queues: []string{"news", "mail"}, Limit: 4}, "mail/c mail/a mail/b news/f"},
		{"an unknown queue", queue.ReapOptions{Queues: []string{"unknown"}}, ""},
		{"a queue with none", queue.ReapOptions{Queues: []string{"quiet"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			for _, at := range []string{"mail/c", "mail/a", "mail/b", "mail/d", "quiet/g", "news/f", "news/e"} {
				name, id, _ := strings.Cut(at, "/")
				_, err := r.enqueue(name, arrivalOf(id, queue.Refuse))
				r.settled(err)
			}
			// Claimed in another order than they were enqueued in.
			for _, at := range []string{"mail/a", "news/e", "mail/b", "mail/c", "news/f"} {
				name, id, _ := strings.Cut(at, "/")
				r.holding(name, id, "", time.Minute)
			}
			r.holding("mail", "d", "", time.Hour)
			r.past(2 * time.Minute)
			r.pause("news", true) // which does not matter here
			r.commit()
			got, err := r.reapAll(c.o)
			r.is(err, nil)
			var ids []string
			for _, x := range got {
				if ids = append(ids, x.Queue+"/"+x.ID); x.Cause != queue.ByDeadline || x.Lapses != 1 || x.FailedName != "" || !x.NotBefore.IsZero() {
					t.Errorf("got %+v", x)
				}
			}
			if strings.Join(ids, " ") != c.want {
				t.Errorf("ended %v, want %s", ids, c.want)
			}
			if r.d.dirty != (c.want != "") || r.st().queue("unknown") != nil {
				t.Errorf("dirty: %v", r.d.dirty)
			}
			r.commit()

			// What was left is what the next one finds.
			rest, err := r.reapAll(queue.ReapOptions{})
			if r.settled(err); len(got)+len(rest) != 5 {
				t.Errorf("%d and then %d were ended, want 5 together", len(got), len(rest))
			}
			more, err := r.reapAll(queue.ReapOptions{})
			if r.is(err, nil); more != nil || r.d.dirty {
				t.Errorf("a third time: %+v", more)
			}
		})
	}
}

// A hundred at a time, unless told otherwise.
func TestTransitionReapDefaultLimit(t *testing.T) {
	r := newRig(t)
	for i := range queue.DefaultReapLimit + 1 {
		if _, err := r.enqueue("mail", arrivalOf(fmt.Sprint(i), queue.Refuse)); err != nil {
			t.Fatal(err)
		}
	}
	r.commit()
	_, err := r.claim("mail", taking{max: 200, lease: time.Minute})
	r.settled(err)
	r.past(time.Hour)
	for _, want := range []int{queue.DefaultReapLimit, 1, 0} {
		got, err := r.reapAll(queue.ReapOptions{})
		if r.settled(err); len(got) != want {
			t.Errorf("%d were ended, want %d", len(got), want)
		}
	}
}

// Holders that cannot be asked spoil nothing; that is an error only when nothing else
// was found to end.
func TestTransitionReapTrouble(t *testing.T) {
	for _, c := range []struct {
		name string
		dead map[string]error
		past time.Duration
		o    queue.ReapOptions
		want string
		err  error
	}{
		{"nobody can be asked", map[string]error{"h": errUnasked, "i": errUnasked}, 0, queue.ReapOptions{}, "", errUnasked},
		{"one cannot be asked, the other is alive", map[string]error{"h": errUnasked}, 0, queue.ReapOptions{}, "", errUnasked},
		{"one cannot be asked, the other is dead", map[string]error{"h": errUnasked, "i": nil}, 0, queue.ReapOptions{}, "news/b by proof (lapse 1)", nil},
		{"the other way round", map[string]error{"h": nil, "i": errUnasked}, 0, queue.ReapOptions{}, "mail/a by proof (lapse 1)", nil},
		{"one cannot be asked, in a queue that is not looked at", map[string]error{"h": errUnasked}, 0, queue.ReapOptions{Queues: []string{"news"}}, "", nil},
		{"nobody can be asked, past the deadlines", map[string]error{"h": errUnasked, "i": errUnasked}, time.Hour, queue.ReapOptions{}, "mail/a by deadline (lapse 1), news/b by deadline (lapse 1)", nil},
		{"one cannot be asked, and the limit is reached", map[string]error{"h": errUnasked, "i": nil}, 0, queue.ReapOptions{Limit: 1}, "news/b by proof (lapse 1)", nil},
		{"all are dead", map[string]error{"h": nil, "i": nil}, 0, queue.ReapOptions{MaxLapses: 1}, "mail/a by proof (lapse 1) failed as a, news/b by proof (lapse 1) failed as b", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.holding("mail", "a", "h", time.Minute)
			r.holding("news", "b", "i", time.Minute)
			r.past(c.past)
			r.proven(c.dead)
			got, err := r.reapAll(c.o) // apply looks for a trace
			if r.is(err, c.err); reapedText(got) != c.want {
				t.Errorf("ended %q, want %q", reapedText(got), c.want)
			}
			if r.d.dirty != (c.want != "") {
				t.Errorf("dirty: %v", r.d.dirty)
			}
			r.commit()
		})
	}
}

// One named claim is ended whatever its deadline: the operator's act.
func TestTransitionReapOne(t *testing.T) {
	for _, c := range []struct {
		standing string
		err      error
		current  uint64
		reason   string
	}{
		{"leased", nil, 0, ""},
		{"leased+pending", nil, 0, ""},
		{"leased for ever", nil, 0, ""},
		{"overdue", nil, 0, ""},
		{"extended", nil, 0, ""},
		{"reaped, extended", nil, 0, ""},
		{"reaped", queue.ErrStale, 1, "reaped"},
		{"reaped+pending", queue.ErrStale, 1, "reaped"},
		{"returned", queue.ErrStale, 1, "released"},
		{"snoozed", queue.ErrStale, 1, "released"},
		{"retried", queue.ErrStale, 1, "retried"},
		{"retried later+pending", queue.ErrStale, 1, "retried"},
		{"reprocessed", queue.ErrStale, 1, "reprocessed"},
		{"failed", queue.ErrGone, 0, "failed"},
	} {
		t.Run(c.standing, func(t *testing.T) {
			r := newRig(t)
			x := r.stand(c.standing)
			r.dead = func(token) (bool, error) { t.Error("a holder was asked"); return false, nil }
			old, before := r.slot(), r.counters()
			got, err := r.reapAll(queue.ReapOptions{Receipt: &x})
			if c.err != nil {
				r.lost(err, x, c.err, c.current)
				if !strings.Contains(err.Error(), c.reason) || got != nil || r.d.dirty {
					t.Errorf("got %+v, %v, want it to say %q", got, err, c.reason)
				}
				return
			}
			r.is(err, nil)
			want := *old.claimed
			want.returned = reaped
			want.lapses++
			if *r.slot().claimed != want || r.slot().pending != old.pending {
				t.Errorf("got %+v\nwant %+v", *r.slot().claimed, want)
			}
			if text := reapedText(got); text != "mail/m by operator (lapse 1)" || got[0].Attempt != 1 {
				t.Errorf("ended %s, attempt %d", text, got[0].Attempt)
			}
			r.counted(before, queue.Counters{Reaped: 1})
			r.commit()
			_, err = r.reapAll(queue.ReapOptions{Receipt: &x})
			r.lost(err, x, queue.ErrStale, 1)
			r.is(r.ack(x), nil) // the receipt is still good
		})
	}
	t.Run("another attempt", func(t *testing.T) {
		r := newRig(t)
		x := r.stand("reaped")
		r.take("m")
		_, err := r.reapAll(queue.ReapOptions{Receipt: &x})
		r.lost(err, x, queue.ErrStale, 2)
	})
	t.Run("another store", func(t *testing.T) {
		r := newRig(t)
		x := r.stand("leased")
		x.Store = namedToken("other").String()
		_, err := r.reapAll(queue.ReapOptions{Receipt: &x})
		r.is(err, queue.ErrInvalidReceipt)
	})
}

// Reaping, and the receipt of before used after all: the lapse was none.
func TestTransitionReapedReceipt(t *testing.T) {
	for call, lapses := range map[string]uint64{"release": 0, "snooze": 0, "retry": 0, "retry later": 0, "extend": 0, "extend for ever": 0, "replacePayload": 1} {
		t.Run(call, func(t *testing.T) {
			r := newRig(t)
			x := r.stand("overdue")
			_, err := r.reapAll(queue.ReapOptions{})
			r.settled(err)
			r.settled(settlements[call](r, x))
			if c := r.slot().claimed; c.lapses != lapses || c.attempts != 1 {
				t.Errorf("got %+v", *c)
			}
		})
	}
}
