//go:build unix

package holdfast

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// The transitions are tested on drafts, without a disk: transition_*_test.go has a
// named case for each cell of the design's table, model_test.go takes them in any
// order. Both drive the core through a rig.

// A coreCalls is the transitions under test. The tests of the tests plant bugs by
// putting something else in the place of one.
type coreCalls struct {
	enqueue        func(d *draft, name string, a arrival, maxState int64) (queue.Enqueued, error)
	enqueueAll     func(d *draft, name string, as []arrival, maxState int64) ([]queue.Enqueued, error)
	claim          func(d *draft, name string, t taking, load loader) (queue.Claimed, error)
	load           func(d *draft, name, id string, t taking, load loader, dead deaths) (queue.Delivery, error)
	ack            func(d *draft, r queue.Receipt) error
	release        func(d *draft, r queue.Receipt, delay time.Duration) error
	retry          func(d *draft, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error)
	extend         func(d *draft, r queue.Receipt, length time.Duration) (time.Time, error)
	reap           func(d *draft, o queue.ReapOptions, dead deaths) ([]queue.Returned, error)
	reprocess      func(d *draft, space, name string) error
	fail           func(d *draft, r queue.Receipt, cause, as string) (string, error)
	replacePayload func(d *draft, r queue.Receipt, payload []byte) error
	purge          func(d *draft, space, name string) error
	clear          func(d *draft, name string, leasedToo bool) (uint64, error)
	pause          func(d *draft, name string, paused bool) error
	setNamespace   func(d *draft, name, space string) error
	setCursor      func(d *draft, name, cursor string) error
	update         func(v *view, steps []step) ([]queue.Outcome, error)
	openImport     func(d *draft, name string, t token) (closed bool, err error)
	importAll      func(d *draft, t token, ms []imported, maxState int64) (added int, err error)
	closeImport    func(d *draft, t token) error
	abandonImport  func(d *draft, t token) error
	pack           func(d *draft, newToken func() (token, error)) ([]object, error)
}

func soundCalls() coreCalls {
	return coreCalls{
		(*draft).enqueue, (*draft).enqueueAll, (*draft).claim, (*draft).load, (*draft).ack, (*draft).release,
		(*draft).retry, (*draft).extend, (*draft).reap, (*draft).reprocess,
		(*draft).fail, (*draft).replacePayload, (*draft).purge, (*draft).clear,
		(*draft).pause, (*draft).setNamespace, (*draft).setCursor, (*view).update,
		(*draft).openImport, (*draft).importAll, (*draft).closeImport, (*draft).abandonImport, (*draft).pack,
	}
}

// roomy is a bound that no test state reaches.
const roomy = 1 << 30

// A rig does what the commit pipeline does, with objects in memory: calls are
// decided on a draft, which is packed and encoded and becomes the committed state, or
// is dropped. After each call it checks what must hold of all of them: the committed
// state is as it was published, a refused call left no trace, the line of delivery is
// right, and counters and gauges add up.
type rig struct {
	rapid.TB
	calls   coreCalls
	base    *state // committed
	picture string // base when it was published
	size    int64  // of its text
	now     instant
	objects map[token][]byte
	broken  map[spot]error // payloads that cannot be read now
	dead    deaths         // nil: nobody is proven dead
	random  *rand.ChaCha8
	decoded bool                                    // a commit goes on with the state that was read back
	choose  func(d *draft, q *queueState) [][]*slot // what a commit seals; nil: nothing
	bodies  map[token]*body                         // of runs that were read
	graves  map[token][]*failedEntry                // of those of failed messages

	chooseFailed func(f *failedSpace) []*failedEntry // as choose
	d            *draft                              // nil: none is open
}

// A spot is where a payload lies.
type spot struct {
	object token
	off    int64
}

// rigStart is when a rig begins.
var rigStart = instant{Wall: time.UnixMilli(1_764_500_000_000), BootID: "11111111-2222-3333-4444-555555555555", Boot: time.Hour}

func newRig(t rapid.TB) *rig {
	r := &rig{
		TB: t, calls: soundCalls(), now: rigStart,
		objects: map[token][]byte{}, bodies: map[token]*body{}, graves: map[token][]*failedEntry{}, broken: map[spot]error{}, random: rand.NewChaCha8([32]byte{}),
	}
	r.base = &state{commit: r.token(), store: r.token(), revision: 1, settings: Settings{Stop}, reader: r}
	r.picture, r.size = pictureOf(r.base), int64(len(encodeState(nil, r.base)))
	return r
}

func (r *rig) token() token {
	t, err := newToken(r.random)
	if err != nil {
		r.Fatal(err)
	}
	return t
}

// pictureOfLine is the derived line of a queue at a time.
func pictureOfLine(q *queueState, millis int64) string {
	l := &q.at(millis).line
	b := make([]byte, 0, 1<<10)
	places := func(name string, list []place) {
		b = append(b, name...)
		for _, p := range list {
			b = append(append(strconv.AppendUint(append(b, ' '), p.seq, 10), ' '), p.id...)
		}
	}
	times := func(name string, list []timed) {
		b = append(b, name...)
		for _, t := range list {
			b = strconv.AppendUint(append(strconv.AppendInt(append(b, ' '), t.at, 10), ' '), t.seq, 10)
			b = append(append(b, ' '), t.id...)
		}
	}
	places("free", l.free)
	places("; heads", l.heads)
	b = append(b, "; keys"...)
	for _, key := range l.keys {
		b = strconv.AppendQuote(append(b, ' '), key)
	}
	times("; later", l.later)
	for _, n := range l.lanes {
		b = strconv.AppendQuote(append(b, "; lane "...), n.key)
		b = strconv.AppendInt(append(b, " leased "...), int64(n.leased), 10)
		b = strconv.AppendInt(append(b, " offer "...), int64(n.offer), 10)
		times(" waiting", n.waiting)
	}
	return string(b)
}

// pictureOf is a state's text, made anew from every field, and its lines as they are.
func pictureOf(st *state) string {
	return pictureWith(st, func(q *queueState) string { return pictureOfLine(q, q.line.asOf) })
}

// pictureWith is a state's text, made anew from every field, and what is said of each
// line.
func pictureWith(st *state, ofLine func(q *queueState) string) string {
	bare := *st
	bare.queues, bare.failed = nil, nil
	var lines []byte
	for _, q := range st.queues {
		c := *q
		c.slots = nil
		for _, s := range q.slots {
			c.slots = append(c.slots, &slot{id: s.id, pending: s.pending, claimed: s.claimed})
		}
		c.runs = nil
		for _, r := range q.runs {
			bareRun := *r
			bareRun.enc = nil
			c.runs = append(c.runs, &bareRun)
		}
		bare.queues = append(bare.queues, &c)
		lines = append(append(lines, ofLine(q)...), '\n')
	}
	for _, f := range st.failed {
		c := failedSpace{name: f.name}
		for _, r := range f.runs {
			bareRun := *r
			bareRun.enc = nil
			c.runs = append(c.runs, &bareRun)
		}
		for _, e := range f.entries {
			bareEntry := *e
			bareEntry.enc = nil
			c.entries = append(c.entries, &bareEntry)
		}
		bare.failed = append(bare.failed, &c)
	}
	return string(append(encodeState(make([]byte, 0, 8<<10), &bare), lines...))
}

// open gives the draft that calls are decided on.
func (r *rig) open() *draft {
	if r.d == nil {
		r.d = newDraft(r.base, r.token(), r.now, r.size)
	}
	return r.d
}

// st is the state as the next call sees it.
func (r *rig) st() *state {
	if r.d != nil {
		return r.d.st
	}
	return r.base
}

// A trace is everything in a draft that a refused call may not change.
type trace struct {
	picture string
	dirty   bool
	index   uint32
	bytes   int64
	fence   uint64
	owed    int64
	items   []item
	itemOf  map[generation]int
}

func traceOf(d *draft) trace {
	owed := d.promised
	if owed == 0 {
		owed = d.owed() // it is counted when it is needed first
	}
	return trace{pictureOf(d.st), d.dirty, d.index, d.bytes, d.st.fence, owed, append([]item{}, d.items...), maps.Clone(d.itemOf)}
}

// apply decides one call on the draft.
func (r *rig) apply(what string, f func(d *draft) error) error {
	r.Helper()
	d := r.open()
	before := traceOf(d)
	err := f(d)
	after := traceOf(d)
	if got := pictureOf(r.base); got != r.picture {
		r.Fatalf("%s changed the committed state\n got %s\nwant %s", what, got, r.picture)
	}
	if err != nil && !errors.Is(err, queue.ErrDamaged) && !reflect.DeepEqual(after, before) {
		r.Fatalf("%s was refused and left a trace\n got %+v\nwant %+v\nrefusal: %v", what, after, before, err)
	}
	if !after.dirty && after.picture != before.picture {
		r.Fatalf("%s changed the draft and did not say so", what)
	}
	r.checkSound(what)
	return err
}

// checkSound checks what holds of every state.
func (r *rig) checkSound(what string) {
	r.Helper()
	status := statusOf(r, r.st(), nil, r.now)
	if err := r.st().sound(true); err != nil {
		r.Fatalf("after %s: %v", what, err)
	}
	for _, q := range r.st().queues {
		if r.d == nil || !slices.Contains(r.base.queues, q) { // else it was looked at
			for _, millis := range []int64{r.now.millis(), max(0, q.line.asOf-1), q.line.asOf + 1<<40} {
				if fault := lineFault(q, millis); fault != "" {
					r.Fatalf("after %s: the line of %s %s", what, q.name, fault)
				}
			}
		}
		g, n := status.Queues[q.name], q.counters
		if g.Pending != g.Ready+g.Scheduled+g.Blocked {
			r.Fatalf("after %s: pending of %s is not ready, scheduled and blocked: %+v", what, q.name, g)
		}
		if got := n.Enqueued + n.Reprocessed - n.Superseded - n.Completed - n.Failed - n.Cleared; got != g.Unacked() {
			r.Fatalf("after %s: the counters of %s make %d unacked, the gauges %d: %+v", what, q.name, got, g.Unacked(), g)
		}
		if got := n.Failed - n.Reprocessed - n.Purged; got != g.Failed {
			r.Fatalf("after %s: the counters of %s make %d failed, the gauge %d: %+v", what, q.name, got, g.Failed, g)
		}
	}
}

// statusOf is a status that cannot fail.
func statusOf(t rapid.TB, st *state, names []string, now instant) queue.Status {
	t.Helper()
	status, err := st.status(names, now)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// seal makes the runs of a commit.
func (r *rig) seal(d *draft) {
	r.Helper()
	if r.chooseFailed != nil {
		r.sealFailed(d)
	}
	if r.choose == nil {
		return
	}
	made, err := d.sealRuns(func() (token, error) { return r.token(), nil }, func(q *queueState) [][]*slot { return r.choose(d, q) })
	if err != nil {
		r.Fatal(err)
	}
	for _, x := range made {
		r.objects[x.run.name] = x.text
		if got, err := r.members(x.run); err != nil || !reflect.DeepEqual(got.byID, x.body.byID) {
			r.Fatalf("a run reads back otherwise: %v\n%s", err, x.text)
		}
	}
}

func (r *rig) sealFailed(d *draft) {
	r.Helper()
	made, err := d.sealFailed(func() (token, error) { return r.token(), nil }, r.chooseFailed)
	if err != nil {
		r.Fatal(err)
	}
	for _, x := range made {
		r.objects[x.run.name] = x.text
		got, err := r.buried(x.run)
		if err != nil || len(got) != len(x.all) {
			r.Fatalf("a run of failed messages reads back otherwise: %v\n%s", err, x.text)
		}
		for i, e := range got {
			if string(e.text()) != string(x.all[i].text()) {
				r.Fatalf("a member reads back as %s, was %s", e.text(), x.all[i].text())
			}
		}
	}
}

// members reads a run out of its text.
func (r *rig) members(x *run) (*body, error) {
	if b := r.bodies[x.name]; b != nil {
		return b, nil
	}
	b, err := decodeRun(r.objects[x.name], x, "run.json")
	if err == nil {
		r.bodies[x.name] = b
	}
	return b, err
}

// buried reads a run of failed messages out of its text.
func (r *rig) buried(x *failedRun) ([]*failedEntry, error) {
	if all := r.graves[x.name]; all != nil {
		return all, nil
	}
	all, err := decodeFailedRun(r.objects[x.name], x, "run.json")
	if err == nil {
		r.graves[x.name] = all
	}
	return all, err
}

func (r *rig) mayHold(x *sealedObject, id string) (bool, error) {
	off, size := x.filterText()
	filter, err := parseFilter(r.objects[x.name][off:][:size])
	return err == nil && mayHold(filter, id), err
}

// commit publishes the draft, if it changed anything.
func (r *rig) commit() {
	r.Helper()
	d := r.d
	if r.d = nil; d == nil || !d.dirty {
		return
	}
	objects, err := r.calls.pack(d, func() (token, error) { return r.token(), nil })
	if err != nil {
		r.Fatal(err)
	}
	for _, o := range objects {
		if r.objects[o.name] != nil || !json.Valid(o.data) {
			r.Fatalf("object %s: twice, or not JSON: %.200q", o.name, o.data)
		}
		r.objects[o.name] = bytes.Clone(o.data)
	}
	r.seal(d)
	text := encodeState(nil, d.st)
	st, err := decodeState(text, stateFile, d.st.store)
	if err != nil {
		r.Fatalf("what was committed is not taken: %v\n%s", err, text)
	}
	st.reader = r
	now := func(q *queueState) string { return pictureOfLine(q, r.now.millis()) }
	if got, want := pictureWith(st, now), pictureWith(d.st, now); got != want {
		r.Fatalf("the committed state reads back otherwise\n got %s\nwant %s", got, want)
	}
	if got := encodeState(nil, st); !bytes.Equal(got, text) || !strings.HasPrefix(pictureOf(st), string(text)) {
		r.Fatalf("the committed state is encoded otherwise\n got %s\nwant %s", got, text)
	}
	if got := pictureOf(r.base); got != r.picture {
		r.Fatalf("a commit changed the state before it\n got %s\nwant %s", got, r.picture)
	}
	r.checkObjects(d.st, objects)
	if r.base = d.st; r.decoded {
		r.base = st
	}
	r.picture, r.size = pictureOf(r.base), int64(len(text))
}

// checkObjects checks that each new object holds the payloads that are named in it
// and nothing else.
func (r *rig) checkObjects(st *state, objects []object) {
	r.Helper()
	held := map[token]int64{}
	st.refs(func(_, _ string, ref *ref) bool {
		data := r.objects[ref.object]
		if ref.off < 0 || ref.size < 1 || ref.off+ref.size > int64(len(data)) {
			r.Fatalf("%s lies at %d to %d of the %d bytes of object %s", ref.gen, ref.off, ref.off+ref.size, len(data), ref.object)
		}
		held[ref.object] += ref.size + 1 // the comma or bracket before it
		return true
	})
	for _, o := range objects {
		want := int64(len(o.data))
		if held[o.name] != want+1 && held[o.name]+1 != want { // alone, or an array
			r.Fatalf("object %s of %d bytes: its references name %d", o.name, want, held[o.name])
		}
	}
}

// drop gives the draft up, as a commit that failed does.
func (r *rig) drop() {
	r.Helper()
	if r.d = nil; pictureOf(r.base) != r.picture {
		r.Fatal("a dropped draft changed the committed state")
	}
}

// read is the loader: as the pipeline's, it finds what this draft will write.
func (r *rig) read(ref *ref) ([]byte, string, error) {
	if r.d != nil {
		if i, ok := r.d.itemOf[ref.gen]; ok {
			return r.d.items[i].payload, "", nil
		}
	}
	if err := r.broken[spot{ref.object, ref.off}]; err != nil {
		return nil, "", err
	}
	data := r.objects[ref.object]
	if ref.off+ref.size > int64(len(data)) {
		return nil, "its object is missing or short", nil
	}
	payload := data[ref.off:][:ref.size:ref.size]
	if checksum(payload) != ref.sum {
		return nil, "its checksum is wrong", nil
	}
	return payload, "", nil
}

// The calls.

func (r *rig) enqueue(name string, a arrival) (out queue.Enqueued, err error) {
	r.Helper()
	err = r.apply("enqueue", func(d *draft) (err error) {
		out, err = r.calls.enqueue(d, name, a, roomy)
		return err
	})
	return out, err
}

func (r *rig) enqueueAll(name string, as ...arrival) (out []queue.Enqueued, err error) {
	r.Helper()
	err = r.apply("enqueueAll", func(d *draft) (err error) {
		out, err = r.calls.enqueueAll(d, name, as, roomy)
		return err
	})
	return out, err
}

func (r *rig) claim(name string, t taking) (out queue.Claimed, err error) {
	r.Helper()
	err = r.apply("claim", func(d *draft) (err error) {
		out, err = r.calls.claim(d, name, t, r.read)
		return err
	})
	return out, err
}

func (r *rig) load(name, id string, t taking) (out queue.Delivery, err error) {
	r.Helper()
	err = r.apply("load", func(d *draft) (err error) {
		out, err = r.calls.load(d, name, id, t, r.read, r.dead)
		return err
	})
	return out, err
}

func (r *rig) ack(x queue.Receipt) error {
	r.Helper()
	return r.apply("ack", func(d *draft) error { return r.calls.ack(d, x) })
}

func (r *rig) release(x queue.Receipt) error { return r.snooze(x, 0) }

func (r *rig) snooze(x queue.Receipt, delay time.Duration) error {
	r.Helper()
	return r.apply("release", func(d *draft) error { return r.calls.release(d, x, delay) })
}

// The options of the calls that follow are as callers give them: their defaults are
// filled in.

func (r *rig) retry(x queue.Receipt, o queue.RetryOptions) (out queue.Returned, err error) {
	r.Helper()
	if o, err = o.Checked(); err != nil {
		return out, err
	}
	err = r.apply("retry", func(d *draft) (err error) {
		out, err = r.calls.retry(d, x, o)
		return err
	})
	return out, err
}

func (r *rig) extend(x queue.Receipt, lease time.Duration) (until time.Time, err error) {
	r.Helper()
	if lease, err = queue.CheckLease(lease); err != nil {
		return until, err
	}
	err = r.apply("extend", func(d *draft) (err error) {
		until, err = r.calls.extend(d, x, lease)
		return err
	})
	return until, err
}

func (r *rig) reapAll(o queue.ReapOptions) (out []queue.Returned, err error) {
	r.Helper()
	if o, err = o.Checked(); err != nil {
		return nil, err
	}
	err = r.apply("reap", func(d *draft) (err error) {
		out, err = r.calls.reap(d, o, r.dead)
		return err
	})
	return out, err
}

func (r *rig) reprocess(space, name string) error {
	r.Helper()
	return r.apply("reprocess", func(d *draft) error { return r.calls.reprocess(d, space, name) })
}

func (r *rig) fail(x queue.Receipt, cause, as string) (name string, err error) {
	r.Helper()
	err = r.apply("fail", func(d *draft) (err error) {
		name, err = r.calls.fail(d, x, cause, as)
		return err
	})
	return name, err
}

func (r *rig) replacePayload(x queue.Receipt, payload string) error {
	r.Helper()
	return r.apply("replacePayload", func(d *draft) error { return r.calls.replacePayload(d, x, []byte(payload)) })
}

func (r *rig) purge(space, name string) error {
	r.Helper()
	return r.apply("purge", func(d *draft) error { return r.calls.purge(d, space, name) })
}

func (r *rig) clear(name string, leasedToo bool) uint64 {
	r.Helper()
	n, err := r.tryClear(name, leasedToo)
	if err != nil {
		r.Fatal(err)
	}
	return n
}

func (r *rig) tryClear(name string, leasedToo bool) (n uint64, err error) {
	r.Helper()
	err = r.apply("clear", func(d *draft) (err error) {
		n, err = r.calls.clear(d, name, leasedToo)
		return err
	})
	return n, err
}

// reap ends one lease.
func (r *rig) reap(name, id string) {
	r.Helper()
	_ = r.apply("reap", func(d *draft) error {
		s, _ := d.st.queue(name).find(id)
		d.lapse(name, s, queue.ByOperator, 1000)
		return nil
	})
}

// pause pauses a queue or resumes it.
func (r *rig) pause(name string, paused bool) error {
	r.Helper()
	return r.apply("pause", func(d *draft) error {
		return r.calls.pause(d, name, paused)
	})
}

func (r *rig) setNamespace(name, space string) error {
	r.Helper()
	return r.apply("setNamespace", func(d *draft) error {
		return r.calls.setNamespace(d, name, space)
	})
}

func (r *rig) setCursor(name, cursor string) error {
	r.Helper()
	return r.apply("setCursor", func(d *draft) error { return r.calls.setCursor(d, name, cursor) })
}

// update takes changes as Store.Update does, which prepares them without the disk.
func (r *rig) update(changes ...queue.Change) (out []queue.Outcome, err error) {
	r.Helper()
	if err := queue.CheckChanges(changes); err != nil {
		return nil, err
	}
	s := &Store{opts: Options{MaxPayloadBytes: 1 << 20, MaxPayloadDepth: 10, MaxStateBytes: roomy}}
	steps := make([]step, len(changes))
	for i, change := range changes {
		if steps[i], err = s.step(&call{}, change); err != nil {
			return nil, &queue.UpdateError{Index: i, Err: err}
		}
	}
	err = r.apply("update", func(d *draft) (err error) {
		out, err = r.calls.update(&view{draft: d, load: r.read, dead: r.dead}, steps)
		return err
	})
	return out, err
}

// damage alters a committed payload.
func (r *rig) damage(ref *ref) { r.objects[ref.object][ref.off] ^= 1 }
