//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// crowd gives a queue in which n messages that cannot be claimed stand before five
// that can.
func crowd(n int, blocked func(q *queueState, i int)) *draft {
	d := newDraft(&state{commit: namedToken("base")}, namedToken("next"), rigStart, 0)
	q := d.queue("mail")
	for i := range n {
		blocked(q, i)
	}
	for i := range 5 {
		q.put(fmt.Sprintf("z%d", i), &ref{seq: q.next}, nil)
		q.next++
	}
	return newDraft(d.st, namedToken("claims"), rigStart, 0)
}

// A claim looks at what it takes and at nothing that waits, however much of that stands
// in front.
func TestLineLooksAtNothingThatWaits(t *testing.T) {
	next := func(q *queueState, r ref) *ref {
		r.seq = q.next
		q.next++
		return &r
	}
	later := rigStart.millis() + 1
	for name, blocked := range map[string]func(q *queueState, i int){
		"behind a leased one of their key": func(q *queueState, i int) {
			if r := next(q, ref{key: "chat"}); i == 0 {
				q.put("a", nil, &claim{ref: *r})
			} else {
				q.put(fmt.Sprintf("m%05d", i), r, nil)
			}
		},
		"behind one of their key that came back with a delay": func(q *queueState, i int) {
			if r := next(q, ref{key: "chat"}); i == 0 {
				r.notBefore = later
				q.put("a", nil, &claim{ref: *r, returned: retried})
			} else {
				q.put(fmt.Sprintf("m%05d", i), r, nil)
			}
		},
		"each behind a leased one of its key": func(q *queueState, i int) {
			key := fmt.Sprint("chat-", i/2)
			if r := next(q, ref{key: key}); i%2 == 0 {
				q.put(fmt.Sprintf("m%05d", i), nil, &claim{ref: *r})
			} else {
				q.put(fmt.Sprintf("m%05d", i), r, nil)
			}
		},
		"behind an older generation": func(q *queueState, i int) {
			older := next(q, ref{})
			q.put(fmt.Sprintf("m%05d", i), next(q, ref{}), &claim{ref: *older})
		},
		"scheduled": func(q *queueState, i int) { q.put(fmt.Sprintf("m%05d", i), next(q, ref{notBefore: later}), nil) },
		"scheduled, with one key": func(q *queueState, i int) {
			q.put(fmt.Sprintf("m%05d", i), next(q, ref{notBefore: later, key: "chat"}), nil)
		},
		"snoozed": func(q *queueState, i int) {
			q.put(fmt.Sprintf("m%05d", i), nil, &claim{ref: *next(q, ref{notBefore: later}), returned: released})
		},
	} {
		for _, fair := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fair %v", name, fair), func(t *testing.T) {
				var few float64
				for _, n := range []int{10, 10_000} {
					d := crowd(n, blocked)
					if l := &d.st.queue("mail").line; len(l.free) != 5 || len(l.heads) != 0 {
						t.Fatalf("before %d others, a claim looks among %d messages and the first of %d keys", n, len(l.free), len(l.heads))
					}
					q := d.st.queue("mail").at(d.millis)
					looking := testing.AllocsPerRun(10, func() {
						taken := 0
						for range q.turns(fair) {
							if taken++; taken == 3 {
								break
							}
						}
					})
					if few == 0 {
						few = looking
					}
					if looking > few {
						t.Errorf("looking for 3 behind %d others allocates %v times, behind 10 %v times", n, looking, few)
					}
					looks := 0
					c, err := d.claim("mail", taking{max: 3, lease: time.Minute, fair: fair}, func(*ref) ([]byte, string, error) {
						looks++
						return nil, "", nil
					})
					if err != nil || len(c.Deliveries) != 3 || c.Deliveries[0].Receipt.ID != "z0" || looks != 3 {
						t.Errorf("before %d others: %d deliveries after %d looks, %v", n, len(c.Deliveries), looks, err)
					}
				}
			})
		}
	}
}

// What many messages of one key cost in one commit grows as their number does. It is
// counted in bytes; so no other test may run beside this one.
func TestLineOfOneKeyIsNotQuadratic(t *testing.T) {
	alone(t)
	arrivals := func(n int) []arrival {
		as := make([]arrival, n)
		for i := range as {
			as[i] = arrival{id: fmt.Sprintf("m%06d", i), payload: []byte("1"), key: "chat"}
		}
		return as
	}
	load := func(*ref) ([]byte, string, error) { return []byte("1"), "", nil }
	bytesFor := func(n int, do func(d *draft)) uint64 {
		d := newDraft(&state{commit: namedToken("base"), store: namedToken("store")}, namedToken("next"), rigStart, 0)
		if _, err := d.enqueueAll("mail", arrivals(n), roomy); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do(newDraft(d.st, namedToken("more"), rigStart, 0))
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	oneByOne := func(end func(d *draft, r queue.Receipt) error) func(n int) func(d *draft) {
		return func(n int) func(d *draft) {
			return func(d *draft) {
				for i := range n {
					c, err := d.claim("mail", taking{max: 10, lease: time.Minute}, load)
					if err != nil || len(c.Deliveries) != 1 {
						t.Fatalf("claim %d: %+v, %v", i, c, err)
					}
					if err := end(d, c.Deliveries[0].Receipt); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	for name, act := range map[string]func(n int) func(d *draft){
		"enqueue": func(n int) func(d *draft) {
			return func(d *draft) {
				as := arrivals(n)
				for i := range as {
					as[i].id = "n" + as[i].id
				}
				if _, err := d.enqueueAll("mail", as, roomy); err != nil {
					t.Fatal(err)
				}
			}
		},
		"claim and ack one by one":     oneByOne((*draft).ack),
		"claim and release one by one": oneByOne(func(d *draft, r queue.Receipt) error { return d.release(r, 0) }),
		"load and ack from the last": func(n int) func(d *draft) {
			return func(d *draft) {
				for i := range n {
					x, err := d.load("mail", fmt.Sprintf("m%06d", n-1-i), taking{max: 1, lease: time.Minute}, load, nil)
					if err == nil {
						err = d.ack(x.Receipt)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		},
	} {
		const few, many = 5_000, 20_000
		one, four := bytesFor(few, act(few)), bytesFor(many, act(many))
		if four > 8*one {
			t.Errorf("%s: %d messages of one key take %d bytes, %d take %d", name, few, one, many, four)
		}
	}
}

// Many updates that share a commit copy a deep queue once and not each: so do workers
// that ack and claim the next.
func TestUpdatesOfOneCommitCopyTheQueueOnce(t *testing.T) {
	const deep = 20000
	load := func(*ref) ([]byte, string, error) { return []byte("1"), "", nil }
	begin := newDraft(&state{commit: namedToken("base"), store: namedToken("store")}, namedToken("next"), rigStart, 0)
	as := make([]arrival, deep)
	for i := range as {
		as[i] = arrival{id: fmt.Sprintf("m%06d", i), payload: []byte("1")}
	}
	if _, err := begin.enqueueAll("mail", as, roomy); err != nil {
		t.Fatal(err)
	}
	held, err := begin.claim("mail", taking{max: 64, lease: time.Minute}, load)
	if err != nil {
		t.Fatal(err)
	}
	begin.seal()
	bytesFor := func(updates int) uint64 {
		v := &view{draft: newDraft(begin.st, namedToken("more"), rigStart, 0)}
		claim := func(v *view) (out queue.Outcome, err error) {
			out.Claimed, err = v.draft.claim("mail", taking{max: 1, lease: time.Minute}, load)
			return out, err
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, d := range held.Deliveries[:updates] {
			ack, err := settlement(queue.AckChange{Receipt: d.Receipt})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.update([]step{ack, claim}); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	one, many := bytesFor(1), bytesFor(64)
	t.Logf("%d bytes for one update, %d for 64", one, many)
	if many > 2*one {
		t.Errorf("64 updates took %d bytes, one took %d", many, one)
	}
}

// A published state does not keep alive what its commit replaced.
func TestPublishedStatesAreSealed(t *testing.T) {
	disk, s, _ := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"), small("b"))
	held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 2})
	update := func(i int) func() error {
		return func() error {
			_, err := s.Update(t.Context(), queue.ExtendChange{Receipt: held[i].Receipt}, queue.ClaimChange{Queue: "mail"})
			return err
		}
	}
	// In one commit: the second finds the queue to be its draft's own when it begins.
	mustDo(t, errors.Join(together(t, disk, s, update(0), update(1))...))
	mustDo(t, s.look(t.Context(), func(v *view) error {
		for _, q := range v.draft.base.queues {
			if q.undo != nil {
				t.Errorf("queue %s still notes what is put into it", q.name)
			}
		}
		return nil
	}))
}
