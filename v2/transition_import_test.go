//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

func (r *rig) openImport(name string, t token) (closed bool, err error) {
	r.Helper()
	err = r.apply("openImport", func(d *draft) (err error) {
		closed, err = r.calls.openImport(d, name, t)
		return err
	})
	return closed, err
}

func (r *rig) importAll(t token, ms ...imported) (added int, err error) {
	r.Helper()
	err = r.apply("importAll", func(d *draft) (err error) {
		added, err = r.calls.importAll(d, t, ms, roomy)
		return err
	})
	return added, err
}

func (r *rig) closeImport(t token) error {
	r.Helper()
	return r.apply("closeImport", func(d *draft) error { return r.calls.closeImport(d, t) })
}

func (r *rig) abandonImport(t token) error {
	r.Helper()
	return r.apply("abandonImport", func(d *draft) error { return r.calls.abandonImport(d, t) })
}

func importedOf(id string, state ImportedState) imported {
	return imported{id: id, payload: fmt.Appendf(nil, `{"v1":%q,"was":%q}`, id, state), state: state, millis: 1_700_000_000_000}
}

// importing brings messages into mail by an import that it opens where it is not, and
// commits.
func (r *rig) importing(t token, ms ...imported) {
	r.Helper()
	_, err := r.openImport("mail", t)
	r.settled(err)
	if n, err := r.importAll(t, ms...); err != nil || n != len(ms) {
		r.Fatalf("added %d of %d: %v", n, len(ms), err)
	}
	r.commit()
}

// unready checks that an import is open: the refusal names it.
func (r *rig) unready(what string, err error, name string, t token) {
	r.Helper()
	var open *ImportingError
	if !errors.Is(err, ErrImporting) || !errors.As(err, &open) || *open != (ImportingError{name, ImportToken(t)}) {
		r.Fatalf("%s: %v, want ErrImporting of %s into %s", what, err, t, name)
	}
	if text := err.Error(); !strings.Contains(text, t.String()) || !strings.Contains(text, name) {
		r.Fatalf("%s: %q does not name the import and the queue", what, text)
	}
}

func TestTransitionOpenImport(t *testing.T) {
	r := newRig(t)
	r.put("m")
	first, second, third := namedToken("first"), namedToken("second"), namedToken("third")
	for _, name := range []string{"mail", "fresh"} { // one that is there, and one that is made
		x := map[string]token{"mail": first, "fresh": second}[name]
		closed, err := r.openImport(name, x)
		if r.settled(err); closed {
			t.Errorf("%s: a new import is closed", name)
		}
		if g := statusOf(r, r.st(), nil, r.now).Queues[name]; !g.Importing || g.Complete() {
			t.Errorf("%s: %+v", name, g)
		}
	}
	// Again: nothing changes.
	if closed, err := r.openImport("mail", first); closed || err != nil || r.d.dirty {
		t.Errorf("the same one: closed %v, %v, dirty %v", closed, err, r.d.dirty)
	}
	_, err := r.openImport("mail", third)
	r.unready("another one", err, "mail", first)
	_, err = r.openImport("other", first)
	r.is(err, queue.ErrInvalid)

	r.settled(r.closeImport(first))
	if closed, err := r.openImport("mail", first); !closed || err != nil || r.d.dirty {
		t.Errorf("the closed one: closed %v, %v, dirty %v", closed, err, r.d.dirty)
	}
	_, err = r.openImport("fresh", first)
	r.is(err, queue.ErrInvalid)
	closed, err := r.openImport("mail", third)
	if r.settled(err); closed {
		t.Error("a second import is closed")
	}
}

func TestImportsAreBounded(t *testing.T) {
	r := newRig(t)
	for i := range maxImports {
		x := namedToken(fmt.Sprint(i))
		d := r.open()
		if _, err := d.openImport("mail", x); err != nil {
			t.Fatal(err)
		}
		if err := d.closeImport(x); err != nil {
			t.Fatal(err)
		}
	}
	r.commit()
	_, err := r.openImport("mail", namedToken("more"))
	r.is(err, queue.ErrFull)
	if closed, err := r.openImport("mail", namedToken("7")); !closed || err != nil {
		t.Errorf("a remembered one: closed %v, %v", closed, err)
	}
}

// What stands under the ID decides, side by side.
func TestTransitionImport(t *testing.T) {
	dup, failedExists := queue.ErrDuplicate, queue.ErrFailedExists
	for _, c := range []struct {
		standing                 string // m's, not by an import
		pending, claimed, failed error
	}{
		{"absent", nil, nil, nil},
		{"pending", dup, nil, nil},
		{"scheduled", dup, nil, nil},
		{"leased", nil, dup, nil},
		{"leased+pending", dup, dup, nil},
		{"returned", nil, dup, nil},
		{"reaped", nil, dup, nil},
		{"failed", nil, nil, failedExists},
		{"reprocessed", nil, dup, nil},
	} {
		for state, want := range map[ImportedState]error{ImportedPending: c.pending, ImportedClaimed: c.claimed, ImportedFailed: c.failed} {
			t.Run(c.standing+"/"+state.String(), func(t *testing.T) {
				r := newRig(t)
				r.stand(c.standing)
				x := namedToken("import")
				_, err := r.openImport("mail", x)
				r.settled(err)
				before := r.slot()
				n, err := r.importAll(x, importedOf("new", ImportedPending), importedOf("m", state))
				if want == nil {
					if err != nil || n != 2 {
						t.Fatalf("added %d, %v", n, err)
					}
					r.commit()
					after := r.slot()
					if state != ImportedPending && after.pending != before.pending || state != ImportedClaimed && after.claimed != before.claimed {
						t.Error("the other side of the ID changed")
					}
					return
				}
				var batch *queue.BatchError
				if r.is(err, want); !errors.As(err, &batch) || len(batch.Refused) != 1 || batch.Refused[0].Index != 1 || !strings.Contains(err.Error(), "m") {
					t.Errorf("got %v, want a *queue.BatchError about index 1", err)
				}
				if n != 0 || r.d.dirty {
					t.Errorf("added %d, dirty %v", n, r.d.dirty)
				}
			})
		}
	}
}

// What comes in is exactly this, and counted as what would have brought it there.
func TestImportBrings(t *testing.T) {
	x := namedToken("import")
	for _, c := range []struct {
		state   ImportedState
		counted queue.Counters
	}{
		{ImportedPending, queue.Counters{Enqueued: 1}},
		{ImportedClaimed, queue.Counters{Enqueued: 1, Claimed: 1, Released: 1}},
		{ImportedFailed, queue.Counters{Enqueued: 1, Claimed: 1, Failed: 1}},
	} {
		t.Run(c.state.String(), func(t *testing.T) {
			r := newRig(t)
			r.put("bystander")
			r.setNamespace("mail", "aside")
			r.commit()
			before, seq := r.counters(), r.st().queue("mail").next
			m := importedOf("m", c.state)
			r.importing(x, m)
			r.counted(before, c.counted)
			want := ref{seq: seq, size: int64(len(m.payload)), sum: checksum(m.payload), enqueued: m.millis, mark: x}
			var got *ref
			switch s := r.slot(); c.state {
			case ImportedPending:
				if got = s.pending; s.claimed != nil {
					t.Error("it is claimed too")
				}
			case ImportedClaimed:
				want.attempts, want.excused = 1, 1
				if got = &s.claimed.ref; s.pending != nil || s.claimed.returned != released || s.claimed.lease != (lease{}) {
					t.Errorf("it is %+v", s.claimed)
				}
			case ImportedFailed:
				want.attempts, want.lastError = 1, "imported from a v1 failed directory"
				e := r.st().failedEntry("aside", "m")
				if got = &e.ref; e.queue != "mail" || e.id != "m" || e.at != m.millis || s.pending != nil || s.claimed != nil {
					t.Errorf("it is %+v", e)
				}
			}
			if payload, damage, err := r.read(got); string(payload) != string(m.payload) || damage != "" || err != nil {
				t.Errorf("reads as %q, %q, %v", payload, damage, err)
			}
			given := *got
			given.gen, given.object, given.off = generation{}, token{}, 0
			if given != want {
				t.Errorf("brought %+v, want %+v", given, want)
			}
			// Once is enough, whatever else comes with it.
			if n, err := r.importAll(x, m, importedOf("n", c.state), m); err != nil || n != 1 {
				t.Errorf("again: added %d, %v", n, err)
			}
		})
	}
	r := newRig(t)
	now := importedOf("m", ImportedPending)
	now.millis = -1
	if r.importing(x, now); r.slot().pending.enqueued != r.now.millis() {
		t.Errorf("without a time it is of %d", r.slot().pending.enqueued)
	}
}

// Whatever would change the queue or its messages is refused while the import is open,
// and leaves no trace; another queue goes on, and so do looks. After the import all of
// it is as it was.
func TestImportRefusesOthers(t *testing.T) {
	x := namedToken("import")
	r := newRig(t)
	r.put("old")
	r.put("out")
	held := r.take("out").Receipt
	r.put("bad")
	_, err := r.fail(r.take("bad").Receipt, "no", "")
	r.settled(err)
	_, err = r.enqueue("news", arrivalOf("n", queue.Refuse))
	r.settled(err)
	other, err := r.load("news", "n", oneMinute)
	r.settled(err)
	r.put("gone")
	gone := r.take("gone").Receipt
	r.settled(r.ack(gone))
	r.importing(x, importedOf("c", ImportedClaimed), importedOf("p", ImportedPending), importedOf("f", ImportedFailed))
	r.past(time.Hour)

	for name, call := range map[string]func() error{
		"enqueue":          func() error { return second(r.enqueue("mail", arrivalOf("more", queue.Refuse))) },
		"enqueue, kept":    func() error { return second(r.enqueue("mail", arrivalOf("p", queue.Keep))) },
		"enqueue of many":  func() error { return second(r.enqueueAll("mail", arrivalOf("more", queue.Replace))) },
		"claim":            func() error { return second(r.claim("mail", oneMinute)) },
		"load":             func() error { return second(r.load("mail", "c", oneMinute)) },
		"load, unknown":    func() error { return second(r.load("mail", "nobody", oneMinute)) },
		"ack":              func() error { return r.ack(held) },
		"retry":            func() error { return second(r.retry(held, queue.RetryOptions{})) },
		"release":          func() error { return r.release(held) },
		"extend":           func() error { return second(r.extend(held, time.Hour)) },
		"fail":             func() error { return second(r.fail(held, "no", "")) },
		"replace payload":  func() error { return r.replacePayload(held, "1") },
		"reap one":         func() error { return second(r.reapAll(queue.ReapOptions{Receipt: &held})) },
		"reap by name":     func() error { return second(r.reapAll(queue.ReapOptions{Queues: []string{"mail"}})) },
		"clear":            func() error { return second(r.tryClear("mail", true)) },
		"pause":            func() error { return r.pause("mail", true) },
		"resume":           func() error { return r.pause("mail", false) },
		"namespace":        func() error { return r.setNamespace("mail", "aside") },
		"cursor":           func() error { return r.setCursor("mail", "1") },
		"reprocess":        func() error { return r.reprocess("", "bad") },
		"reprocess, of it": func() error { return r.reprocess("", "f") },
		"purge":            func() error { return r.purge("", "bad") },
		"purge, of it":     func() error { return r.purge("", "f") },
		"update": func() error {
			return second(r.update(queue.AckChange{Receipt: other.Receipt}, queue.CursorChange{Queue: "mail", Cursor: "1"}))
		},
	} {
		r.unready(name, call(), "mail", x) // apply looks for a trace
		if r.d.dirty {
			t.Fatalf("%s changed something", name)
		}
	}
	// A receipt that is good for nothing in any case says so.
	r.lost(r.ack(gone), gone, queue.ErrGone, 0)

	// Looks: the messages are there, and nothing is due.
	if yes, next := r.st().due(nil, r.now); yes || next != 0 {
		t.Errorf("due: %v, %d", yes, next)
	}
	for _, o := range []queue.WaitOptions{{}, {Queues: []string{"mail"}}, {Queues: []string{"mail"}, IgnoreScheduled: true}, {Queues: []string{"mail"}, Message: "nobody"}} {
		if yes, err := r.st().complete(o, r.now); yes || err != nil {
			t.Errorf("%+v: complete", o)
		}
	}
	if g := statusOf(r, r.st(), []string{"mail"}, r.now).Queues["mail"]; !g.Importing || g.Ready != 3 || g.Processing != 1 || g.Overdue != 1 || g.Failed != 2 {
		t.Errorf("status %+v", g)
	}

	// The other queue goes on: its lease is over, that of mail waits.
	got, err := r.reapAll(queue.ReapOptions{Queues: []string{"mail", "news"}})
	if r.settled(err); len(got) != 1 || got[0].Queue != "news" {
		t.Errorf("reaped %+v", got)
	}
	got, err = r.reapAll(queue.ReapOptions{})
	if r.is(err, nil); len(got) != 0 {
		t.Errorf("reaped %+v", got)
	}
	r.settled(r.ack(other.Receipt))

	r.settled(r.closeImport(x))
	got, err = r.reapAll(queue.ReapOptions{})
	if r.settled(err); len(got) != 1 || got[0].ID != "out" {
		t.Errorf("reaped %+v", got)
	}
	r.settled(r.ack(held))
	r.settled(r.reprocess("", "f"))
	if got := r.claimIDs(9); got != "old c p f" {
		t.Errorf("claimed %s", got)
	}
}
