//go:build unix

package holdfast

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"example.com/holdfast/queue"
)

// jsonOf is a payload of exactly n bytes.
func (r *rig) jsonOf(n int) []byte {
	return fmt.Appendf(nil, `"%s"`, bytes.Repeat([]byte{'x'}, n-2))
}

// packed is the objects of the open draft; they are checked and committed.
func (r *rig) packed() []object {
	r.Helper()
	var made []object
	pack := r.calls.pack
	r.calls.pack = func(d *draft, newToken func() (token, error)) (objects []object, err error) {
		made, err = pack(d, newToken)
		return made, err
	}
	r.commit()
	r.calls.pack = pack
	return made
}

// delivers checks that every live and failed reference reads as it should.
func (r *rig) delivers(want map[string]string) {
	r.Helper()
	got := 0
	r.base.refs(func(_, id string, ref *ref) bool {
		got++
		payload, damage, err := r.read(ref)
		if err != nil || damage != "" || string(payload) != want[id] {
			r.Fatalf("%s reads as %.100q, %s, %v; want %.100q", id, payload, damage, err, want[id])
		}
		return true
	})
	if got != len(want) {
		r.Fatalf("%d references, want %d", got, len(want))
	}
}

// enqueueSizes enqueues a message of each size, in order, named by its index.
func (r *rig) enqueueSizes(sizes ...int) {
	r.Helper()
	for i, n := range sizes {
		_, err := r.enqueue("mail", arrival{id: fmt.Sprintf("%02d", i), payload: r.jsonOf(n)})
		r.is(err, nil)
	}
}

func TestPackOneMessageVerbatim(t *testing.T) {
	for _, payload := range []string{`1`, " {\"a\" : 1.0}\r\n\t", `"` + "\u2028" + `<&>"`, `{"b":9007199254740993,"b":1e400}`} {
		r := newRig(t)
		_, err := r.enqueue("mail", arrival{id: "m", payload: []byte(payload)})
		r.is(err, nil)
		objects := r.packed()
		if len(objects) != 1 || string(objects[0].data) != payload {
			t.Errorf("%q became %v", payload, objects)
		}
		if p := r.slot().pending; p.object != objects[0].name || p.off != 0 || p.size != int64(len(payload)) {
			t.Errorf("%q: the reference is %+v", payload, *p)
		}
		r.delivers(map[string]string{"m": payload})
	}
}

func TestPackSeveralShareAnArray(t *testing.T) {
	r := newRig(t)
	payloads := []string{" 1 ", `{"a":[1,2]}`, "\n\"<&>\"\n", "[]", "1e400", "1e400"}
	want := map[string]string{}
	for i, p := range payloads {
		id := fmt.Sprint(9 - i) // not the order of the slots
		want[id] = p
		_, err := r.enqueue([]string{"mail", "news"}[i%2], arrival{id: id, payload: []byte(p)})
		r.is(err, nil)
	}
	objects := r.packed()
	if len(objects) != 1 {
		t.Fatalf("%d objects, want one for all queues", len(objects))
	}
	const text = "[ 1 ,{\"a\":[1,2]},\n\"<&>\"\n,[],1e400,1e400]"
	if string(objects[0].data) != text {
		t.Errorf("got %q, want %q", objects[0].data, text)
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(objects[0].data, &elements); err != nil || len(elements) != len(payloads) {
		t.Errorf("%d elements, %v; want %d", len(elements), err, len(payloads))
	}
	r.delivers(want)
}

func TestPackSizes(t *testing.T) {
	const kib = 1 << 10
	for _, c := range []struct {
		name  string
		sizes []int
		want  []int // the objects' sizes
	}{
		{"64 KiB share", []int{64 * kib, 64 * kib}, []int{128*kib + 3}},
		{"a byte more has its own", []int{10, 64*kib + 1, 20}, []int{64*kib + 1, 33}},
		{"alone in the middle of large ones", []int{70 * kib, 10, 80 * kib}, []int{70 * kib, 80 * kib, 10}},
		{"large ones never share", []int{64*kib + 1, 64*kib + 1, 3 << 20}, []int{64*kib + 1, 64*kib + 1, 3 << 20}},
		{"exactly 1 MiB", append(repeated(15, 64*kib), 1<<20-1-15*(64*kib+1)-1), []int{1 << 20}},
		{"a byte more than 1 MiB", append(repeated(15, 64*kib), 1<<20-15*(64*kib+1)-1), []int{15*(64*kib+1) + 1, 1<<20 - 15*(64*kib+1) - 1}},
		{"40 of 64 KiB", repeated(40, 64*kib), []int{15*(64*kib+1) + 1, 15*(64*kib+1) + 1, 10*(64*kib+1) + 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.enqueueSizes(c.sizes...)
			var got []int
			for _, o := range r.packed() {
				got = append(got, len(o.data))
				if len(o.data) > maxBatchObject && o.data[0] == '[' {
					t.Errorf("a shared object of %d bytes", len(o.data))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("objects of %v bytes, want %v", got, c.want)
			}
			want := map[string]string{}
			for i, n := range c.sizes {
				want[fmt.Sprintf("%02d", i)] = string(r.jsonOf(n))
			}
			r.delivers(want)
		})
	}
}

func repeated(n, size int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}

// Several calls meet in one commit. Only what the committed state names is written,
// and what it names is what the last call said.
func TestPackWhatTheCommitEndsWith(t *testing.T) {
	const mine = `{"id":"m"}` // as arrivalOf and put say
	claim := func(r *rig) queue.Receipt {
		d, err := r.load("mail", "m", oneMinute)
		r.is(err, nil)
		return d.Receipt
	}
	enqueue := func(r *rig, how queue.IfExists, payload string) {
		_, err := r.enqueue("mail", arrival{id: "m", payload: []byte(payload), ifExists: how})
		r.is(err, nil)
	}
	refusedAfter := func(r *rig, f func(d *draft)) {
		no := errors.New("no")
		r.is(r.apply("a refused update", func(d *draft) error {
			return d.atomically(func() error { f(d); return no })
		}), no)
	}
	for _, c := range []struct {
		name     string
		standing string
		calls    func(r *rig, last queue.Receipt)
		written  string            // all objects of the commit
		want     map[string]string // beside the bystander
	}{
		{"superseded", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			enqueue(r, queue.Replace, "2")
		}, "2", map[string]string{"m": "2"}},
		{"superseded, among others", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			_, err := r.enqueue("mail", arrivalOf("n", queue.Refuse))
			r.is(err, nil)
			enqueue(r, queue.Replace, "2")
		}, `[{"id":"n"},2]`, map[string]string{"m": "2", "n": `{"id":"n"}`}},
		{"cleared", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			r.clear("mail", false)
		}, "", nil},
		{"cleared and enqueued again", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			r.clear("mail", false)
			enqueue(r, queue.Refuse, "2")
		}, "2", map[string]string{"m": "2"}},
		{"kept", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			enqueue(r, queue.Keep, "2")
		}, "1", map[string]string{"m": "1"}},
		{"refused batch", "absent", func(r *rig, _ queue.Receipt) {
			_, err := r.enqueueAll("mail", arrivalOf("x", queue.Refuse), arrivalOf("x", queue.Refuse))
			r.is(err, queue.ErrDuplicate)
			enqueue(r, queue.Refuse, "1")
		}, "1", map[string]string{"m": "1"}},
		{"claimed", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			claim(r)
		}, "1", map[string]string{"m": "1"}},
		{"claimed and acked", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			r.is(r.ack(claim(r)), nil)
		}, "", map[string]string{}},
		{"claimed and released", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			r.is(r.release(claim(r)), nil)
		}, "1", map[string]string{"m": "1"}},
		{"claimed and failed", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			_, err := r.fail(claim(r), "no", "elsewhere")
			r.is(err, nil)
		}, "1", map[string]string{"m": "1"}},
		{"claimed, failed and purged", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			_, err := r.fail(claim(r), "no", "")
			r.is(err, nil)
			r.is(r.purge("", "m"), nil)
		}, "", map[string]string{}},
		{"failed and purged, and its name taken again", "absent", func(r *rig, _ queue.Receipt) {
			enqueue(r, queue.Refuse, "1")
			_, err := r.fail(claim(r), "no", "")
			r.is(err, nil)
			r.is(r.purge("", "m"), nil)
			enqueue(r, queue.Refuse, "2")
			_, err = r.fail(claim(r), "no", "")
			r.is(err, nil)
		}, "2", map[string]string{"m": "2"}},
		{"payload replaced", "leased", func(r *rig, x queue.Receipt) {
			r.is(r.replacePayload(x, " 2"), nil)
		}, " 2", map[string]string{"m": " 2"}},
		{"payload replaced twice", "leased", func(r *rig, x queue.Receipt) {
			r.is(r.replacePayload(x, "2"), nil)
			r.is(r.replacePayload(x, "33"), nil)
		}, "33", map[string]string{"m": "33"}},
		{"payload of a reaped claim replaced", "reaped", func(r *rig, x queue.Receipt) {
			r.is(r.replacePayload(x, "2"), nil)
		}, "2", map[string]string{"m": "2"}},
		{"payload replaced and released", "leased", func(r *rig, x queue.Receipt) {
			r.is(r.replacePayload(x, "2"), nil)
			r.is(r.release(x), nil)
		}, "2", map[string]string{"m": "2"}},
		{"payload replaced and acked", "leased", func(r *rig, x queue.Receipt) {
			r.is(r.replacePayload(x, "2"), nil)
			r.is(r.ack(x), nil)
		}, "", map[string]string{}},
		{"payload replaced and failed", "leased", func(r *rig, x queue.Receipt) {
			r.is(r.replacePayload(x, `"longer than the one before"`), nil)
			_, err := r.fail(x, "no", "")
			r.is(err, nil)
		}, `"longer than the one before"`, map[string]string{"m": `"longer than the one before"`}},
		{"payload replaced and the replacement refused", "leased", func(r *rig, x queue.Receipt) {
			refusedAfter(r, func(d *draft) { r.is(d.replacePayload(x, []byte("2")), nil) })
			r.is(r.release(x), nil)
		}, "", map[string]string{"m": mine}},
		{"payload replaced and a second replacement refused", "leased", func(r *rig, x queue.Receipt) {
			r.is(r.replacePayload(x, "2"), nil)
			refusedAfter(r, func(d *draft) { r.is(d.replacePayload(x, []byte("3")), nil) })
		}, "2", map[string]string{"m": "2"}},
		{"payload replaced and a failure refused", "leased", func(r *rig, x queue.Receipt) {
			r.is(r.replacePayload(x, "2"), nil)
			refusedAfter(r, func(d *draft) {
				_, err := d.fail(x, "no", "")
				r.is(err, nil)
			})
		}, "2", map[string]string{"m": "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			last := r.stand(c.standing)
			c.calls(r, last)
			var written []byte
			for _, o := range r.packed() {
				written = append(written, o.data...)
			}
			if string(written) != c.written {
				t.Errorf("written %q, want %q", written, c.written)
			}
			if c.want != nil {
				c.want["bystander"] = `{"id":"bystander"}`
			}
			if c.name == "cleared and enqueued again" {
				delete(c.want, "bystander")
			}
			r.delivers(c.want)
		})
	}
}

// In a batch object the bytes behind a message belong to the next one: a reference
// that keeps its place and takes another size would name them.
func TestPackReplacedAndFailedBesideNeighbours(t *testing.T) {
	r := newRig(t)
	_, err := r.enqueueAll("mail", arrivalOf("m", queue.Refuse), arrivalOf("n", queue.Refuse))
	r.settled(err)
	x := r.take("m").Receipt
	r.is(r.replacePayload(x, `"longer than what it replaces"`), nil)
	_, err = r.fail(x, "no", "")
	r.settled(err)
	r.delivers(map[string]string{"m": `"longer than what it replaces"`, "n": `{"id":"n"}`})
}

func TestPackWithoutRandomness(t *testing.T) {
	none := errors.New("no randomness")
	for _, sizes := range [][]int{{10}, {10, 10}, {1 << 17}, {1 << 17, 10}, repeated(20, 1<<16)} {
		r := newRig(t)
		r.enqueueSizes(sizes...)
		for left := range len(sizes) {
			objects, err := r.d.pack(func() (token, error) {
				if left--; left < 0 {
					return token{}, none
				}
				return r.token(), nil
			})
			if err == nil {
				break
			}
			if !errors.Is(err, none) || objects != nil {
				t.Errorf("%v: got %d objects and %v", sizes, len(objects), err)
			}
		}
		r.drop()
	}
}
