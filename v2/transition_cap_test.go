//go:build unix

package holdfast

import (
	"fmt"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// recount makes m's claim one of so many attempts.
func (r *rig) recount(attempts, excused, lapses uint64) queue.Receipt {
	r.Helper()
	d := r.open()
	q := d.queue("mail")
	s, _ := q.find("m")
	c := *s.claimed
	c.attempts, c.excused, c.lapses = attempts, excused, lapses
	q.put("m", s.pending, &c)
	r.commit()
	return receiptOf(r.base.store, "mail", "m", &c)
}

// The cap counts the attempts that were neither excused nor lapsed, this one among
// them. A lapse of this very attempt is none: its receipt was good.
func TestTransitionCapOfFailures(t *testing.T) {
	for _, c := range []struct {
		standing                  string
		attempts, excused, lapses uint64
		max                       uint64
		failed                    bool
	}{
		{"leased", 1, 0, 0, 1, true},
		{"leased", 1, 0, 0, 2, false},
		{"leased", 2, 1, 0, 1, true},
		{"leased", 2, 1, 0, 2, false},
		{"leased", 2, 0, 1, 1, true},
		{"leased", 2, 0, 1, 2, false},
		{"leased", 9, 3, 3, 3, true},
		{"leased", 9, 3, 3, 4, false},
		{"leased", 9, 3, 3, 2, true}, // the cap was higher before
		{"overdue", 9, 3, 3, 3, true},
		{"overdue", 9, 3, 3, 4, false},
		{"reaped", 1, 0, 1, 1, true},
		{"reaped", 1, 0, 1, 2, false},
		{"reaped", 9, 3, 4, 3, true},
		{"reaped", 9, 3, 4, 4, false},
		{"leased", 19, 0, 0, 0, false}, // 0 is the default, 20
		{"leased", 20, 0, 0, 0, true},
		{"leased", 29, 5, 5, 0, false},
		{"leased", 30, 5, 5, 0, true},
		{"reaped", 30, 5, 6, 0, true},
		{"reaped", 30, 5, 7, 0, false},
	} {
		t.Run(fmt.Sprintf("%s/%d attempts, %d excused, %d lapses, cap %d", c.standing, c.attempts, c.excused, c.lapses, c.max), func(t *testing.T) {
			r := newRig(t)
			r.stand(c.standing)
			x := r.recount(c.attempts, c.excused, c.lapses)
			before, old := r.counters(), *r.slot().claimed
			want := queue.Returned{Queue: "mail", ID: "m", Attempt: c.attempts}
			if c.failed {
				want.FailedName = "m"
			} else {
				want.NotBefore = r.now.Wall.Add(time.Minute)
			}
			got, err := r.retry(x, queue.RetryOptions{Delay: time.Minute, MaxFailures: c.max, Cause: "smtp: 550"})
			r.is(r.returned(got, err, want), nil)
			if !c.failed {
				r.counted(before, queue.Counters{Retried: 1})
				return
			}
			r.counted(before, queue.Counters{Failed: 1})
			ref := old.ref
			if ref.lastError = "smtp: 550"; old.returned == reaped {
				ref.lapses--
			}
			e := r.st().failedEntry("", "m")
			if e == nil || e.queue != "mail" || e.id != "m" || e.ref != ref || e.at != r.now.millis() {
				t.Errorf("failed: %+v, want %+v", e, ref)
			}
			if r.slot().id != "" {
				t.Errorf("it is live still: %+v", r.slot())
			}
			r.commit()
			r.lost(r.ack(x), x, queue.ErrGone, 0)
		})
	}
}

// A cap never collides: the failed name is the ID, or ID~generation where another
// message has that name.
func TestTransitionCapFindsAName(t *testing.T) {
	atCap := map[string]func(r *rig, x queue.Receipt) (queue.Returned, error){
		"failures": func(r *rig, x queue.Receipt) (queue.Returned, error) {
			return r.retry(x, queue.RetryOptions{MaxFailures: 1})
		},
		"lapses": func(r *rig, x queue.Receipt) (queue.Returned, error) {
			all, err := r.reapAll(queue.ReapOptions{MaxLapses: 1, Receipt: &x})
			if len(all) != 1 {
				return queue.Returned{}, err
			}
			return all[0], err
		},
	}
	for capName, give := range atCap {
		for _, c := range []struct {
			name     string
			standing string
			prepare  func(r *rig)
			taken    bool
		}{
			{"free", "leased", func(*rig) {}, false},
			{"free, a newer generation behind", "leased+pending", func(*rig) {}, false},
			{"taken by an older generation", "leased", func(r *rig) {
				r.put("m")
				_, err := r.fail(r.take("m").Receipt, "an earlier one", "")
				r.settled(err)
			}, true},
			{"taken by an older generation, a newer one behind", "leased+pending", func(r *rig) {
				r.put("m")
				_, err := r.fail(r.take("m").Receipt, "an earlier one", "")
				r.settled(err)
			}, true},
			{"taken by another ID", "leased", func(r *rig) {
				r.put("n")
				_, err := r.fail(r.take("n").Receipt, "an earlier one", "m")
				r.settled(err)
			}, true},
			{"taken in another namespace", "leased", func(r *rig) {
				r.put("m")
				_, err := r.fail(r.take("m").Receipt, "an earlier one", "")
				r.settled(err)
				r.setNamespace("mail", "aside")
				r.commit()
			}, false},
		} {
			t.Run(capName+"/"+c.name, func(t *testing.T) {
				r := newRig(t)
				c.prepare(r)
				x := r.stand(c.standing)
				behind := r.slot().pending
				got, err := give(r, x)
				r.is(err, nil)
				want := "m"
				if c.taken {
					want = "m~" + x.Generation
				}
				space := r.st().queue("mail").failedNS
				if e := r.st().failedEntry(space, want); got.FailedName != want || e == nil || e.ref.gen.String() != x.Generation {
					t.Fatalf("failed as %q, want %q: %+v", got.FailedName, want, e)
				}
				if c.taken {
					if e := r.st().failedEntry("", "m"); e.ref.lastError != "an earlier one" {
						t.Errorf("the evidence that had the name is now %+v", e)
					}
				}
				if r.slot().pending != behind || r.slot().claimed != nil {
					t.Errorf("left is %+v", r.slot())
				}
				r.commit()
				r.settled(r.purge(space, want))
			})
		}
	}
}

// Retries of one message and nothing else: the counts after each, up to the cap.
func TestTransitionManyRetries(t *testing.T) {
	r := newRig(t)
	r.put("m")
	for i := uint64(1); i <= 20; i++ {
		d := r.take("m")
		if d.Failures != i-1 || d.Receipt.Attempt != i {
			t.Fatalf("attempt %d is delivered as %+v", i, d)
		}
		got, err := r.retry(d.Receipt, queue.RetryOptions{Cause: fmt.Sprint(i)})
		if r.settled(err); (got.FailedName != "") != (i == 20) {
			t.Fatalf("retry %d: %+v", i, got)
		}
	}
	if got := r.counters(); got != (queue.Counters{Enqueued: 1, Claimed: 20, Retried: 19, Failed: 1}) {
		t.Errorf("counted %+v", got)
	}
	if e := r.st().failedEntry("", "m"); e.ref.attempts != 20 || e.ref.lastError != "20" {
		t.Errorf("failed: %+v", e)
	}
}
