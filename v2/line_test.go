//go:build unix

package holdfast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// A lineEntry is a message that a claim may take.
type lineEntry struct {
	place
	key string
}

// claimable is the rule of queue.Message.Key, evaluated by looking at every slot. A
// candidate is a message that is not behind an older generation of its ID and that
// came back, whatever its schedule, or is due. It can be claimed when it is due and,
// if it has a key, no message of the key is leased and no candidate of it is older.
func claimable(q *queueState, millis int64) []lineEntry {
	var candidates []lineEntry
	due := map[uint64]bool{}
	out := map[string]bool{}
	for _, s := range q.slots {
		var r *ref
		switch {
		case s.claimed != nil && s.claimed.returned == leased:
			out[s.claimed.key] = true
		case s.claimed != nil:
			r = &s.claimed.ref
		case s.pending.notBefore <= millis:
			r = s.pending
		}
		if r != nil {
			candidates = append(candidates, lineEntry{place{r.seq, s.id}, r.key})
			due[r.seq] = r.notBefore <= millis
		}
	}
	slices.SortFunc(candidates, func(a, b lineEntry) int { return cmp.Compare(a.seq, b.seq) })
	var can []lineEntry
	older := map[string]bool{}
	for _, c := range candidates {
		if due[c.seq] && (c.key == "" || !out[c.key] && !older[c.key]) {
			can = append(can, c)
		}
		older[c.key] = true
	}
	return can
}

// putOff is the rule for a message that stands in the line: it is not due, or the first
// candidate of its key is not, and no message of the key is leased.
func putOff(q *queueState, of *ref, millis int64) bool {
	if of.notBefore > millis || of.key == "" {
		return of.notBefore > millis
	}
	first := of
	for _, s := range q.slots {
		r, back := s.front()
		switch {
		case r == nil && s.claimed.key == of.key:
			return false
		case r != nil && r.key == of.key && r.seq < first.seq && (back || r.notBefore <= millis):
			first = r
		}
	}
	return first.notBefore > millis
}

// rotated is the rule of queue.ClaimOptions.Fair: turn by turn, the next key after
// the one that was served last, the messages without a key coming after the last key.
func rotated(can []lineEntry, served string) []lineEntry {
	left := map[string][]lineEntry{}
	for _, e := range can {
		left[e.key] = append(left[e.key], e)
	}
	var turns []lineEntry
	for len(left) > 0 {
		keys := slices.Sorted(maps.Keys(left))
		if keys[0] == "" {
			keys = append(keys[1:], "")
		}
		next := keys[0]
		if served != "" {
			if i := slices.IndexFunc(keys, func(k string) bool { return k == "" || k > served }); i >= 0 {
				next = keys[i]
			}
		}
		turns = append(turns, left[next][0])
		if left[next] = left[next][1:]; len(left[next]) == 0 {
			delete(left, next)
		}
		served = next
	}
	return turns
}

func placesOf(entries []lineEntry) []place {
	var list []place
	for _, e := range entries {
		list = append(list, e.place)
	}
	return list
}

// lineFault says what is wrong with the line of q at a time, or nothing: it must be
// the one that is built from the slots, and deliver what the rules say.
func lineFault(q *queueState, millis int64) string {
	rebuilt := *q
	rebuilt.buildLine()
	if got, want := pictureOfLine(q, millis), pictureOfLine(&rebuilt, millis); got != want {
		return fmt.Sprintf("at %d is\n%s\nwant\n%s", millis, got, want)
	}
	now := q.at(millis)
	can := claimable(q, millis)
	if got, want := slices.Collect(now.turns(false)), placesOf(can); !slices.Equal(got, want) {
		return fmt.Sprintf("at %d delivers %v, want %v", millis, got, want)
	}
	for _, s := range q.slots {
		if r, _ := s.front(); r != nil && now.putOff(r, millis) != putOff(q, r, millis) {
			return fmt.Sprintf("at %d says that %s is put off: %v", millis, s.id, now.putOff(r, millis))
		}
	}
	if got, want := slices.Collect(now.turns(true)), placesOf(rotated(can, q.turn)); !slices.Equal(got, want) {
		return fmt.Sprintf("at %d delivers in turn after %q %v, want %v", millis, q.turn, got, want)
	}
	return ""
}

// A lineRun changes the slots of one queue at random, in drafts as transitions do, at
// times that go forward and back.
type lineRun struct {
	*rapid.T
	st      *state
	d       *draft
	unused  []uint64 // sequences
	clock   int64
	history []lineVersion
}

// A lineVersion is a published state, which nothing may change any more.
type lineVersion struct {
	st      *state
	picture string
}

const lineTimes = 12 // the clock shows 0 to lineTimes

var lineKeys = []string{"", "", "a", "b", "c"}

func newLineRun(t *rapid.T) *lineRun {
	r := &lineRun{T: t, st: &state{queues: []*queueState{{name: "mail"}}}}
	for seq := range uint64(40) {
		r.unused = append(r.unused, seq)
	}
	r.begin()
	return r
}

func (r *lineRun) time(name string) int64 { return rapid.Int64Range(0, lineTimes).Draw(r.T, name) }

func (r *lineRun) begin() {
	r.d = newDraft(r.st, token{}, instant{Wall: time.UnixMilli(r.clock)}, 0)
}

func (r *lineRun) publish() {
	r.history = append(r.history, lineVersion{r.st, r.picture(r.st)})
	r.st = r.d.st
	r.begin()
}

// drop gives the draft up.
func (r *lineRun) drop() {
	r.begin()
	r.unused = nil
	taken := map[uint64]bool{}
	for _, s := range r.st.queues[0].slots {
		if s.pending != nil {
			taken[s.pending.seq] = true
		}
		if s.claimed != nil {
			taken[s.claimed.seq] = true
		}
	}
	for seq := range uint64(40) {
		if !taken[seq] {
			r.unused = append(r.unused, seq)
		}
	}
}

func (r *lineRun) picture(st *state) string {
	q := st.queues[0]
	return pictureOfLine(q, q.line.asOf) + fmt.Sprint(len(q.slots))
}

// put gives one ID any sides.
func (r *lineRun) put() {
	q := r.d.queue("mail")
	if rapid.Bool().Draw(r.T, "advance") {
		q.advance(r.clock)
	}
	id := rapid.SampledFrom([]string{"p", "q", "r", "s", "t", "u", "v", "w"}).Draw(r.T, "id")
	var pending *ref
	var claimed *claim
	if old, _ := q.find(id); old != nil {
		pending, claimed = old.pending, old.claimed
	}
	if rapid.Bool().Draw(r.T, "change pending") {
		pending = r.side(pending)
	} else {
		var old *ref
		if claimed != nil {
			old = &claimed.ref
		}
		claimed = nil
		if ref := r.side(old); ref != nil {
			claimed = &claim{ref: *ref, returned: returned(rapid.IntRange(0, int(reprocessed)).Draw(r.T, "back"))}
		}
	}
	q.put(id, pending, claimed)
}

// side gives another side in the place of old: none, a changed one, or a new one.
func (r *lineRun) side(old *ref) *ref {
	next := ref{}
	if old != nil {
		if next = *old; rapid.Bool().Draw(r.T, "goes") {
			r.unused = append(r.unused, old.seq)
			return nil
		}
	} else {
		i := rapid.IntRange(0, len(r.unused)-1).Draw(r.T, "seq")
		next.seq = r.unused[i]
		r.unused = slices.Delete(r.unused, i, i+1)
		next.key = rapid.SampledFrom(lineKeys).Draw(r.T, "key")
	}
	next.notBefore = rapid.Custom(func(t *rapid.T) int64 {
		return max(0, rapid.Int64Range(-lineTimes, lineTimes).Draw(t, "at"))
	}).Draw(r.T, "not before")
	return &next
}

// refuse changes slots and goes back.
func (r *lineRun) refuse() {
	before, unused := r.picture(r.d.st), slices.Clone(r.unused)
	_ = r.d.atomically(func() error {
		for range rapid.IntRange(1, 3).Draw(r.T, "puts") {
			r.put()
		}
		return errUnreadable
	})
	if r.unused = unused; r.picture(r.d.st) != before {
		r.Fatalf("a refused change shows:\n%s\nbefore:\n%s", r.picture(r.d.st), before)
	}
}

func (r *lineRun) tick() {
	r.clock = r.time("clock")
	r.d.now, r.d.millis = instant{Wall: time.UnixMilli(r.clock)}, r.clock
}

// fairly makes another key the one that was served last.
func (r *lineRun) fairly() {
	r.d.queue("mail").turn = rapid.SampledFrom([]string{"", "a", "aa", "b", "c", "d"}).Draw(r.T, "served")
}

// check looks at the draft and at the published state, as of now and another time.
func (r *lineRun) check() {
	for _, st := range []*state{r.d.st, r.st} {
		q := st.queues[0]
		first := int64(0)
		at := []int64{r.clock, r.time("at")} // the whole line costs more
		for millis := int64(lineTimes + 1); millis >= 0; millis-- {
			if slices.Contains(at, millis) {
				if fault := lineFault(q, millis); fault != "" {
					r.Fatalf("the line %s", fault)
				}
			}
			yes, next := st.due(nil, instant{Wall: time.UnixMilli(millis)})
			can := len(claimable(q, millis)) > 0
			switch {
			case yes != can, yes && next != 0:
				r.Fatalf("at %d, due: %v, next at %d; want %v", millis, yes, next, can)
			case !yes && next != 0 && next <= millis, !yes && first != 0 && (next == 0 || next > first):
				r.Fatalf("at %d, the next is due at %d; want it after that, and not after %d", millis, next, first)
			}
			if can {
				first = millis
			}
		}
	}
	for _, v := range r.history {
		if got := r.picture(v.st); got != v.picture {
			r.Fatalf("a published state was changed to\n%s\nfrom\n%s", got, v.picture)
		}
	}
}

func TestLine(t *testing.T) {
	alone(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newLineRun(t)
		act := func(f func()) func(*rapid.T) { return func(*rapid.T) { f() } }
		t.Repeat(map[string]func(*rapid.T){
			"put": act(r.put), "put again": act(r.put), "put once more": act(r.put), "tick": act(r.tick), "fair": act(r.fairly),
			"publish": act(r.publish), "drop": act(r.drop), "refuse": act(r.refuse), "": act(r.check),
		})
	})
}

// When the next message becomes due, over several queues.
func TestLineDue(t *testing.T) {
	r := newRig(t)
	at := map[string]time.Duration{"a": 3 * time.Minute, "b": time.Minute, "c": 2 * time.Minute, "paused": time.Second, "empty": 0}
	for name, wait := range at {
		if wait != 0 {
			a := arrivalOf("m", queue.Refuse)
			a.notBefore = r.now.Wall.Add(wait).UnixMilli()
			_, err := r.enqueue(name, a)
			r.is(err, nil)
		}
	}
	r.pause("paused", true)
	r.setNamespace("empty", "aside")
	r.commit()
	for _, c := range []struct {
		names []string
		after time.Duration
		yes   bool
		next  time.Duration // 0: none
	}{
		{nil, 0, false, time.Minute},
		{[]string{"a", "c"}, 0, false, 2 * time.Minute},
		{[]string{"c", "a", "unknown"}, 0, false, 2 * time.Minute},
		{[]string{"a"}, 0, false, 3 * time.Minute},
		{[]string{"paused"}, time.Hour, false, 0},
		{[]string{"empty", "unknown"}, time.Hour, false, 0},
		{nil, time.Minute - time.Millisecond, false, time.Minute},
		{nil, time.Minute, true, 0},
		{[]string{"a", "c"}, time.Minute, false, 2 * time.Minute},
		{[]string{"a", "b"}, time.Minute, true, 0},
	} {
		now := r.now
		now.Wall = now.Wall.Add(c.after)
		want := int64(0)
		if c.next != 0 {
			want = r.now.Wall.Add(c.next).UnixMilli()
		}
		if yes, next := r.base.due(c.names, now); yes != c.yes || next != want {
			t.Errorf("%v after %s: %v, next at %d; want %v and %d", c.names, c.after, yes, next, c.yes, want)
		}
	}
}
