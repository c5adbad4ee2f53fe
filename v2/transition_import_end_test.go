//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

// A closed import leaves no mark: the messages are like any other, each in its place.
func TestTransitionCloseImport(t *testing.T) {
	x := namedToken("import")
	for name, together := range map[string]bool{"in a commit of its own": false, "in the commit that brought them": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.put("old")
			if !together {
				r.importing(x, importedOf("both", ImportedPending), importedOf("bad", ImportedFailed), importedOf("p", ImportedPending), importedOf("both", ImportedClaimed))
			} else {
				_, err := r.openImport("mail", x)
				r.is(err, nil)
				_, err = r.importAll(x, importedOf("both", ImportedPending), importedOf("bad", ImportedFailed), importedOf("p", ImportedPending), importedOf("both", ImportedClaimed))
				r.is(err, nil)
			}
			before := r.counters()
			r.settled(r.closeImport(x))
			r.counted(before, queue.Counters{})
			r.st().refs(func(_, id string, ref *ref) bool {
				if !ref.mark.zero() {
					t.Errorf("%s is still marked", id)
				}
				return true
			})
			if want := []importRecord{{x, "mail", false}}; !reflect.DeepEqual(r.st().imports, want) {
				t.Errorf("remembered %+v", r.st().imports)
			}
			r.gauged(3, 0, 1, 0, 1)
			if err := r.closeImport(x); err != nil || r.d.dirty {
				t.Errorf("closed again: %v, dirty %v", err, r.d.dirty)
			}
			_, err := r.importAll(x, importedOf("late", ImportedPending))
			r.is(err, ErrNotImporting)
			r.is(r.abandonImport(x), ErrNotImporting)

			// The claimed one goes first, under another attempt than it had.
			never := queue.Receipt{Store: r.base.store.String(), Queue: "mail", ID: "both", Generation: r.st().queue("mail").slots[0].claimed.gen.String(), Attempt: 1}
			r.lost(r.ack(never), never, queue.ErrStale, 1)
			d, err := r.load("mail", "both", oneMinute)
			r.settled(err)
			if d.Attempt() != 2 || d.Failures != 0 || !strings.Contains(string(d.Payload), `"claimed"`) || d.EnqueuedAt.UnixMilli() != 1_700_000_000_000 {
				t.Errorf("delivered %+v", d)
			}
			r.settled(r.ack(d.Receipt))
			if got := r.claimIDs(9); got != "old both p" {
				t.Errorf("claimed %s", got)
			}
			r.settled(r.reprocess("", "bad"))
			d, err = r.load("mail", "bad", oneMinute)
			if r.settled(err); d.Attempt() != 2 || d.LastError != importedError {
				t.Errorf("delivered %+v", d)
			}
		})
	}
	r := newRig(t)
	r.is(r.closeImport(x), ErrNotImporting)
}

// An abandoned import takes its messages with it and nothing else; the counters keep
// them.
func TestTransitionAbandonImport(t *testing.T) {
	x := namedToken("import")
	for name, together := range map[string]bool{"in a commit of its own": false, "in the commit that brought them": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.stand("leased+pending")
			r.put("beside")
			r.put("bad")
			_, err := r.fail(r.take("bad").Receipt, "no", "")
			r.settled(err)
			r.setNamespace("news", "aside")
			_, err = r.openImport("news", namedToken("another"))
			r.settled(err)
			_, err = r.importAll(namedToken("another"), importedOf("n", ImportedPending), importedOf("n", ImportedFailed))
			r.settled(err)
			whole := r.st()
			before := r.counters()
			_, err = r.openImport("mail", x)
			r.is(err, nil)
			if !together {
				r.commit()
			}
			_, err = r.importAll(x, importedOf("a", ImportedClaimed), importedOf("a", ImportedPending), importedOf("beside", ImportedClaimed), importedOf("f", ImportedFailed))
			if r.is(err, nil); !together {
				r.commit()
			}
			r.settled(r.abandonImport(x))
			r.counted(before, queue.Counters{Enqueued: 4, Claimed: 3, Released: 2, Cleared: 3, Failed: 1, Purged: 1})
			now := r.st()
			if got, want := shapeOf(now), shapeOf(whole); got != want {
				t.Errorf("there is\n%swant\n%s", got, want)
			}
			if got := len(now.imports); got != 1 || now.imports[0].token != namedToken("another") {
				t.Errorf("remembered %+v", now.imports)
			}
			if err := r.abandonImport(x); err != nil || r.d.dirty {
				t.Errorf("abandoned again: %v, dirty %v", err, r.d.dirty)
			}
			_, err = r.importAll(x, importedOf("late", ImportedPending))
			r.is(err, ErrNotImporting)
			// The token is free again, and nothing of before counts.
			r.importing(x, importedOf("a", ImportedClaimed), importedOf("a", ImportedPending))
		})
	}
	// A namespace that held nothing else goes with it.
	r := newRig(t)
	if r.importing(x, importedOf("f", ImportedFailed)); len(r.st().failed) != 1 {
		t.Errorf("failed: %v", r.st().failed)
	}
	if r.settled(r.abandonImport(x)); len(r.st().failed) != 0 || len(r.st().queue("mail").slots) != 0 {
		t.Errorf("left: %v", r.st().failed)
	}
}

// shapeOf names every reference of a state.
func shapeOf(st *state) string {
	var b strings.Builder
	st.refs(func(queue, id string, r *ref) bool {
		fmt.Fprintf(&b, "%s/%s %+v\n", queue, id, *r)
		return true
	})
	return b.String()
}

// A batch that is refused in part is refused whole, and takes no room.
func TestImportIsAllOrNothing(t *testing.T) {
	x := namedToken("import")
	r := newRig(t)
	r.put("m")
	_, err := r.openImport("mail", x)
	r.settled(err)
	_, err = r.importAll(x, importedOf("a", ImportedClaimed), importedOf("m", ImportedPending), importedOf("f", ImportedFailed), importedOf("m", ImportedPending))
	var batch *queue.BatchError
	if r.is(err, queue.ErrDuplicate); !errors.As(err, &batch) || len(batch.Refused) != 2 || batch.Refused[1].Index != 3 {
		t.Errorf("refused: %v", err)
	}
	if n, err := r.importAll(x, importedOf("a", ImportedClaimed), importedOf("f", ImportedFailed)); n != 2 || err != nil {
		t.Errorf("added %d, %v", n, err)
	}
}

// An import takes the room that it is accepted with: no estimate is below what it is.
func TestImportTakesItsRoom(t *testing.T) {
	x := namedToken("import")
	long := strings.Repeat("m", queue.MaxNameBytes)
	name := strings.Repeat("long/", 30) + "mail"
	space := strings.Repeat("aside/", 30) + "x"
	for _, from := range []ImportedState{ImportedPending, ImportedClaimed, ImportedFailed} {
		t.Run(from.String(), func(t *testing.T) {
			st := &state{commit: namedToken("commit"), store: namedToken("store"), revision: 1, settings: Settings{Stop}}
			st.queues = []*queueState{{name: name, next: 1e15, failedNS: space, line: line{owner: new(byte)}}}
			size := int64(len(encodeState(nil, st)))
			d := newDraft(st, namedToken("next"), rigStart, size)
			grown := func() int64 {
				if _, err := d.pack(func() (token, error) { return namedToken("object"), nil }); err != nil {
					t.Fatal(err)
				}
				return int64(len(encodeState(nil, d.st)))
			}
			if _, err := d.openImport(name, x); err != nil {
				t.Fatal(err)
			}
			if got := grown(); got > d.bytes {
				t.Errorf("open, the state has %d bytes, the estimate is %d", got, d.bytes)
			}
			d.index = 1 << 31
			m := imported{id: long, payload: []byte(strings.Repeat("1", 16<<20)), state: from, millis: maxMillis}
			if _, err := d.importAll(x, []imported{m}, d.bytes); !errors.Is(err, queue.ErrFull) {
				t.Errorf("without room: %v", err)
			}
			if _, err := d.importAll(x, []imported{m}, roomy); err != nil {
				t.Fatal(err)
			}
			got := grown()
			if got > d.bytes {
				t.Errorf("the state has %d bytes, the estimate is %d", got, d.bytes)
			}
			// The promise to settle one more is part of the acceptance.
			d.limit, d.promised = d.owed()+recoveryRoom, 0
			m.id = "another"
			if _, err := d.importAll(x, []imported{m}, roomy); errors.Is(err, queue.ErrFull) != (from != ImportedFailed) {
				t.Errorf("without the room to settle it: %v", err)
			}
		})
	}
	d := newDraft(&state{store: namedToken("store"), revision: 1}, namedToken("next"), rigStart, 100)
	d.limit = 200
	if _, err := d.openImport("mail", x); !errors.Is(err, queue.ErrFull) {
		t.Errorf("an import without room: %v", err)
	}
}
