//go:build unix

package holdfast

import (
	"bytes"

	"example.com/holdfast/queue"
)

func (d *decoder) space() *failedSpace {
	f := new(failedSpace)
	o := d.open(spaceFields)
	o.must("name")
	if bytes.HasPrefix(d.b[d.i:], []byte(`""`)) {
		d.lit(`""`) // the default one
	} else {
		f.name = d.name("failed namespace", queue.MaxQueueBytes, queue.CheckQueue)
	}
	if at := d.i; o.may("runs") {
		if d.failedRuns(f); d.uses&runsFeature == 0 {
			d.fail(at, `runs, without the feature "runs"`)
		}
	}
	o.must("entries")
	d.lit("[")
	for first := true; d.more(first); first = false {
		at := d.i
		e := d.entry()
		if n := len(f.entries); n > 0 && e.name <= f.entries[n-1].name {
			d.fail(at, "failed name %q after %q: not sorted, or twice", e.name, f.entries[n-1].name)
		}
		f.entries = append(f.entries, e)
	}
	o.close()
	return f
}

func (d *decoder) entry() *failedEntry {
	e := new(failedEntry)
	start := d.i
	d.lit("[")
	e.name = d.name("failed name", maxFailedName, queue.CheckFailedName)
	d.lit(",")
	e.queue = d.name("queue name", queue.MaxQueueBytes, queue.CheckQueue)
	d.lit(",")
	e.id = d.name("ID", queue.MaxNameBytes, queue.CheckID)
	d.lit(",")
	at := d.i
	o := d.open(refFields)
	d.ref(&o, &e.ref)
	o.close()
	d.marked(at, e.queue, e.id, &e.ref)
	d.lit(",")
	e.at = d.millis()
	d.lit("]")
	if d.err == nil {
		e.enc = exactly(d.b[start:d.i])
	}
	return e
}
