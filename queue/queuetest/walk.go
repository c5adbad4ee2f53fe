package queuetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

var walkTrials = []trial{
	{"of many steps 1", func(s *scene) { walk(s, 1) }},
	{"of many steps 2", func(s *scene) { walk(s, 2) }},
	{"of many steps 3", func(s *scene) { walk(s, 3) }},
}

// A walker takes steps at random, the same ones for the same seed, over a few IDs,
// keys and queues. After each step the store must be sound, and what the step said
// must be what the store shows.
type walker struct {
	*scene
	*rand.Rand
	receipts []queue.Receipt // every one that was given out, most are no longer good
	fence    uint64
	log      []string
}

func walk(s *scene, seed uint64) {
	w := &walker{scene: s, Rand: rand.New(rand.NewPCG(seed, 0))}
	for range 150 {
		w.step()
		if s.audit(); s.Failed() {
			s.Fatalf("after these steps of seed %d:\n%q", seed, w.log[max(0, len(w.log)-20):])
		}
	}
}

func (w *walker) says(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *walker) step() {
	name := []string{mail, spool}[w.IntN(2)]
	switch n := w.IntN(20); {
	case n < 6:
		w.enqueue(name)
	case n < 9:
		w.claim(name, queue.ClaimOptions{Max: 1 + w.IntN(3), Lease: time.Duration(1+w.IntN(3)) * minute, Fair: n == 8})
	case n < 10:
		w.load(name)
	case n < 16 && len(w.receipts) > 0:
		w.settle(w.receipts[max(0, len(w.receipts)-1-w.IntN(6))])
	case n == 16:
		w.says("advance")
		w.Advance(time.Duration(1+w.IntN(4)) * minute / 2)
	case n == 17:
		rs := w.reap(queue.ReapOptions{MaxLapses: 3})
		w.says("reap: %s", reapedIDs(rs))
	case n == 18:
		w.reprocess()
	default:
		w.rare(name)
	}
}

func (w *walker) enqueue(name string) {
	id := string(rune('a' + w.IntN(6)))
	m := message(id, how(queue.IfExists(w.IntN(3))), key([]string{"", "k", "l"}[w.IntN(3)]))
	if w.IntN(4) == 0 {
		m.NotBefore = w.Now().Add(time.Duration(w.IntN(3)) * minute)
	}
	live, _ := w.Store.Show(w.ctx, name, id)
	e, err := w.Store.Enqueue(w.ctx, name, m)
	w.says("enqueue %s/%s %s: kept %v, %v", name, id, m.IfExists, e.Kept, err)
	switch exists := len(live) > 0; {
	case exists && m.IfExists == queue.Refuse:
		w.is(err, queue.ErrDuplicate)
		return
	case err != nil:
		w.Fatal(err)
	case e.Kept != (exists && m.IfExists == queue.Keep):
		w.Fatalf("kept: %v, with %d live", e.Kept, len(live))
	}
	after, err := w.Store.Show(w.ctx, name, id)
	w.must(err)
	equal(w.scene, "the newest generation", after[len(after)-1].Generation, e.Generation)
}

func (w *walker) claim(name string, o queue.ClaimOptions) {
	next := w.peek(name, queue.MaxClaim)
	ds := w.scene.claim(name, o)
	w.says("claim %s of %d, fair %v: %s", name, o.Max, o.Fair, ids(ds))
	want := idsOf(next[:min(o.Max, len(next))])
	got := ids(ds)
	if o.Fair {
		// The same number, all of them due, in an order that only turns decide.
		equal(w.scene, "claimed", len(ds), min(o.Max, len(next)))
		for _, d := range ds {
			if !slices.ContainsFunc(next, func(e queue.Entry) bool { return e.Generation == d.Receipt.Generation }) {
				w.Fatalf("claimed %s, due were %s", got, idsOf(next))
			}
		}
	} else {
		equal(w.scene, "claimed", got, want)
	}
	for _, d := range ds {
		w.holds(d)
	}
}

// holds notes a delivery.
func (w *walker) holds(d queue.Delivery) {
	if d.Fence <= w.fence {
		w.Fatalf("fence %d came after %d", d.Fence, w.fence)
	}
	w.fence = d.Fence
	e := w.show1(d.Receipt)
	if e.Receipt != d.Receipt || e.Lapses != d.Lapses || e.Attempts-1-e.Excused-e.Lapses != d.Failures || e.LastError != d.LastError {
		w.Fatalf("delivered %+v, shown is %s", d, entryLine(e))
	}
	w.receipts = append(w.receipts, d.Receipt)
}

// show1 gives the live generation that r names, or an empty entry.
func (w *walker) show1(r queue.Receipt) queue.Entry {
	es, err := w.Store.Show(w.ctx, r.Queue, r.ID)
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		w.Fatal(err)
	}
	for _, e := range es {
		if e.Generation == r.Generation {
			return e
		}
	}
	return queue.Entry{}
}

func (w *walker) load(name string) {
	id := string(rune('a' + w.IntN(6)))
	d, err := w.Store.Load(w.ctx, name, id, queue.LoadOptions{Lease: minute})
	w.says("load %s/%s: %v", name, id, err)
	switch {
	case err == nil:
		w.holds(d)
	case !errors.Is(err, queue.ErrNotFound) && !errors.Is(err, queue.ErrLeased):
		w.Fatal(err)
	}
}

// settle makes some call with a receipt; whether it is good, the store shows.
func (w *walker) settle(r queue.Receipt) {
	names := []string{"ack", "ack", "ack", "release", "retry", "retry at the cap", "extend", "fail", "reap", "replace payload"}
	name := names[w.IntN(len(names))]
	e := w.show1(r)
	good := e.Attempts == r.Attempt && (e.State == queue.Processing || e.Returned == "reaped" && name != "reap")
	before := w.look()
	err := w.scene.settle(name, r)
	w.says("%s %s: %v", name, r, err)
	switch {
	case !good && e.Generation != "":
		w.lost(err, r, queue.ErrStale, e.Attempts)
	case !good:
		w.lost(err, r, queue.ErrGone, 0)
	case name == "fail" && errors.Is(err, queue.ErrFailedExists):
	case name == "extend" && errors.Is(err, queue.ErrStale) && e.Returned == "reaped" && e.Key != "":
		w.lost(err, r, queue.ErrStale, r.Attempt) // its key is leased
	default:
		w.must(err)
		return
	}
	w.unchanged(before)
}

func (w *walker) reprocess() {
	page, err := w.Store.ListFailed(w.ctx, queue.FailedOptions{}, queue.ListOptions{})
	w.must(err)
	if len(page.Entries) == 0 {
		return
	}
	e := page.Entries[w.IntN(len(page.Entries))]
	live, _ := w.Store.Show(w.ctx, e.Queue, e.ID)
	err = w.Store.Reprocess(w.ctx, e.FailedName, queue.ReprocessOptions{})
	w.says("reprocess %s: %v", e.FailedName, err)
	if len(live) > 0 && live[0].Attempts > 0 {
		w.is(err, queue.ErrInFlight)
		return
	}
	w.must(err)
	now := w.show1(queue.Receipt{Queue: e.Queue, ID: e.ID, Generation: e.Generation})
	if now.Seq != e.Seq || now.Excused != e.Attempts || now.Lapses != 0 || now.Returned != "reprocessed" {
		w.Fatalf("reprocessed %s, shown is %s", entryLine(e), entryLine(now))
	}
}

// rare takes a step that changes much.
func (w *walker) rare(name string) {
	switch n := w.IntN(6); n {
	case 0:
		cleared, err := w.Store.Clear(w.ctx, name, queue.ClearOptions{Leased: w.IntN(2) == 0})
		w.says("clear %s: %d", name, cleared)
		w.must(err)
	case 1:
		w.says("pause %s", name)
		w.pause(name)
	default:
		w.says("resume %s", name)
		w.resume(name)
	}
}
