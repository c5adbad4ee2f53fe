//go:build unix

package holdfast

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

func TestLoadByStanding(t *testing.T) {
	for _, c := range []struct {
		standing string
		paused   bool
		err      error
		attempt  uint64
		lapses   uint64
		counted  queue.Counters
		behind   bool // a newer generation waits, and stays
	}{
		{"absent", false, queue.ErrNotFound, 0, 0, queue.Counters{}, false},
		{"failed", false, queue.ErrNotFound, 0, 0, queue.Counters{}, false},
		{"pending", false, nil, 1, 0, queue.Counters{Claimed: 1}, false},
		{"pending", true, nil, 1, 0, queue.Counters{Claimed: 1}, false},
		{"scheduled", false, nil, 1, 0, queue.Counters{Claimed: 1}, false},
		{"leased", false, queue.ErrLeased, 0, 0, queue.Counters{}, false},
		{"leased+pending", false, queue.ErrLeased, 0, 0, queue.Counters{}, true},
		{"leased for ever", false, nil, 2, 1, queue.Counters{Claimed: 1, Reaped: 1}, false},
		{"leased for ever+pending", false, nil, 2, 1, queue.Counters{Claimed: 1, Reaped: 1}, true},
		{"returned", false, nil, 2, 0, queue.Counters{Claimed: 1}, false},
		{"returned+pending", false, nil, 2, 0, queue.Counters{Claimed: 1}, true},
		{"reaped", false, nil, 2, 1, queue.Counters{Claimed: 1}, false},
		{"reaped+pending", false, nil, 2, 1, queue.Counters{Claimed: 1}, true},
	} {
		name := c.standing
		if c.paused {
			name += "/paused"
		}
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			last := r.stand(c.standing)
			if c.paused {
				r.pause("mail", true)
				r.commit()
			}
			old, before := r.slot(), r.counters()
			d, err := r.load("mail", "m", taking{max: 1, lease: time.Minute, label: "taker"})
			r.is(err, c.err)
			r.counted(before, c.counted)
			if c.err != nil {
				if d.Receipt != (queue.Receipt{}) || r.d.dirty {
					t.Errorf("refused, with %+v, dirty %v", d, r.d.dirty)
				}
				return
			}
			gen, want := old.pending, `{"id":"m"}`
			if old.claimed != nil {
				gen = &old.claimed.ref
			}
			if d.Receipt.Generation != gen.gen.String() || d.Receipt.Attempt != c.attempt || d.Lapses != c.lapses || string(d.Payload) != want {
				t.Errorf("got %+v, want attempt %d of %s after %d lapses", d, c.attempt, gen.gen, c.lapses)
			}
			now := r.slot()
			if now.claimed.lease.label != "taker" || now.claimed.notBefore != 0 || now.claimed.seq != gen.seq {
				t.Errorf("the claim is %+v", now.claimed)
			}
			if (now.pending != nil) != c.behind || c.behind && now.pending != old.pending {
				t.Errorf("behind it is %+v", now.pending)
			}
			if last.Attempt != 0 {
				err := r.ack(last)
				r.lost(err, last, queue.ErrStale, c.attempt)
			}
			r.is(r.ack(d.Receipt), nil)
			r.commit()
		})
	}
}

func TestLoadUnknown(t *testing.T) {
	r := newRig(t)
	r.put("m")
	for _, at := range [][2]string{{"mail", "n"}, {"news", "m"}} {
		_, err := r.load(at[0], at[1], oneMinute)
		if r.is(err, queue.ErrNotFound); r.d.dirty || !strings.Contains(err.Error(), at[0]+"/"+at[1]) {
			t.Errorf("dirty %v, %v", r.d.dirty, err)
		}
	}
}

// A refusal tells a person who has the message and until when.
func TestLoadLeasedSaysWhose(t *testing.T) {
	r := newRig(t)
	r.stand("leased")
	_, err := r.load("mail", "m", oneMinute)
	r.is(err, queue.ErrLeased)
	for _, want := range []string{"mail/m", "2025-11-30T10:54:20Z", "attempt 1", `"worker 1"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want it to say %s", err, want)
		}
	}
}

// Trial T30. A lease of one minute, taken at rigStart, is loaded under a clock that
// has gone on or jumped.
func TestLoadWhenTheLeaseIsOver(t *testing.T) {
	const second, hour = time.Second, time.Hour
	unknown, other := "", "99999999-2222-3333-4444-555555555555"
	same := rigStart.BootID
	for _, c := range []struct {
		name       string
		bootBefore string
		wall, boot time.Duration // how far they have gone
		bootAfter  string
		over       bool
	}{
		{"live", same, 59 * second, 59 * second, same, false},
		{"a millisecond before the deadline", same, 60*second - time.Millisecond, 60*second - time.Millisecond, same, false},
		{"exactly at the deadline", same, 60 * second, 60 * second, same, true},
		{"past", same, 61 * second, 61 * second, same, true},
		{"one boot, the wall clock an hour forward", same, hour + second, second, same, false},
		{"one boot, the wall clock an hour back", same, 59*second - hour, 59 * second, same, false},
		{"one boot, the wall clock an hour back, at the deadline", same, 60*second - hour, 60 * second, same, true},
		{"one boot, the wall clock an hour forward, at the deadline", same, hour, 60 * second, same, true},
		{"a suspend of 120 s", same, 120 * second, 120 * second, same, true},
		{"another boot, past by the wall clock", same, 90 * second, -hour, other, true},
		{"another boot, before the deadline by the wall clock", same, second, -hour, other, true},
		{"another boot that has lasted longer", same, second, 10 * hour, other, true},
		{"another boot, the wall clock an hour back", same, -hour, -hour, other, true},
		{"no boot clock now, before", same, 60*second - time.Millisecond, hour, unknown, false},
		{"no boot clock now, at the deadline", same, 60 * second, -hour, unknown, true},
		{"no boot clock now, the wall clock an hour back", same, -hour, 0, unknown, false},
		{"no boot clock then, before", unknown, 60*second - time.Millisecond, hour, same, false},
		{"no boot clock then, at the deadline", unknown, 60 * second, 0, same, true},
		{"no boot clock then, another boot", unknown, second, 0, other, false},
		{"no boot clock at all, before", unknown, 60*second - time.Millisecond, 0, unknown, false},
		{"no boot clock at all, at the deadline", unknown, 60 * second, 0, unknown, true},
		{"no boot clock at all, the wall clock an hour forward", unknown, hour, 0, unknown, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.now.BootID = c.bootBefore
			last := r.stand("leased")
			r.now.Wall, r.now.Boot, r.now.BootID = r.now.Wall.Add(c.wall), r.now.Boot+c.boot, c.bootAfter
			status := statusOf(r, r.st(), nil, r.now).Queues["mail"]
			if over := status.Overdue == 1; over != c.over || status.Processing != 1 {
				t.Errorf("status: %+v, want overdue %v", status, c.over)
			}
			before := r.counters()
			d, err := r.load("mail", "m", oneMinute)
			if !c.over {
				r.is(err, queue.ErrLeased)
				r.is(r.ack(last), nil) // its holder is not disturbed
				return
			}
			r.is(err, nil)
			r.counted(before, queue.Counters{Claimed: 1, Reaped: 1})
			if d.Receipt.Attempt != 2 || d.Lapses != 1 || d.Failures != 0 {
				t.Errorf("got %+v", d)
			}
			r.lost(r.ack(last), last, queue.ErrStale, 2)
			if _, err := r.load("mail", "m", oneMinute); !errors.Is(err, queue.ErrLeased) {
				t.Errorf("a second load: %v", err)
			}
			r.gauged(1, 0, 0, 1, 0)
			r.commit()
		})
	}
}

// A lease that is past its deadline and that nobody took over is still its holder's.
func TestOverdueLeaseIsStillHeld(t *testing.T) {
	r := newRig(t)
	last := r.stand("leased")
	r.past(time.Hour)
	if got := r.claimIDs(9); got != "bystander" {
		t.Errorf("a claim delivers %q", got)
	}
	r.is(r.ack(last), nil)
}

func TestLoadDamaged(t *testing.T) {
	for _, c := range []struct {
		standing string
		err      error
		counted  queue.Counters
	}{
		{"pending", queue.ErrDamaged, queue.Counters{Failed: 1, Damaged: 1}},
		{"scheduled", queue.ErrDamaged, queue.Counters{Failed: 1, Damaged: 1}},
		{"returned", queue.ErrDamaged, queue.Counters{Failed: 1, Damaged: 1}},
		{"returned+pending", queue.ErrDamaged, queue.Counters{Failed: 1, Damaged: 1}},
		{"reaped", queue.ErrDamaged, queue.Counters{Failed: 1, Damaged: 1}},
		{"leased for ever", queue.ErrDamaged, queue.Counters{Failed: 1, Damaged: 1}},
		{"leased for ever+pending", queue.ErrDamaged, queue.Counters{Failed: 1, Damaged: 1}},
		{"leased", queue.ErrLeased, queue.Counters{}}, // a live lease is not even looked at
	} {
		for _, taken := range []bool{false, true} {
			name := c.standing
			if taken {
				name += "/name taken"
			}
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				if taken {
					r.put("m")
					_, err := r.fail(r.take("m").Receipt, "an earlier one", "")
					r.settled(err)
				}
				last := r.stand(c.standing)
				old := r.slot()
				hurt := old.pending
				if old.claimed != nil {
					hurt = &old.claimed.ref
				}
				r.damage(hurt)
				before := r.counters()
				d, err := r.load("mail", "m", oneMinute)
				r.is(err, c.err)
				r.counted(before, c.counted)
				if d.Receipt != (queue.Receipt{}) {
					t.Errorf("delivered %+v", d)
				}
				if c.err != queue.ErrDamaged {
					return
				}
				var damaged *queue.DamagedError
				if !errors.As(err, &damaged) {
					t.Fatalf("got %T", err)
				}
				r.evidence(damaged, hurt, taken)
				if last.Attempt != 0 {
					r.lost(r.ack(last), last, queue.ErrGone, 0)
				}
				if strings.HasSuffix(c.standing, "+pending") {
					if now := r.slot(); now.claimed != nil || now.pending != old.pending {
						t.Errorf("the one behind it: %+v", now)
					}
				} else if now := r.slot(); now.id != "" {
					t.Errorf("it is live still: %+v", now)
				}
				r.commit()
			})
		}
	}
}

func TestLoadUnreadable(t *testing.T) {
	eio := errors.New("input/output error")
	for _, standing := range []string{"pending", "scheduled", "returned", "reaped", "leased for ever", "leased for ever+pending"} {
		t.Run(standing, func(t *testing.T) {
			r := newRig(t)
			r.stand(standing)
			m := r.slot().pending
			if c := r.slot().claimed; c != nil {
				m = &c.ref
			}
			r.broken[spot{m.object, m.off}] = eio
			_, err := r.load("mail", "m", oneMinute) // apply looks for a trace
			if r.is(err, eio); r.d.dirty {
				t.Error("the draft is dirty")
			}
			clear(r.broken)
			r.take("m")
		})
	}
}
