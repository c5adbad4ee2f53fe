//go:build unix

package holdfast

import (
	"fmt"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

func TestFailKeepsTheEvidence(t *testing.T) {
	for _, as := range []string{"", "elsewhere"} {
		r := newRig(t)
		_, err := r.enqueue("mail", arrival{id: "m", payload: []byte(" 1 "), key: "chat"})
		r.settled(err)
		x := r.take("m").Receipt
		r.settled(r.release(x))
		x = r.take("m").Receipt
		want := r.slot().claimed.ref
		want.lastError = "smtp: 550 ünknown"
		r.past(1e9)
		name, err := r.fail(x, want.lastError, as)
		r.is(err, nil)
		if as == "" {
			as = "m"
		}
		e := r.st().failedEntry("", as)
		if name != as || e == nil || e.name != as || e.queue != "mail" || e.id != "m" || e.ref != want || e.at != r.now.Wall.UnixMilli() {
			t.Errorf("failed as %q: %+v, want %+v", name, e, want)
		}
		r.commit()
		if e := failedEntryOf("", r.st().failedEntry("", as)); e.State != queue.Failed || e.FailedName != as || e.ID != "m" || e.Attempts != 2 || e.Excused != 1 || e.Key != "chat" || e.PayloadBytes != 3 {
			t.Errorf("it is shown as %+v", e)
		}
		r.delivers(map[string]string{"m": " 1 "})
	}
}

// Create-only, across the queues that share a namespace; the claim stays exactly.
func TestFailNameTaken(t *testing.T) {
	for _, c := range []struct {
		name      string
		from, as  string // the queue and the failed name of the evidence that is there
		namespace string // of that queue
		again     string // the name now asked for
		want      error
	}{
		{"the same ID, the same queue", "mail", "", "", "", queue.ErrFailedExists},
		{"the same ID, another queue", "news", "", "", "", queue.ErrFailedExists},
		{"the same ID, another namespace", "news", "", "aside", "", nil},
		{"as, taken by another ID", "news", "x", "", "x", queue.ErrFailedExists},
		{"as an ID that failed", "news", "", "", "m", queue.ErrFailedExists},
		{"another name", "news", "", "", "m2", nil},
		{"the ID, which is free", "news", "x", "", "", nil},
		{"a name in another case", "news", "", "", "M", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			_, err := r.enqueue(c.from, arrivalOf("m", queue.Refuse))
			r.is(err, nil)
			r.d.queue(c.from).failedNS = c.namespace
			r.commit()
			d, err := r.load(c.from, "m", oneMinute)
			r.settled(err)
			_, err = r.fail(d.Receipt, "the first", c.as)
			r.settled(err)

			x := r.stand("leased")
			before := r.slot()
			name, err := r.fail(x, "the second", c.again)
			r.is(err, c.want)
			if c.want == nil {
				r.commit()
				return
			}
			if after := r.slot(); after.claimed != before.claimed || r.d.dirty || name != "" {
				t.Errorf("failed as %q; the claim is %+v, before: %+v", name, after.claimed, before.claimed)
			}
			if !strings.Contains(err.Error(), c.from+"/m") {
				t.Errorf("%v; want it to say whose evidence has the name", err)
			}
			_, err = r.fail(x, "the second", "free")
			r.settled(err)
		})
	}
}

func TestFailNamesStaySorted(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"c", "a", "B", "b.1", "-", "b"} {
		r.put(id)
		_, err := r.fail(r.take(id).Receipt, "no", "")
		r.settled(err) // which reads it back: the decoder wants them sorted
	}
	var names []string
	for _, e := range r.st().failed[0].entries {
		names = append(names, e.name)
	}
	if got := strings.Join(names, " "); got != "- B a b b.1 c" {
		t.Errorf("the failed names are %s", got)
	}
}

func TestPurge(t *testing.T) {
	for _, c := range []struct {
		name        string
		space, what string
		err         error
		left        []string
	}{
		{"one of two", "", "m", nil, []string{"/x", "aside/m"}},
		{"the last of its namespace", "aside", "m", nil, []string{"/m", "/x"}},
		{"unknown", "", "y", queue.ErrNotFailed, []string{"/m", "/x", "aside/m"}},
		{"of another namespace", "aside", "x", queue.ErrNotFailed, []string{"/m", "/x", "aside/m"}},
		{"unknown namespace", "nowhere", "m", queue.ErrNotFailed, []string{"/m", "/x", "aside/m"}},
		{"a live ID", "", "bystander", queue.ErrNotFailed, []string{"/m", "/x", "aside/m"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.stand("failed")
			for _, at := range []struct{ queue, id, space string }{{"news", "x", ""}, {"notes", "m", "aside"}} {
				_, err := r.enqueue(at.queue, arrivalOf(at.id, queue.Refuse))
				r.is(err, nil)
				r.d.queue(at.queue).failedNS = at.space
				d, err := r.load(at.queue, at.id, oneMinute)
				r.is(err, nil)
				_, err = r.fail(d.Receipt, "no", "")
				r.settled(err)
			}
			err := r.purge(c.space, c.what)
			r.is(err, c.err)
			var left []string
			for _, f := range r.st().failed {
				for _, e := range f.entries {
					left = append(left, f.name+"/"+e.name)
				}
			}
			if fmt.Sprint(left) != fmt.Sprint(c.left) {
				t.Errorf("left are %v, want %v", left, c.left)
			}
			if c.err != nil {
				if r.d.dirty {
					t.Error("the draft is dirty")
				}
				return
			}
			if n := r.st().queue("mail").counters.Purged + r.st().queue("notes").counters.Purged; n != 1 || r.st().queue("news").counters.Purged != 0 {
				t.Errorf("%d purged", n)
			}
			r.is(r.purge(c.space, c.what), queue.ErrNotFailed)
			r.commit()
		})
	}
}

// A name that was purged is free again, in the same commit too.
func TestPurgedNameIsFree(t *testing.T) {
	for _, together := range []bool{false, true} {
		r := newRig(t)
		r.stand("failed")
		r.is(r.purge("", "m"), nil)
		if !together {
			r.commit()
		}
		_, err := r.enqueue("mail", arrivalOf("m", queue.Refuse))
		r.is(err, nil)
		d, err := r.load("mail", "m", oneMinute)
		r.is(err, nil)
		name, err := r.fail(d.Receipt, "again", "")
		if r.settled(err); name != "m" || r.st().failedEntry("", "m").ref.lastError != "again" {
			t.Errorf("together %v: failed as %q", together, name)
		}
	}
}

func TestClear(t *testing.T) {
	for _, c := range []struct {
		standing  string // beside the bystander, which is pending
		leasedToo bool
		removed   uint64
		stays     bool // the claim does
	}{
		{"absent", false, 1, false},
		{"pending", false, 2, false},
		{"scheduled", false, 2, false},
		{"returned", false, 2, false},
		{"reaped", false, 2, false},
		{"returned+pending", false, 3, false},
		{"leased", false, 1, true},
		{"leased for ever", false, 1, true},
		{"leased+pending", false, 2, true},
		{"failed", false, 1, false},
		{"pending", true, 2, false},
		{"returned+pending", true, 3, false},
		{"leased", true, 2, false},
		{"leased for ever", true, 2, false},
		{"leased+pending", true, 3, false},
	} {
		t.Run(fmt.Sprintf("%s/leased too %v", c.standing, c.leasedToo), func(t *testing.T) {
			r := newRig(t)
			x := r.stand(c.standing)
			_, err := r.enqueue("news", arrivalOf("m", queue.Refuse))
			r.settled(err)
			old, before, evidence := r.slot(), r.counters(), r.st().failedEntry("", "m")
			if n := r.clear("mail", c.leasedToo); n != c.removed {
				t.Errorf("cleared %d, want %d", n, c.removed)
			}
			r.counted(before, queue.Counters{Cleared: c.removed})
			if now := r.slot(); now.pending != nil || (now.claimed != nil) != c.stays || c.stays && now.claimed != old.claimed {
				t.Errorf("left is %+v", now)
			}
			if r.st().failedEntry("", "m") != evidence || len(r.st().queue("news").slots) != 1 {
				t.Error("evidence or another queue was touched")
			}
			if n := r.clear("mail", false); n != 0 {
				t.Errorf("a second clear removes %d", n)
			}
			r.commit()
			if got := r.claimIDs(9); got != "" {
				t.Errorf("a claim delivers %q", got)
			}
			switch {
			case c.stays:
				r.settled(r.ack(x))
			case x.Attempt != 0:
				r.lost(r.ack(x), x, queue.ErrGone, 0)
			}
			if status := statusOf(r, r.st(), []string{"mail"}, r.now); status.Queues["mail"].Unacked() != 0 {
				t.Errorf("status %+v", status)
			}
		})
	}
}

func TestClearNothing(t *testing.T) {
	r := newRig(t)
	r.stand("leased")
	r.settled(r.ack(r.take("bystander").Receipt))
	for _, name := range []string{"mail", "unknown"} {
		if n := r.clear(name, false); n != 0 || r.d.dirty {
			t.Errorf("%s: cleared %d, dirty %v", name, n, r.d.dirty)
		}
	}
}
