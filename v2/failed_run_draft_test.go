//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

// buriedRig is a rig with five failed messages m0, m1, … of mail, sealed, and a claim of m.
func buriedRig(t *testing.T) (*rig, queue.Receipt) {
	t.Helper()
	r := newRig(t)
	for i := range 5 {
		id := fmt.Sprint("m", i)
		r.put(id)
		_, err := r.fail(r.take(id).Receipt, "an earlier one", "")
		r.settled(err)
	}
	r.put("m")
	x := r.take("m").Receipt
	r.chooseFailed = func(f *failedSpace) []*failedEntry { return f.cold() }
	_ = r.apply("touch", func(d *draft) error { d.dirty = true; return nil })
	r.commit()
	if f := r.st().failed[0]; len(f.entries) != 0 || len(f.runs) != 1 || f.runs[0].count != 5 {
		t.Fatalf("sealed is %+v", f)
	}
	r.chooseFailed = nil
	return r, x
}

// replant puts what change makes of its entries into the rig's only run.
func (r *rig) replant(change func(all []*failedEntry) []*failedEntry) {
	r.Helper()
	f := r.base.failed[0]
	old := f.runs[0]
	all, err := r.buried(old)
	if err != nil {
		r.Fatal(err)
	}
	var next []*failedEntry
	for _, e := range all {
		c := *e
		c.enc = nil
		next = append(next, &c)
	}
	next = change(next)
	slices.SortFunc(next, compareFailed)
	x, text := encodeFailedRun(next)
	x.name = r.token()
	r.objects[x.name] = text
	f.setRun(old.name, x)
	r.picture = pictureOf(r.base)
}

// A state that something else wrote may have the name that a cap makes in a run.
func TestFailedRunMadeNameTaken(t *testing.T) {
	r, x := buriedRig(t)
	made := "m~" + x.Generation
	r.replant(func(all []*failedEntry) []*failedEntry {
		all[0].name, all[1].name, all[2].name = "m", made, made+"-2"
		return all
	})
	got, err := r.retry(x, queue.RetryOptions{MaxFailures: 1})
	if want := made + "-3"; err != nil || got.FailedName != want {
		t.Errorf("%+v %v, want %s", got, err, want)
	}
}

// What a run brings and the state cannot both be right: refused, and nothing changes.
func TestFailedRunContradicts(t *testing.T) {
	for what, plant := range map[string]func(e *failedEntry, m *ref){
		"generation": func(e *failedEntry, m *ref) { e.ref.gen = m.gen },
		"bytes":      func(e *failedEntry, m *ref) { e.ref.object, e.ref.off, e.ref.size = m.object, m.off, m.size },
	} {
		for _, call := range []string{"purge", "reprocess"} {
			t.Run(what+"/"+call, func(t *testing.T) {
				r, _ := buriedRig(t)
				m := &r.slot().claimed.ref
				r.replant(func(all []*failedEntry) []*failedEntry {
					plant(all[2], m)
					return all
				})
				d := newDraft(r.base, r.token(), r.now, r.size)
				before := traceOf(d)
				err := map[string]func(space, name string) error{"purge": d.purge, "reprocess": d.reprocess}[call]("", "m2")
				var corrupt *CorruptError
				if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), stateFile+" too") {
					t.Errorf("%v", err)
				}
				if after := traceOf(d); after.picture != before.picture || after.dirty || after.bytes != before.bytes {
					t.Errorf("left a trace\n got %+v\nwant %+v", after, before)
				}
				if err := r.base.sound(true); err == nil || !strings.Contains(err.Error(), what) {
					t.Errorf("sound: %v", err)
				}
			})
		}
	}
	t.Run("name twice", func(t *testing.T) {
		r, x := buriedRig(t)
		_, err := r.fail(x, "", "")
		r.is(err, nil)
		r.commit()
		r.replant(func(all []*failedEntry) []*failedEntry {
			all[0].name = "m"
			return all
		})
		if err := r.base.sound(true); err == nil || !strings.Contains(err.Error(), `name "m" twice`) {
			t.Errorf("sound: %v", err)
		}
	})
}

// A refused reprocess leaves the evidence in its run, and an update that is refused after
// it puts it back.
func TestFailedRunAtomic(t *testing.T) {
	r, _ := buriedRig(t)
	r.put("m3")
	r.take("m3")
	if err := r.reprocess("", "m3"); !errors.Is(err, queue.ErrInFlight) {
		t.Fatal(err)
	}
	no := errors.New("refused")
	err := r.apply("update", func(d *draft) error {
		return d.atomically(func() error {
			for i, name := range []string{"m0", "m1", "m2", "m4"} {
				call := []func(space, name string) error{d.purge, d.reprocess}[i%2]
				if err := call("", name); err != nil {
					t.Error(err)
				}
			}
			if err := d.purge("", "m0"); !errors.Is(err, queue.ErrNotFailed) {
				t.Errorf("purged twice: %v", err)
			}
			return no
		})
	})
	r.is(err, no)
	for _, name := range []string{"m0", "m1", "m2", "m4"} {
		r.is(r.purge("", name), nil)
	}
	r.is(r.purge("", "m4"), queue.ErrNotFailed)
	if live := r.st().failed[0].runs[0].live(); live != 1 {
		t.Errorf("%d are left in the run", live)
	}
}

// What a purge marks is provided for from the sealing on; what a reprocessing brings into
// the state must find room.
func TestFailedRunRoom(t *testing.T) {
	r, _ := buriedRig(t)
	d := newDraft(r.base, r.token(), r.now, r.size)
	owed, bytes := d.owed(), d.bytes
	mustDo(t, d.purge("", "m1"))
	grown := int64(len(encodeState(nil, d.st)) - len(encodeState(nil, r.base)))
	if by := owed - d.owed(); grown > by || d.bytes-bytes < grown {
		t.Errorf("grown by %d, owed less by %d, estimated %d", grown, by, d.bytes-bytes)
	}
	d = newDraft(r.base, r.token(), r.now, r.size)
	d.limit = d.owed() + recoveryRoom + 1000 // what is owed is no obstacle
	d.bytes = d.limit - slotBytes - 1
	if err := d.reprocess("", "m1"); !errors.Is(err, queue.ErrFull) {
		t.Errorf("reprocessed into a full state: %v", err)
	}
	d.bytes = d.limit - slotBytes - 2*refBytes
	before := d.bytes
	mustDo(t, d.reprocess("", "m1"))
	if grown := int64(len(encodeState(nil, d.st)) - len(encodeState(nil, r.base))); d.bytes-before < grown {
		t.Errorf("grown by %d, estimated %d", grown, d.bytes-before)
	}
}

// sealedFailed is the state of a core with n failed messages, with IDs as the store makes
// them, and the bytes of its text.
func sealedFailed(t *testing.T, n int) (st *state, size int) {
	t.Helper()
	objects := map[token][]byte{}
	next := uint64(0)
	fresh := func() (token, error) {
		next++
		return namedToken(fmt.Sprint("object ", next)), nil
	}
	st = &state{commit: namedToken("a commit"), store: namedToken("store"), settings: Settings{Stop}, queues: []*queueState{{name: "mail", next: maxNumber}}}
	for failed := 0; ; {
		d := newDraft(st, namedToken(fmt.Sprint("commit ", failed)), rigStart, 0)
		d.limit = DefaultMaxStateBytes
		for range min(100, n-failed) {
			id := fmt.Sprintf("0193a4f2-%04x-7%03x-8000-%012x", failed>>12, failed&0xfff, failed*1_000_003)
			e := &failedEntry{name: id, queue: "mail", id: id, at: rigStart.millis() + int64(failed), ref: ref{
				gen: d.generation(), object: namedToken(id), size: 200, sum: 1, seq: uint64(failed), enqueued: rigStart.millis(),
				attempts: 20, lastError: "dial tcp 10.0.0.7:443: connect: connection refused",
			}}
			f := d.space("")
			f.entries = append(f.entries, e)
			failed++
		}
		made, err := d.sealFailed(fresh, d.ripeFailed)
		mustDo(t, err)
		for _, x := range made {
			objects[x.run.name] = x.text
		}
		if st = d.st; failed == n {
			break
		}
	}
	return st, len(encodeState(nil, st))
}

// What every commit writes grows like a square root of what has failed.
func TestFailedRunStateSize(t *testing.T) {
	sizes := map[int]int{}
	bounds := map[int]int{0: 1 << 10, 1_000: 48 << 10, 10_000: 56 << 10, 100_000: 160 << 10}
	for _, n := range slices.Sorted(maps.Keys(bounds)) {
		st, size := sealedFailed(t, n)
		runs, inline, live := 0, 0, int64(0)
		for _, f := range st.failed {
			runs, inline, live = runs+len(f.runs), inline+len(f.entries), live+f.live()
		}
		if sizes[n] = size; size > bounds[n] || live != int64(n) {
			t.Errorf("%d failed: %d bytes, at most %d; %d are there", n, size, bounds[n], live)
		}
		t.Logf("%6d failed: state.json %7d bytes, %4d inline, %4d runs", n, size, inline, runs)
	}
}
