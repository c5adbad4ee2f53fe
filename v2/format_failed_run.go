//go:build unix

package holdfast

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"example.com/holdfast/queue"
)

// The feature "runs", of failed messages: a namespace's references to its runs, and the
// runs themselves.
//
//	SPACE      {"name":"","runs":[FAILEDRUN,…],"entries":[…]}
//	FAILEDRUN  {"o":["OBJECT",SIZE,"CRC32C","CRC32C"],"c":COUNT,"n":["FIRST","LAST"],"q":[["QUEUE",COUNT],…],"x":"HEX"}
//	run.json   {"filter":"HEX","entries":[["FAILED NAME","QUEUE","ID",REF,FAILED AT],…]}⏎

var (
	failedRunFields     = newFields("o", "c", "n", "q", "x")
	failedRunFileFields = newFields("filter", "entries")
)

// runFrame is more than run.json takes beside its members and the filter.
const runFrame = 64

func appendFailedRuns(b []byte, runs []*failedRun) []byte {
	if len(runs) == 0 {
		return b
	}
	b = append(b, `,"runs":[`...)
	for i, r := range runs {
		b = appendComma(b, i)
		if r.enc == nil {
			start := len(b)
			b = appendFailedRun(b, r)
			r.enc = exactly(b[start:])
			continue
		}
		b = append(b, r.enc...)
	}
	return append(b, ']')
}

func appendFailedRun(b []byte, r *failedRun) []byte {
	b = appendSealed(b, &r.sealedObject)
	b = append(b, `,"n":[`...)
	b = appendString(b, r.first)
	b = append(b, ',')
	b = appendString(b, r.last)
	b = append(b, `],"q":[`...)
	for i, s := range r.queues {
		b = appendComma(b, i)
		b = append(b, '[')
		b = appendString(b, s.name)
		b = append(b, ',')
		b = strconv.AppendUint(b, s.count, 10)
		b = append(b, ']')
	}
	b = append(b, ']')
	return append(appendGone(b, r.gone), '}')
}

// text gives an entry as it stands in state.json and in a run.
func (e *failedEntry) text() []byte {
	if e.enc == nil {
		e.enc = exactly(appendEntry(nil, e))
	}
	return e.enc
}

// failedRuns reads the references of a namespace.
func (d *decoder) failedRuns(f *failedSpace) {
	d.lit("[")
	for first := true; d.more(first); first = false {
		at := d.i
		r := d.failedRun()
		if d.err != nil {
			return
		}
		switch n := len(f.runs); {
		case d.sealed[r.name]:
			d.fail(at, "run %s twice", r.name)
		case n > 0 && slices.Compare(r.name[:], f.runs[n-1].name[:]) < 0:
			d.fail(at, "run %s: not sorted by object", r.name)
		}
		d.sealed[r.name] = true
		f.runs = append(f.runs, r)
	}
	if d.err == nil && len(f.runs) == 0 {
		d.fail(d.i, "an empty list of runs: it must be left out")
	}
}

func (d *decoder) failedRun() *failedRun {
	r := new(failedRun)
	start := d.i
	o := d.open(failedRunFields)
	r.sealedObject = d.sealedObject(&o)
	o.must("n")
	at := d.i
	d.lit("[")
	r.first = d.name("failed name", maxFailedName, queue.CheckFailedName)
	d.lit(",")
	r.last = d.name("failed name", maxFailedName, queue.CheckFailedName)
	d.lit("]")
	if d.err == nil && (r.first > r.last || (r.first == r.last) != (r.count == 1)) {
		d.fail(at, "a run of %d members from failed name %q to %q", r.count, r.first, r.last)
	}
	o.must("q")
	at = d.i
	total := d.shares(r)
	if o.may("x") {
		r.gone = d.gone(r.count)
	}
	o.close()
	if d.err != nil {
		return r
	}
	if live := r.live(); total != uint64(live) {
		d.fail(at, "%d members by their queues, %d by those gone", total, live)
	}
	r.enc = exactly(d.b[start:d.i])
	return r
}

// shares reads how many members came from each queue, and gives the sum.
func (d *decoder) shares(r *failedRun) (total uint64) {
	d.lit("[")
	for first := true; d.more(first); first = false {
		at := d.i
		d.lit("[")
		s := queueShare{name: d.name("queue name", queue.MaxQueueBytes, queue.CheckQueue)}
		d.lit(",")
		s.count = d.positive("members of a queue")
		d.lit("]")
		switch n := len(r.queues); {
		case n > 0 && s.name <= r.queues[n-1].name:
			d.fail(at, "queue %q after %q: not sorted, or twice", s.name, r.queues[n-1].name)
		case s.count > maxRun:
			d.fail(at, "%d members of queue %q: at most %d", s.count, s.name, maxRun)
		}
		total += s.count
		r.queues = append(r.queues, s)
	}
	return total
}

const failedEntriesBegin = `","entries":[`

// encodeFailedRun gives run.json and fills in what a reference to it says, but for its
// name. The entries must be sorted.
func encodeFailedRun(all []*failedEntry) (*failedRun, []byte) {
	r := &failedRun{sealedObject: sealedObject{count: len(all)}}
	filter := hex.AppendEncode(nil, newFilter(all))
	b := make([]byte, 0, len(filter)+len(all)*2*refBytes)
	b = append(b, filterBegin...)
	b = append(b, filter...)
	b = append(b, failedEntriesBegin...)
	for i, e := range all {
		b = append(appendComma(b, i), e.text()...)
	}
	b = append(b, "]}\n"...)
	r.size, r.sum, r.filterSum = int64(len(b)), checksum(b), checksum(filter)
	r.tally(all)
	return r, b
}

// decodeFailedRun reads run.json, which r refers to. It takes only what encodeFailedRun
// writes. Any error is a *CorruptError.
func decodeFailedRun(b []byte, r *failedRun, file string) ([]*failedEntry, error) {
	d := decoder{scanner: newScanner(b)}
	d.seen = make(map[generation]int, r.count)
	if sum := checksum(b); int64(len(b)) != r.size || sum != r.sum {
		d.fail(-1, "%d bytes with checksum %08x: state.json says %d and %08x", len(b), sum, r.size, r.sum)
		return nil, d.corrupt(file)
	}
	o := d.open(failedRunFileFields)
	o.must("filter")
	_, size := r.filterText()
	filter := d.string("filter", size)
	o.must("entries")
	d.lit("[")
	var all []*failedEntry
	for first := true; d.more(first); first = false {
		at := d.i
		e := d.entry()
		if d.err != nil {
			break
		}
		if n := len(all); n > 0 && e.name <= all[n-1].name {
			d.fail(at, "failed name %q after %q: not sorted, or twice", e.name, all[n-1].name)
		}
		all = append(all, e)
	}
	o.close()
	d.end()
	d.overlaps()
	if d.err == nil {
		d.asFailedReferred(r, all, filter)
	}
	if d.err != nil {
		return nil, d.corrupt(file)
	}
	return all, nil
}

// asFailedReferred refuses a run that is not what its reference says.
func (d *decoder) asFailedReferred(r *failedRun, all []*failedEntry, filter []byte) {
	if len(all) != r.count {
		d.fail(-1, "%d members: state.json says %d", len(all), r.count)
		return
	}
	want := *r
	want.tally(all)
	switch {
	case want.first != r.first || want.last != r.last:
		d.fail(-1, "failed names %q to %q: state.json says %q to %q", want.first, want.last, r.first, r.last)
	case !slices.Equal(want.queues, r.queues):
		d.fail(-1, "members of %s: state.json says %s", sharesText(want.queues), sharesText(r.queues))
	case string(filter) != hex.EncodeToString(newFilter(all)) || checksum(filter) != r.filterSum:
		d.fail(-1, "the filter is not that of its members")
	}
}

func sharesText(queues []queueShare) string {
	var parts []string
	for _, s := range queues {
		parts = append(parts, strconv.Quote(s.name)+" "+strconv.FormatUint(s.count, 10))
	}
	return strings.Join(parts, ", ")
}
