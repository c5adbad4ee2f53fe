//go:build unix

package holdfast

import (
	"encoding/hex"
	"slices"
	"strconv"
)

// The feature "runs": a queue's references to its runs, and the runs themselves.
//
//	RUN        {"o":["OBJECT",SIZE,"CRC32C","CRC32C"],"c":COUNT,"s":[FIRST,LAST],"n":[FROM,TO],"x":"HEX"}
//	run.json   {"filter":"HEX","slots":[["ID",REF],…]}⏎

var (
	runFields     = newFields("o", "c", "s", "n", "x")
	runFileFields = newFields("filter", "slots")
)

// maxRun is how many members a run has at most.
const maxRun = 4096

// maxRunBytes bounds run.json: more than maxRun members can take.
const maxRunBytes = 4 << 20

// leastMember is less than any member takes.
const leastMember = 100

// appendRuns writes nothing where there is none.
func appendRuns(b []byte, runs []*run) []byte {
	if len(runs) == 0 {
		return b
	}
	b = append(b, `,"runs":[`...)
	for i, r := range runs {
		b = appendComma(b, i)
		if r.enc == nil {
			start := len(b)
			b = appendRun(b, r)
			r.enc = exactly(b[start:])
			continue
		}
		b = append(b, r.enc...)
	}
	return append(b, ']')
}

func appendRun(b []byte, r *run) []byte {
	b = appendSealed(b, &r.sealedObject)
	b = append(b, `,"s":[`...)
	b = strconv.AppendUint(b, r.first, 10)
	b = append(b, ',')
	b = strconv.AppendUint(b, r.last, 10)
	b = append(b, ']')
	if r.from != 0 {
		b = append(b, `,"n":[`...)
		b = strconv.AppendInt(b, r.from, 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, r.to, 10)
		b = append(b, ']')
	}
	return append(appendGone(b, r.gone), '}')
}

// appendSealed leaves the object open.
func appendSealed(b []byte, o *sealedObject) []byte {
	b = append(b, `{"o":["`...)
	b = o.name.append(b)
	b = append(b, `",`...)
	b = strconv.AppendInt(b, o.size, 10)
	b = append(b, ',')
	b = appendChecksum(b, o.sum)
	b = append(b, ',')
	b = appendChecksum(b, o.filterSum)
	b = append(b, `],"c":`...)
	return strconv.AppendInt(b, int64(o.count), 10)
}

func appendGone(b, gone []byte) []byte {
	if gone == nil {
		return b
	}
	b = append(b, `,"x":"`...)
	b = hex.AppendEncode(b, gone)
	return append(b, '"')
}

// appendChecksum writes eight lower-case hexadecimal digits in quotes.
func appendChecksum(b []byte, sum uint32) []byte {
	b = append(b, '"')
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[sum>>shift&15])
	}
	return append(b, '"')
}

// runs reads the references of a queue.
func (d *decoder) runs(q *queueState) {
	d.lit("[")
	last, due := uint64(0), false // the last sequence in runs that are not scheduled, if there is one
	for first := true; d.more(first); first = false {
		at := d.i
		r := d.run()
		if d.err != nil {
			return
		}
		switch n := len(q.runs); {
		case d.sealed[r.name]:
			d.fail(at, "run %s twice", r.name)
		case n > 0 && r.first <= q.runs[n-1].first:
			d.fail(at, "run %s: not sorted by first sequence", r.name)
		case r.last >= q.next:
			d.fail(at, "run %s: sequence %d, but the queue's next is %d", r.name, r.last, q.next)
		case r.from == 0 && due && r.first <= last:
			d.fail(at, "run %s begins with sequence %d, within another", r.name, r.first)
		case r.from == 0:
			last, due = r.last, true
		}
		d.sealed[r.name] = true
		q.runs = append(q.runs, r)
	}
	if d.err == nil && len(q.runs) == 0 {
		d.fail(d.i, "an empty list of runs: it must be left out")
	}
}

func (d *decoder) run() *run {
	r := new(run)
	start := d.i
	o := d.open(runFields)
	r.sealedObject = d.sealedObject(&o)
	o.must("s")
	at := d.i
	d.lit("[")
	r.first = d.number()
	d.lit(",")
	r.last = d.number()
	d.lit("]")
	if o.may("n") {
		at := d.i
		d.lit("[")
		r.from = int64(d.positive("not-before"))
		d.lit(",")
		r.to = d.millis()
		d.lit("]")
		if r.to < r.from {
			d.fail(at, "a run that is due from %d to %d", r.from, r.to)
		}
	}
	if o.may("x") {
		r.gone = d.gone(r.count)
	}
	o.close()
	if d.err != nil {
		return r
	}
	if live := r.live(); r.last < r.first || r.last-r.first < uint64(live-1) {
		d.fail(at, "a run with %d members from sequence %d to %d", live, r.first, r.last)
	}
	r.enc = exactly(d.b[start:d.i])
	return r
}

// sealedObject reads what references to runs of all kinds begin with.
func (d *decoder) sealedObject(o *members) sealedObject {
	var r sealedObject
	o.must("o")
	d.lit("[")
	r.name = d.token("run")
	d.lit(",")
	r.size = d.millis()
	d.lit(",")
	r.sum = d.checksum()
	d.lit(",")
	r.filterSum = d.checksum()
	d.lit("]")
	o.must("c")
	at := d.i
	if count := d.number(); d.err == nil && (count == 0 || count > maxRun) {
		d.fail(at, "a run of %d members: from 1 to %d", count, maxRun)
	} else {
		r.count = int(count)
	}
	if d.err == nil && (r.size < int64(r.count)*leastMember || r.size > maxRunBytes) {
		d.fail(at, "a run of %d members in %d bytes", r.count, r.size)
	}
	return r
}

// gone reads which members have left: some, and not all.
func (d *decoder) gone(count int) []byte {
	at := d.i
	text := d.string("members gone", maxRun/4)
	if d.err != nil {
		return nil
	}
	gone, err := hex.DecodeString(string(text))
	switch {
	case err != nil || len(gone) != (count+7)/8 || hex.EncodeToString(gone) != string(text):
		d.fail(at, "members gone: not %d bytes in lower-case hexadecimal digits", (count+7)/8)
		return nil
	case count%8 != 0 && gone[len(gone)-1]>>(count%8) != 0:
		d.fail(at, "members gone: more than the %d that there are", count)
		return nil
	}
	o := sealedObject{count: count, gone: gone}
	if live := o.live(); live == 0 || live == count {
		d.fail(at, "members gone: all or none: the run, or the field, must be left out")
	}
	return gone
}

// encodeRun gives run.json and fills in what a reference to it says, but for its name.
// The slots must be in the order of a run.
func encodeRun(slots []*slot) (*run, []byte) {
	r := &run{sealedObject: sealedObject{count: len(slots)}}
	filter := hex.AppendEncode(nil, newFilter(slots))
	b := make([]byte, 0, len(filter)+len(slots)*refBytes)
	b = append(b, filterBegin...)
	b = append(b, filter...)
	b = append(b, `","slots":[`...)
	for i, s := range slots {
		b = appendComma(b, i)
		start := len(b)
		if s.enc == nil {
			b = appendSlot(b, s)
			s.enc = exactly(b[start:])
			continue
		}
		b = append(b, s.enc...)
	}
	b = append(b, "]}\n"...)
	r.size, r.sum, r.filterSum = int64(len(b)), checksum(b), checksum(filter)
	r.bound(&body{slots: slots})
	return r, b
}

const filterBegin = `{"filter":"`

// filterText gives where the text of the filter lies in run.json.
func (o *sealedObject) filterText() (off, size int) {
	return len(filterBegin), 2 * filterBytes(o.count)
}

// decodeRun reads run.json, which r refers to. It takes only what encodeRun writes.
// Any error is a *CorruptError.
func decodeRun(b []byte, r *run, file string) (*body, error) {
	d := decoder{scanner: newScanner(b)}
	d.seen = make(map[generation]int, r.count)
	if sum := checksum(b); int64(len(b)) != r.size || sum != r.sum {
		d.fail(-1, "%d bytes with checksum %08x: state.json says %d and %08x", len(b), sum, r.size, r.sum)
		return nil, d.corrupt(file)
	}
	o := d.open(runFileFields)
	o.must("filter")
	_, size := r.filterText()
	filter := d.string("filter", size)
	o.must("slots")
	d.lit("[")
	q := &queueState{next: maxNumber + 1}
	for first := true; d.more(first); first = false {
		at := d.i
		s := d.slot(q)
		if d.err != nil {
			break
		}
		switch n := len(q.slots); {
		case s.claimed != nil || s.pending.key != "" || !s.pending.mark.zero() || s.pending.lastError != "":
			d.fail(at, "ID %q: not as a member of a run is", s.id)
		case n > 0 && compareMembers(q.slots[n-1], s) >= 0:
			d.fail(at, "ID %q: not sorted", s.id)
		case n > 0 && (q.slots[0].pending.notBefore == 0) != (s.pending.notBefore == 0):
			d.fail(at, "ID %q: scheduled among others that are not", s.id)
		}
		q.slots = append(q.slots, s)
	}
	o.close()
	d.end()
	d.overlaps()
	m := newBody(q.slots)
	if d.err == nil {
		d.asReferred(r, m, filter)
	}
	if d.err != nil {
		return nil, d.corrupt(file)
	}
	return m, nil
}

// asReferred refuses a run that is not what its reference says.
func (d *decoder) asReferred(r *run, m *body, filter []byte) {
	want := *r
	if len(m.slots) == r.count {
		want.bound(m)
	}
	switch {
	case len(m.slots) != r.count:
		d.fail(-1, "%d members: state.json says %d", len(m.slots), r.count)
	case want.first != r.first || want.last != r.last || want.from != r.from || want.to != r.to:
		d.fail(-1, "sequences %d to %d, due from %d to %d: state.json says %d to %d, %d to %d",
			want.first, want.last, want.from, want.to, r.first, r.last, r.from, r.to)
	case string(filter) != hex.EncodeToString(newFilter(m.slots)) || checksum(filter) != r.filterSum:
		d.fail(-1, "the filter is not that of its members")
	case slices.ContainsFunc(m.byID[1:], d.twiceIn(m)):
		d.fail(-1, "an ID twice")
	}
}

// twiceIn gives a function that reports whether the ID of a member, in their order, is
// that of the one before.
func (d *decoder) twiceIn(m *body) func(int) bool {
	before := m.slots[m.byID[0]].id
	return func(i int) bool {
		id := m.slots[i].id
		twice := id == before
		before = id
		return twice
	}
}
