//go:build unix

package holdfast

import (
	"bytes"

	"example.com/holdfast/queue"
)

// decodeState reads state.json of the store want. It takes only what encodeState
// writes, and of that only what is sound: see the refusals in docs/format-v2.md.
// Any error is a *CorruptError. Nothing of the state lies in b.
func decodeState(b []byte, file string, want token) (*state, error) {
	d := decoder{scanner: newScanner(b)}
	d.seen = make(map[generation]int, len(b)/refBytes)
	d.ranges = make([]extent, 0, len(b)/refBytes)
	d.sealed = map[token]bool{}

	st := d.state(want)
	d.overlaps()
	if d.err != nil {
		d.halfWritten()
		return nil, d.corrupt(file)
	}
	for _, q := range st.queues {
		q.buildLine()
	}
	return st, nil
}

// A decoder reads a state and remembers what must not come twice.
type decoder struct {
	scanner
	seen   map[generation]int // where each was named first
	ranges []extent
	places []place        // of one queue
	sealed map[token]bool // runs

	uses      feature
	importing map[string]token // the open import of each queue
}

func (d *decoder) state(want token) *state {
	st := new(state)
	o := d.open(stateFields)
	at := d.i
	h := d.head(&o)
	if d.err == nil && h.store != want {
		d.final(at, ErrCorrupt, "the state of store %s, in store %s", h.store, want)
	}
	st.commit, st.store, st.revision = h.commit, h.store, h.revision

	o.must("features")
	at = d.i
	uses := d.features()
	d.uses = uses
	st.exchange = uses&sparesFeature != 0
	if o.may("after") {
		at := d.i
		if st.after = d.token("after"); st.after == (token{}) {
			d.fail(at, "after: a token of sixteen zero bytes")
		} else if !st.exchange {
			d.fail(at, `the field "after" without the feature "spares"`)
		}
	}
	o.must("settings")
	st.settings = d.settings()
	o.must("fence")
	st.fence = d.number()
	o.must("recoveries")
	st.recoveries = d.number()
	o.must("resolved")
	d.lit("[")
	for first := true; d.more(first); first = false {
		if len(st.resolved) == maxResolved {
			d.fail(d.i, "more than %d resolved commits", maxResolved)
			break
		}
		d.lit("[")
		commit := d.token("resolved commit")
		d.lit(",")
		st.resolved = append(st.resolved, outcome{commit, d.revision()})
		d.lit("]")
	}
	if at, imports := d.i, uses&importFeature != 0; imports != o.may("imports") {
		d.fail(at, `the feature "import" and the field "imports": both or neither`)
	} else if imports {
		st.imports = d.imports()
	}
	o.must("queues")
	d.lit("[")
	for first := true; d.more(first); first = false {
		at := d.i
		q := d.queue()
		if n := len(st.queues); n > 0 && q.name <= st.queues[n-1].name {
			d.fail(at, "queue %q after %q: not sorted, or twice", q.name, st.queues[n-1].name)
		}
		st.queues = append(st.queues, q)
	}
	d.importsHaveQueues(st)
	o.must("failed")
	d.lit("[")
	for first := true; d.more(first); first = false {
		at := d.i
		f := d.space()
		if n := len(st.failed); n > 0 && f.name <= st.failed[n-1].name {
			d.fail(at, "failed namespace %q after %q: not sorted, or twice", f.name, st.failed[n-1].name)
		}
		st.failed = append(st.failed, f)
	}
	if uses&runsFeature != 0 && len(d.sealed) == 0 {
		d.fail(at, `the feature "runs", and no run`)
	}
	at = d.i
	if summed := o.may("sum"); summed != st.exchange {
		d.fail(at, `the feature "spares" and the field "sum": both or neither`)
	} else if summed {
		if got, want := checksum(d.b[:at]), d.checksum(); got != want {
			d.fail(at, "its first %d bytes have the checksum %08x, not %08x", at, got, want)
		}
	}
	o.must("end")
	if end := d.token("end"); d.err == nil && end != st.commit {
		d.fail(-1, "half-written: begins with commit %s and ends with %s", st.commit, end)
	}
	o.close()
	if st.exchange {
		d.endPadded()
	} else {
		d.end()
	}
	return st
}

// halfWritten replaces a fault by the better one that a file which does not end
// with the commit that it begins with is a half-read or half-written one. What is
// between need not make sense then.
func (d *decoder) halfWritten() {
	const (
		before = `{"commit":"`
		after  = "\"}\n"
	)
	if d.sure || len(d.b) < len(before)+tokenChars || !bytes.HasPrefix(d.b, []byte(before)) {
		return
	}
	first, ok := parseToken(d.b[len(before):][:tokenChars])
	if !ok {
		return
	}
	body, ok := bytes.CutSuffix(withoutPadding(d.b), []byte(after))
	last, isToken := parseToken(body[max(0, len(body)-tokenChars):])
	switch {
	case !ok || !isToken:
		d.err = &CorruptError{Offset: int64(len(d.b)), Reason: "half-written: the end is missing", Err: ErrCorrupt}
	case first != last:
		d.err = nil
		d.fail(-1, "half-written: begins with commit %s and ends with %s", first, last)
	}
}

func (d *decoder) settings() Settings {
	o := d.open(settingFields)
	o.must("on_dead_owner")
	at := d.i
	set := Settings{OnDeadOwner: OnDeadOwner(d.string("on_dead_owner", maxWord))}
	if err := set.check(); d.err == nil && err != nil {
		d.fail(at, "%v", err)
	}
	o.close()
	return set
}

func (d *decoder) queue() *queueState {
	q := new(queueState)
	o := d.open(queueFields)
	o.must("name")
	q.name = d.name("queue name", queue.MaxQueueBytes, queue.CheckQueue)
	o.must("next")
	q.next = d.number()
	o.must("counters")
	c := d.open(counterFields)
	for i, n := range counts(&q.counters) {
		c.must(counterFields.names[i])
		*n = d.number()
	}
	c.close()
	if o.may("paused") {
		d.lit("true")
		q.paused = true
	}
	if o.may("cursor") {
		q.cursor = d.some("cursor", maxCursor)
	}
	if o.may("turn") {
		q.turn = d.word("turn")
	}
	if o.may("failed_in") {
		q.failedNS = d.name("failed namespace", queue.MaxQueueBytes, queue.CheckQueue)
	}
	if at := d.i; o.may("runs") {
		if d.runs(q); d.uses&runsFeature == 0 {
			d.fail(at, `runs, without the feature "runs"`)
		}
	}
	o.must("slots")
	d.lit("[")
	d.places = d.places[:0]
	for first := true; d.more(first); first = false {
		at := d.i
		s := d.slot(q)
		if n := len(q.slots); n > 0 && s.id <= q.slots[n-1].id {
			d.fail(at, "ID %q after %q: not sorted, or twice", s.id, q.slots[n-1].id)
		}
		q.slots = append(q.slots, s)
	}
	d.oneSeqEach(q)
	o.close()
	return q
}

func (d *decoder) slot(q *queueState) *slot {
	s := new(slot)
	start := d.i
	d.lit("[")
	s.id = d.name("ID", queue.MaxNameBytes, queue.CheckID)
	d.lit(",")
	if d.peek('n') {
		d.lit("null,") // one side must be there
	} else {
		s.pending = new(ref)
		at := d.i
		o := d.open(refFields)
		d.ref(&o, s.pending)
		o.close()
		if s.pending.attempts > 0 {
			d.fail(at, "ID %q: pending, with %d attempts", s.id, s.pending.attempts)
		}
		d.live(at, q, s.id, s.pending)
		d.marked(at, q.name, s.id, s.pending)
	}
	if s.pending == nil || d.peek(',') {
		if s.pending != nil {
			d.lit(",")
		}
		at := d.i
		s.claimed = d.claim()
		if s.claimed.attempts == 0 && s.claimed.returned != reprocessed { // damaged before its first claim
			d.fail(at, "ID %q: claimed, with no attempt", s.id)
		}
		switch c := s.claimed; {
		case c.returned == reaped && c.lapses == 0:
			d.fail(at, "ID %q: reaped, with no lapse", s.id)
		case c.returned == leased && c.excused+c.lapses >= c.attempts && c.attempts > 0:
			d.fail(at, "ID %q: leased, with %d excused and %d lapses of %d attempts", s.id, c.excused, c.lapses, c.attempts)
		case !c.mark.zero() && c.returned != released:
			d.fail(at, "ID %q: of an open import, and not released", s.id)
		}
		d.live(at, q, s.id, &s.claimed.ref)
		d.marked(at, q.name, s.id, &s.claimed.ref)
	}
	d.lit("]")
	if d.err == nil {
		s.enc = exactly(d.b[start:d.i])
	}
	return s
}

func (d *decoder) claim() *claim {
	c := new(claim)
	o := d.open(claimFields)
	d.ref(&o, &c.ref)
	if o.may("back") {
		at := d.i
		text := d.string("back", maxWord)
		for r := reaped; r <= reprocessed; r++ {
			if string(text) == r.String() {
				c.returned = r
			}
		}
		if c.returned == leased {
			d.fail(at, "back %s: not reaped, retried, released or reprocessed", quoted(text))
		}
		if at := d.i; c.returned == reaped && o.may("lease") {
			if c.lease = d.lease(); c.lease == (lease{}) {
				d.fail(at, "a lease of nothing: it must be left out")
			}
		}
	} else {
		o.must("lease")
		c.lease = d.lease()
	}
	o.close()
	return c
}

func (d *decoder) lease() lease {
	var l lease
	o := d.open(leaseFields)
	if o.may("d") {
		l.deadline = int64(d.positive("deadline"))
	}
	if o.may("b") {
		l.bootID = d.some("boot id", maxWord)
		o.must("m")
		l.bootEnds = d.millis()
	}
	if o.may("h") {
		at := d.i
		l.holder = d.token("holder")
		if l.holder.zero() {
			d.fail(at, "a holder that is zero: it must be left out")
		}
	}
	if o.may("w") {
		l.label = d.word("label")
	}
	o.must("f")
	l.fence = d.number()
	o.close()
	return l
}

// ref reads what a pending and a claimed reference have in common.
func (d *decoder) ref(o *members, r *ref) {
	start := d.i - 1
	o.must("g")
	at := d.i
	r.gen = d.generation()
	d.once(at, r.gen)
	o.must("p")
	at = d.i
	d.lit("[")
	r.object = d.token("object")
	d.lit(",")
	r.off = d.millis()
	d.lit(",")
	r.size = d.millis()
	d.lit(",")
	r.sum = d.checksum()
	d.lit("]")
	d.extent(at, r)
	o.must("s")
	r.seq = d.number()
	o.must("t")
	r.enqueued = d.millis()
	if o.last() {
		return
	}
	if o.may("a") {
		r.attempts = d.positive("attempts")
	}
	if o.may("e") {
		r.excused = d.positive("excused")
	}
	if o.may("l") {
		r.lapses = d.positive("lapses")
	}
	if o.may("n") {
		r.notBefore = int64(d.positive("not-before"))
	}
	if o.may("k") {
		r.key = d.word("key")
	}
	if o.may("r") {
		r.lastError = d.some("last error", maxLastError)
	}
	if o.may("i") {
		at := d.i
		if r.mark = d.token("import"); r.mark.zero() {
			d.fail(at, "an import that is zero: it must be left out")
		}
	}
	if r.excused+r.lapses > r.attempts {
		d.fail(start, "%d excused and %d lapses of %d attempts", r.excused, r.lapses, r.attempts)
	}
}
