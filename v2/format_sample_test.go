//go:build unix

package holdfast

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// namedToken gives a token that looks random and is the same in every run.
func namedToken(name string) token {
	sum := sha256.Sum256([]byte(name))
	return token(sum[:16])
}

// sampleObject is an object of the sample: three messages committed together.
const sampleObject = `[{"to":"ann"},{"to":"bob"},"c"]`

// sampleState is the worked example of docs/format-v2.md. It has something of
// everything that a state can hold.
func sampleState() *state {
	batch, alone := namedToken("object 1"), namedToken("object 2")
	first, second := namedToken("commit 1"), namedToken("commit 2")
	at := func(object token, off int64, payload string) ref {
		return ref{object: object, off: off, size: int64(len(payload)), sum: checksum([]byte(payload)), enqueued: 1767323045678}
	}
	gen := func(r ref, commit token, index uint32, seq uint64) ref {
		r.gen, r.seq = generation{commit, index}, seq
		return r
	}

	ann := gen(at(batch, 1, `{"to":"ann"}`), first, 0, 1)
	bob := gen(at(batch, 14, `{"to":"bob"}`), first, 1, 2)
	bob.attempts, bob.lapses, bob.lastError = 1, 1, "its \"holder\"\ndied"
	old := gen(at(batch, 27, `"c"`), first, 2, 3)
	old.attempts, old.excused = 3, 1
	newer := gen(at(alone, 0, ` {"urgent":true}`), second, 0, 4)
	newer.notBefore, newer.key = 1767326645678, "chat-42"
	out := gen(at(namedToken("object 3"), 0, "1e400"), second, 1, 1)
	out.attempts = 1
	bad := gen(at(namedToken("object 4"), 0, "[]"), first, 3, 5)
	bad.attempts, bad.lastError = 20, "smtp: 550 ünknown"
	damaged := gen(at(namedToken("object 5"), 0, "null"), second, 2, 6)
	damaged.lastError = "damaged payload: its object is missing"

	st := &state{
		commit: namedToken("commit 71"), store: namedToken("store"), revision: 71,
		settings: Settings{OnDeadOwner: Stop}, fence: 25, recoveries: 1,
		resolved: []outcome{{namedToken("commit 58"), 58}},
		queues: []*queueState{
			{
				name: "mail", next: 7,
				counters: queue.Counters{Enqueued: 6, Claimed: 24, Retried: 20, Released: 1, Reaped: 1, Failed: 2, Damaged: 1},
				slots: []*slot{
					{id: "ann", pending: &ann},
					{id: "bob", claimed: &claim{ref: bob, returned: reaped}},
					{id: "carol", pending: &newer, claimed: &claim{ref: old, lease: lease{
						deadline: 1767323345678, bootID: "6f1c2a34-0d1e-4c55-9a77-2d1b8f0e9c11", bootEnds: 912345,
						holder: namedToken("holder"), label: "worker 3", fence: 24,
					}}},
				},
			},
			{
				name: "mail/intake", next: 2, paused: true, cursor: "offset=18", turn: "chat-42", failedNS: "intake",
				counters: queue.Counters{Enqueued: 1, Claimed: 1},
				slots:    []*slot{{id: "x_1", claimed: &claim{ref: out, lease: lease{fence: 25}}}},
			},
		},
		failed: []*failedSpace{
			{name: "", entries: []*failedEntry{
				{name: "dan", queue: "mail", id: "dan", ref: bad, at: 1767323099000},
				{name: "dan~" + damaged.gen.String(), queue: "mail", id: "dan", ref: damaged, at: 1767323100000},
			}},
			{name: "intake"},
		},
	}
	for _, q := range st.queues {
		q.buildLine()
	}
	return st
}

// sampleChain gives two states of which the second was committed after the first, by a claim,
// in a store with spares.
func sampleChain() (older, newer *state) {
	ann := ref{object: namedToken("object 2"), off: 0, size: 16, sum: checksum([]byte(` {"urgent":true}`)), enqueued: 1767323045678, gen: generation{namedToken("commit 3"), 0}}
	older = &state{
		commit: namedToken("commit 3"), after: namedToken("creation"), store: namedToken("store"), revision: 3, exchange: true,
		settings: Settings{OnDeadOwner: Stop},
		queues:   []*queueState{{name: "mail", next: 1, counters: queue.Counters{Enqueued: 1}, slots: []*slot{{id: "ann", pending: &ann}}}},
	}
	out := ann
	out.attempts = 1
	newer = &state{
		commit: namedToken("commit 4"), after: older.commit, store: older.store, revision: 4, exchange: true,
		settings: older.settings, fence: 1,
		queues: []*queueState{{
			name: "mail", next: 1, counters: queue.Counters{Enqueued: 1, Claimed: 1},
			slots: []*slot{{id: "ann", claimed: &claim{ref: out, lease: lease{deadline: 1767323345678, fence: 1}}}},
		}},
	}
	for _, st := range []*state{older, newer} {
		st.queues[0].buildLine()
	}
	return older, newer
}

// Draws of random sound states.

func drawToken(t *rapid.T) token {
	return token(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "token"))
}

var (
	numbers = rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(0, maxNumber), rapid.Just(uint64(maxNumber)))
	runes   = rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("\"\\/<>&\x00\x1f\n\t\x7f\u2028\ufffd\U0001f600az09{}[],:")))
	names   = rapid.StringMatching(`[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}`)
)

func drawName(t *rapid.T, check func(string) error) string {
	return names.Filter(func(s string) bool { return check(s) == nil }).Draw(t, "name")
}

func drawText(t *rapid.T, most int) string {
	return rapid.StringOfN(runes, 0, -1, most).Draw(t, "text")
}

func drawWord(t *rapid.T) string {
	return rapid.StringOfN(runes, 0, -1, queue.MaxNameBytes).
		Filter(func(s string) bool { return queue.CheckText("word", s) == nil }).Draw(t, "word")
}

// A drawer draws references that have nothing in common.
type drawer struct {
	*rapid.T
	commits, objects []token
	free             []int64 // the end of what is taken of each object
	index            uint32
}

func newDrawer(t *rapid.T) *drawer {
	d := &drawer{T: t}
	for range 3 {
		d.commits = append(d.commits, drawToken(t))
		d.objects = append(d.objects, drawToken(t))
	}
	d.free = make([]int64, len(d.objects))
	return d
}

func (d *drawer) times() int64 { return int64(numbers.Draw(d.T, "time")) }

func (d *drawer) ref(seq uint64, attempts uint64) ref {
	object := rapid.IntRange(0, len(d.objects)-1).Draw(d.T, "object")
	off := d.free[object] + rapid.Int64Range(0, 2).Draw(d.T, "gap")
	size := rapid.Int64Range(1, 1<<20).Draw(d.T, "size")
	d.free[object] = off + size
	d.index += rapid.Uint32Range(1, 100).Draw(d.T, "step")
	r := ref{
		gen:    generation{rapid.SampledFrom(d.commits).Draw(d.T, "commit"), d.index},
		object: d.objects[object], off: off, size: size,
		sum: rapid.Uint32().Draw(d.T, "sum"), seq: seq, enqueued: d.times(),
		attempts: attempts, notBefore: d.times(), key: drawWord(d.T), lastError: drawText(d.T, maxLastError),
	}
	r.excused = rapid.Uint64Range(0, attempts).Draw(d.T, "excused")
	r.lapses = rapid.Uint64Range(0, attempts-r.excused).Draw(d.T, "lapses")
	return r
}

func (d *drawer) lease() lease {
	l := lease{deadline: d.times(), label: drawWord(d.T), fence: numbers.Draw(d.T, "fence")}
	if rapid.Bool().Draw(d.T, "boot") {
		l.bootID = rapid.StringOfN(runes, 1, -1, maxWord).Draw(d.T, "boot id")
		l.bootEnds = d.times()
	}
	if rapid.Bool().Draw(d.T, "held") {
		l.holder = drawToken(d.T)
	}
	return l
}

func (d *drawer) attempts() uint64 { return max(1, numbers.Draw(d.T, "attempts")) }

func (d *drawer) slot(id string, seq *uint64) *slot {
	next := func() uint64 {
		*seq += rapid.Uint64Range(1, 3).Draw(d.T, "seq")
		return *seq
	}
	s := &slot{id: id}
	sides := rapid.IntRange(1, 3).Draw(d.T, "sides")
	if sides != 2 {
		r := d.ref(next(), 0)
		s.pending = &r
	}
	if sides != 1 {
		back := returned(rapid.IntRange(0, int(reprocessed)).Draw(d.T, "back"))
		attempts := d.attempts()
		if back == reprocessed && rapid.Bool().Draw(d.T, "damaged before its first claim") {
			attempts = 0
		}
		s.claimed = &claim{ref: d.ref(next(), attempts), returned: back}
		switch c := s.claimed; { // what is out is neither excused nor lapsed, what was reaped is
		case back == leased:
			c.excused = min(c.excused, c.attempts-1)
			c.lapses = min(c.lapses, c.attempts-1-c.excused)
		case back == reaped && c.lapses == 0:
			c.excused, c.lapses = min(c.excused, c.attempts-1), 1
		}
		if back == leased || back == reaped && rapid.Bool().Draw(d.T, "its lease is kept") {
			s.claimed.lease = d.lease()
		}
	}
	return s
}

func (d *drawer) queue(name string) *queueState {
	q := &queueState{name: name, paused: rapid.Bool().Draw(d.T, "paused"), cursor: drawText(d.T, maxCursor), turn: drawWord(d.T)}
	if rapid.Bool().Draw(d.T, "namespace") {
		q.failedNS = drawName(d.T, queue.CheckQueue)
	}
	for _, n := range counts(&q.counters) {
		*n = numbers.Draw(d.T, "counter")
	}
	ids := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string { return drawName(t, queue.CheckID) }), 0, 8, rapid.ID).Draw(d.T, "ids")
	slices.Sort(ids)
	for _, id := range ids {
		q.slots = append(q.slots, d.slot(id, &q.next))
	}
	q.next++
	q.buildLine()
	return q
}

func drawNames(t *rapid.T, most int) []string {
	all := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string { return drawName(t, queue.CheckQueue) }), 0, most, rapid.ID).Draw(t, "names")
	slices.Sort(all)
	return all
}

func drawState(t *rapid.T) *state {
	d := newDrawer(t)
	st := &state{
		commit: drawToken(t), store: drawToken(t),
		revision:   rapid.OneOf(rapid.Uint64Min(1), rapid.Uint64Range(1, 3)).Draw(t, "revision"),
		settings:   Settings{rapid.SampledFrom([]OnDeadOwner{Stop, AutoRecover}).Draw(t, "on dead owner")},
		fence:      numbers.Draw(t, "fence"),
		recoveries: numbers.Draw(t, "recoveries"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "resolved") {
		st.resolved = append(st.resolved, outcome{drawToken(t), rapid.Uint64Min(1).Draw(t, "revision")})
	}
	for _, name := range drawNames(t, 3) {
		st.queues = append(st.queues, d.queue(name))
	}
	for _, space := range append([]string{""}, drawNames(t, 2)...) {
		f := &failedSpace{name: space}
		for i, id := range drawNames(t, 3) {
			name := id
			if i > 0 {
				name = fmt.Sprintf("%s~%s.%d", id, d.commits[0], i)
			}
			attempts := numbers.Draw(t, "attempts")
			f.entries = append(f.entries, &failedEntry{name: name, queue: drawName(t, queue.CheckQueue), id: id, ref: d.ref(numbers.Draw(t, "seq"), attempts), at: d.times()})
		}
		slices.SortFunc(f.entries, func(a, b *failedEntry) int { return compareText(a.name, b.name) })
		st.failed = append(st.failed, f)
	}
	drawImports(t, st)
	return st
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
