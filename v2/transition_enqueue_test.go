//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

func TestEnqueueByStanding(t *testing.T) {
	const accepted, pending, claimed = "", "pending", "claimed"
	for _, c := range []struct {
		standing string
		how      queue.IfExists
		refused  error
		kept     string // which generation Keep reports
		counted  queue.Counters
	}{
		{"absent", queue.Refuse, nil, accepted, queue.Counters{Enqueued: 1}},
		{"absent", queue.Keep, nil, accepted, queue.Counters{Enqueued: 1}},
		{"absent", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1}},
		{"pending", queue.Refuse, queue.ErrDuplicate, "", queue.Counters{}},
		{"pending", queue.Keep, nil, pending, queue.Counters{}},
		{"pending", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1, Superseded: 1}},
		{"scheduled", queue.Refuse, queue.ErrDuplicate, "", queue.Counters{}},
		{"scheduled", queue.Keep, nil, pending, queue.Counters{}},
		{"scheduled", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1, Superseded: 1}},
		{"leased", queue.Refuse, queue.ErrDuplicate, "", queue.Counters{}},
		{"leased", queue.Keep, nil, claimed, queue.Counters{}},
		{"leased", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1}},
		{"returned", queue.Refuse, queue.ErrDuplicate, "", queue.Counters{}},
		{"returned", queue.Keep, nil, claimed, queue.Counters{}},
		{"returned", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1}},
		{"reaped", queue.Refuse, queue.ErrDuplicate, "", queue.Counters{}},
		{"reaped", queue.Keep, nil, claimed, queue.Counters{}},
		{"reaped", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1}},
		{"leased+pending", queue.Refuse, queue.ErrDuplicate, "", queue.Counters{}},
		{"leased+pending", queue.Keep, nil, pending, queue.Counters{}},
		{"leased+pending", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1, Superseded: 1}},
		{"returned+pending", queue.Refuse, queue.ErrDuplicate, "", queue.Counters{}},
		{"returned+pending", queue.Keep, nil, pending, queue.Counters{}},
		{"returned+pending", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1, Superseded: 1}},
		{"failed", queue.Refuse, nil, accepted, queue.Counters{Enqueued: 1}},
		{"failed", queue.Keep, nil, accepted, queue.Counters{Enqueued: 1}},
		{"failed", queue.Replace, nil, accepted, queue.Counters{Enqueued: 1}},
	} {
		t.Run(c.standing+"/"+c.how.String(), func(t *testing.T) {
			r := newRig(t)
			r.stand(c.standing)
			old, counters, next := r.slot(), r.counters(), r.st().queue("mail").next
			evidence := r.st().failedEntry("", "m")

			e, err := r.enqueue("mail", arrivalOf("m", c.how))
			r.is(err, c.refused)
			r.counted(counters, c.counted)
			if c.refused != nil || c.kept != "" {
				if now := r.slot(); now.pending != old.pending || now.claimed != old.claimed || r.d.dirty {
					t.Errorf("something moved: %+v, dirty %v; before: %+v", now, r.d.dirty, old)
				}
			}
			if c.refused != nil {
				if e != (queue.Enqueued{}) {
					t.Errorf("refused, with the result %+v", e)
				}
				return
			}
			want := queue.Enqueued{Queue: "mail", ID: "m"}
			switch now := r.slot(); {
			case c.kept == pending:
				want.Generation, want.Revision, want.Kept = old.pending.gen.String(), r.base.revision, true
			case c.kept == claimed:
				want.Generation, want.Revision, want.Kept = old.claimed.gen.String(), r.base.revision, true
			default:
				want.Generation, want.Revision = now.pending.gen.String(), r.base.revision+1
				if now.claimed != old.claimed {
					t.Errorf("the claimed generation was touched: %+v, before: %+v", now.claimed, old.claimed)
				}
				if now.pending.seq != next || now.pending.attempts != 0 || now.pending.gen.commit != r.d.st.commit {
					t.Errorf("the newcomer is %+v, want the sequence %d and this commit", *now.pending, next)
				}
			}
			if e != want {
				t.Errorf("got %+v, want %+v", e, want)
			}
			if r.st().failedEntry("", "m") != evidence {
				t.Error("the failed message was touched")
			}
			r.commit()
		})
	}
}

func TestEnqueueRefusalSaysWhere(t *testing.T) {
	for standing, word := range map[string]string{
		"pending": "pending", "leased": "processing", "returned": "pending", "leased+pending": "processing", "returned+pending": "pending",
	} {
		r := newRig(t)
		r.stand(standing)
		if _, err := r.enqueue("mail", arrivalOf("m", queue.Refuse)); err == nil || !strings.Contains(err.Error(), "mail/m is "+word) {
			t.Errorf("%s: %v; want it to say %q", standing, err, word)
		}
	}
}

// An answer that rests on this very commit says so: it is durable with it, not before.
func TestEnqueueKeptInTheSameCommit(t *testing.T) {
	r := newRig(t)
	first, err := r.enqueue("mail", arrivalOf("m", queue.Keep))
	r.is(err, nil)
	second, err := r.enqueue("mail", arrivalOf("m", queue.Keep))
	r.is(err, nil)
	if first.Kept || !second.Kept || second.Generation != first.Generation || second.Revision != r.base.revision+1 {
		t.Errorf("got %+v and %+v", first, second)
	}
}

func TestEqualBytesAreTwoGenerations(t *testing.T) {
	r := newRig(t)
	seen := map[string]bool{}
	for range 2 {
		for range 3 {
			e, err := r.enqueue("mail", arrivalOf("m", queue.Replace))
			r.is(err, nil)
			if seen[e.Generation] {
				t.Fatalf("generation %s comes twice", e.Generation)
			}
			seen[e.Generation] = true
		}
		r.commit()
	}
}

func TestEnqueueKeepsWhatTheMessageSays(t *testing.T) {
	r := newRig(t)
	a := arrival{id: "m", payload: []byte(" 1e400\n"), notBefore: 1_764_500_060_000, key: `chat "42"`}
	_, err := r.enqueue("mail", a)
	r.is(err, nil)
	r.commit()
	p := r.slot().pending
	if p.notBefore != a.notBefore || p.key != a.key || p.enqueued != rigStart.Wall.UnixMilli() || p.size != 7 || p.sum != checksum(a.payload) {
		t.Errorf("got %+v", *p)
	}
	r.gauged(0, 1, 0, 0, 0)
}

// A batch is all or nothing, and its refusal names every message that was refused.
func TestEnqueueAllOrNothing(t *testing.T) {
	ok := func(id string) arrival { return arrivalOf(id, queue.Refuse) }
	for _, c := range []struct {
		name    string
		batch   []arrival
		bound   int64
		refused []int
		err     error
	}{
		{"all are new", []arrival{ok("a"), ok("b"), ok("c")}, roomy, nil, nil},
		{"the first is live", []arrival{ok("m"), ok("b")}, roomy, []int{0}, queue.ErrDuplicate},
		{"the last is live", []arrival{ok("a"), ok("b"), ok("m")}, roomy, []int{2}, queue.ErrDuplicate},
		{"one ID twice", []arrival{ok("a"), ok("b"), ok("a")}, roomy, []int{2}, queue.ErrDuplicate},
		{"several", []arrival{ok("m"), ok("b"), ok("b"), ok("bystander")}, roomy, []int{0, 2, 3}, queue.ErrDuplicate},
		{"after a message was superseded", []arrival{arrivalOf("m", queue.Replace), ok("m")}, roomy, []int{1}, queue.ErrDuplicate},
		{"one ID twice, replaced", []arrival{ok("a"), arrivalOf("a", queue.Replace)}, roomy, nil, nil},
		{"one ID twice, kept", []arrival{ok("a"), arrivalOf("a", queue.Keep), arrivalOf("m", queue.Keep)}, roomy, nil, nil},
		{"no room for the last", []arrival{ok("a"), ok("b")}, 3 * slotBytes, []int{1}, queue.ErrFull},
	} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/draft begun %v", c.name, begun), func(t *testing.T) {
				r := newRig(t)
				r.stand("pending")
				d := r.open()
				if begun {
					_, err := r.enqueue("mail", ok("before"))
					r.is(err, nil)
					d.queue("other").paused = true
				}
				bound := c.bound
				if bound != roomy {
					bound += d.bytes - slotBytes
				}
				before := traceOf(d)
				var out []queue.Enqueued
				err := r.apply("enqueueAll", func(d *draft) (err error) { // which looks for a trace
					out, err = d.enqueueAll("mail", c.batch, bound)
					return err
				})
				if c.refused == nil {
					r.is(err, nil)
					if len(out) != len(c.batch) {
						t.Fatalf("%d results for %d messages", len(out), len(c.batch))
					}
					for i, e := range out {
						if e.ID != c.batch[i].id {
							t.Errorf("result %d is of %s", i, e.ID)
						}
					}
					r.commit()
					return
				}
				var batch *queue.BatchError
				if r.is(err, c.err); !errors.As(err, &batch) || out != nil {
					t.Fatalf("got %v and %v, want a *queue.BatchError", out, err)
				}
				var at []int
				for _, x := range batch.Refused {
					at = append(at, x.Index)
				}
				if fmt.Sprint(at) != fmt.Sprint(c.refused) {
					t.Errorf("refused are %v, want %v", at, c.refused)
				}
				if d.dirty != begun {
					t.Errorf("the draft is dirty: %v", d.dirty)
				}

				// What comes after a refused batch is as if the batch had never been.
				e, err := r.enqueue("mail", ok("after"))
				r.is(err, nil)
				if want := (generation{d.st.commit, before.index}).String(); e.Generation != want {
					t.Errorf("the next generation is %s, want %s", e.Generation, want)
				}
				r.commit()
				q := r.base.queue("mail")
				free := q.line.free
				if p := free[len(free)-1]; p.id != "after" || int(p.seq) != len(free)-1 {
					t.Errorf("the line is %v", free)
				}
			})
		}
	}
}

func TestEnqueueFull(t *testing.T) {
	a := arrivalOf("m", queue.Refuse)
	a.key = "chat"
	grows := int64(len("m") + 2*len("chat") + slotBytes)
	for _, standing := range []string{"absent", "pending", "leased"} {
		t.Run(standing, func(t *testing.T) {
			r := newRig(t)
			r.stand(standing)
			a := a
			a.ifExists = queue.Replace
			d := r.open()
			err := r.apply("enqueue", func(d *draft) error {
				_, err := d.enqueue("mail", a, d.bytes+grows-1)
				return err
			})
			r.is(err, queue.ErrFull)
			err = r.apply("enqueue", func(d *draft) error {
				_, err := d.enqueue("mail", a, d.bytes+grows)
				return err
			})
			r.is(err, nil)
			if d.bytes != r.size+grows {
				t.Errorf("the draft counts %d bytes, want %d", d.bytes, r.size+grows)
			}
		})
	}
	t.Run("a new queue counts", func(t *testing.T) {
		r := newRig(t)
		r.put("bystander")
		err := r.apply("enqueue", func(d *draft) error {
			_, err := d.enqueue("news", a, d.bytes+grows)
			return err
		})
		r.is(err, queue.ErrFull)
	})
	t.Run("a live message is kept although the store is full", func(t *testing.T) {
		r := newRig(t)
		r.put("m")
		err := r.apply("enqueue", func(d *draft) error {
			_, err := d.enqueue("mail", arrivalOf("m", queue.Keep), 1)
			return err
		})
		r.is(err, nil)
	})
}

// The bound holds only if what an enqueue is counted for is never less than what it
// takes.
func TestEnqueueIsNeverCountedShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t)
		r.now.Wall = r.now.Wall.AddDate(8000, 0, 0)
		for range rapid.IntRange(1, 3).Draw(t, "commits") {
			for range rapid.IntRange(1, 5).Draw(t, "messages") {
				name := rapid.SampledFrom([]string{"mail", strings.Repeat("long/", 30) + "name"}).Draw(t, "queue")
				a := arrival{id: drawName(t, queue.CheckID), payload: []byte("1"), key: drawWord(t), ifExists: queue.Replace, notBefore: maxMillis}
				if _, err := r.enqueue(name, a); err != nil {
					t.Fatal(err)
				}
			}
			d := r.d
			if r.commit(); r.size > d.bytes {
				t.Fatalf("the state takes %d bytes and was counted as %d", r.size, d.bytes)
			}
		}
	})
}
