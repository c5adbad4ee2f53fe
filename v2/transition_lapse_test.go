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

// The cap of lapses counts lapses alone, this one among them.
func TestTransitionCapOfLapses(t *testing.T) {
	for _, c := range []struct {
		attempts, excused, lapses uint64 // before
		max                       uint64
		failed                    bool
	}{
		{1, 0, 0, 1, true},
		{1, 0, 0, 2, false},
		{3, 0, 2, 3, true},
		{3, 0, 1, 3, false},
		{9, 3, 2, 3, true},
		{9, 3, 2, 4, false},
		{9, 3, 4, 3, true}, // the cap was higher before
		{90, 0, 8, 0, false},
		{90, 0, 9, 0, true}, // 0 is the default, 10
		{90, 80, 9, 0, true},
		{90, 80, 8, 0, false},
	} {
		for _, how := range []string{"over", "named"} {
			t.Run(fmt.Sprintf("%d attempts, %d excused, %d lapses, cap %d/%s", c.attempts, c.excused, c.lapses, c.max, how), func(t *testing.T) {
				r := newRig(t)
				r.stand("overdue")
				x := r.recount(c.attempts, c.excused, c.lapses)
				old, before := *r.slot().claimed, r.counters()
				want := queue.Returned{Queue: "mail", ID: "m", Attempt: c.attempts, Lapses: c.lapses + 1, Cause: queue.ByDeadline}
				o := queue.ReapOptions{MaxLapses: c.max}
				if how == "named" {
					want.Cause, o.Receipt = queue.ByOperator, &x
				}
				if c.failed {
					want.FailedName = "m"
				}
				got, err := r.reapAll(o)
				if r.is(err, nil); len(got) != 1 || got[0] != want {
					t.Fatalf("got %+v, want %+v", got, want)
				}
				if !c.failed {
					r.counted(before, queue.Counters{Reaped: 1})
					if c := r.slot().claimed; c.lapses != want.Lapses || c.returned != reaped {
						t.Errorf("got %+v", c)
					}
					r.commit()
					return
				}
				r.counted(before, queue.Counters{Reaped: 1, Failed: 1})
				ref := old.ref
				ref.lapses, ref.lastError = want.Lapses, fmt.Sprintf("lapsed %d times without settlement", want.Lapses)
				if e := r.st().failedEntry("", "m"); e == nil || e.ref != ref || e.at != r.now.millis() {
					t.Errorf("failed: %+v, want %+v", e, ref)
				}
				r.commit()
				r.lost(r.ack(x), x, queue.ErrGone, 0)
			})
		}
	}
}

// The evidence says that it lapsed, and what the last failure was.
func TestTransitionLapsedError(t *testing.T) {
	for name, c := range map[string]struct{ before, want string }{
		"none": {"", "lapsed 2 times without settlement"},
		"one":  {"smtp: 450", "lapsed 2 times without settlement; last error: smtp: 450"},
		"long": {strings.Repeat("é", 512), queue.CutError("lapsed 2 times without settlement; last error: " + strings.Repeat("é", 512))},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.put("m")
			_, err := r.retry(r.take("m").Receipt, queue.RetryOptions{Cause: c.before})
			r.settled(err)
			for range 2 {
				r.take("m")
				r.past(time.Hour)
				_, err := r.reapAll(queue.ReapOptions{MaxLapses: 2})
				r.settled(err)
			}
			if e := r.st().failedEntry("", "m"); e == nil || e.ref.lastError != c.want || e.ref.attempts != 3 || e.ref.failures() != 1 {
				t.Errorf("failed: %+v", e)
			}
		})
	}
}

// Lapses and failures have caps of their own: neither counts toward the other.
func TestTransitionLapsesAreNoFailures(t *testing.T) {
	r := newRig(t)
	r.put("m")
	for i := range 18 {
		d := r.take("m")
		if i%2 == 0 {
			got, err := r.retry(d.Receipt, queue.RetryOptions{MaxFailures: 10})
			if r.settled(err); got.FailedName != "" {
				t.Fatalf("attempt %d: %+v", i+1, got)
			}
			continue
		}
		r.past(time.Hour)
		got, err := r.reapAll(queue.ReapOptions{MaxLapses: 10})
		if r.settled(err); got[0].FailedName != "" {
			t.Fatalf("attempt %d: %+v", i+1, got)
		}
	}
	d := r.take("m")
	if d.Failures != 9 || d.Lapses != 9 {
		t.Errorf("delivered as %+v", d)
	}
	r.past(time.Hour)
	got, err := r.reapAll(queue.ReapOptions{MaxLapses: 10})
	if r.settled(err); !slices.Equal(got, []queue.Returned{{Queue: "mail", ID: "m", FailedName: "m", Attempt: 19, Cause: queue.ByDeadline, Lapses: 10}}) {
		t.Errorf("got %+v", got)
	}
}
