//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st := drawState(t)
		b := encodeState(nil, st)
		got, err := decodeState(b, stateFile, st.store)
		if err != nil {
			t.Fatalf("decode: %v\n%s", err, b)
		}
		if !reflect.DeepEqual(got, st) {
			t.Fatalf("decoded something else\n got %s\nwant %s", encodeState(nil, got), b)
		}
		clearTexts(got)
		if again := encodeState(nil, got); !bytes.Equal(again, b) {
			t.Fatalf("encoded differently\n got %s\nwant %s", again, b)
		}
		if head := stateHead(b); !bytes.HasPrefix(b, head) || !bytes.HasSuffix(head, fmt.Appendf(nil, `,"revision":"%d"`, st.revision)) {
			t.Fatalf("head %q", head)
		}
	})
}

// clearTexts makes the next encoding make every text again.
func clearTexts(st *state) {
	for _, q := range st.queues {
		for _, s := range q.slots {
			s.enc = nil
		}
		for _, r := range q.runs {
			r.enc = nil
		}
	}
	for _, f := range st.failed {
		for _, e := range f.entries {
			e.enc = nil
		}
		for _, r := range f.runs {
			r.enc = nil
		}
	}
}

func TestFormatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := drawToken(t)
		got, err := decodeFormat(encodeFormat(store), formatFile)
		if err != nil || got != store {
			t.Fatalf("got %s, %v; want %s", got, err, store)
		}
	})
	want := `{"protocol":"fs-safe-json-queue","version":2,"store":"` + namedToken("store").String() + "\"}\n"
	if got := string(encodeFormat(namedToken("store"))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStateHead(t *testing.T) {
	st := sampleState()
	st.revision = 1<<64 - 1
	b := encodeState(nil, st)
	head := stateHead(b[:headSize])
	if len(head) != headSize {
		t.Errorf("the longest head has %d bytes, headSize is %d", len(head), headSize)
	}
	if stateHead(b[:headSize-1]) != nil {
		t.Error("a head that is cut was taken")
	}
	for _, other := range []string{"", "{}", strings.Replace(string(b), `"version":2`, `"version":3`, 1), strings.Replace(string(b), `{"commit`, `{ "commit`, 1)} {
		if head := stateHead([]byte(other)); head != nil {
			t.Errorf("got head %q of %.60q", head, other)
		}
	}
}

// A decoded state must not hold on to the file's bytes: it outlives them, and a
// single slot that is left would keep them all.
func TestDecodedStateOwnsItsMemory(t *testing.T) {
	want := sampleState()
	b := encodeState(nil, want)
	got, err := decodeState(b, stateFile, want.store)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 'X'
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("the decoded state changed with the bytes that it was read from")
	}
	for _, q := range got.queues {
		for _, s := range q.slots {
			if cap(s.enc) != len(s.enc) {
				t.Errorf("%s/%s: a text of %d bytes in %d", q.name, s.id, len(s.enc), cap(s.enc))
			}
		}
	}
}

func TestEncodeTwiceAllocatesNothing(t *testing.T) {
	st := bigState(1000)
	buf := encodeState(nil, st)
	if n := testing.AllocsPerRun(10, func() { encodeState(buf[:0], st) }); n != 0 {
		t.Errorf("%v allocations for a state that did not change, want none", n)
	}
	slots := st.queues[0].slots
	changed := *slots[500]
	if n := testing.AllocsPerRun(10, func() {
		changed.enc = nil
		slots[500] = &changed
		encodeState(buf[:0], st)
	}); n != 1 {
		t.Errorf("%v allocations when one slot changed, want 1, its text", n)
	}
}

func TestUnchangedSlotIsNotEncodedAgain(t *testing.T) {
	st := sampleState()
	encodeState(nil, st)
	st.queues[0].slots[1].enc = []byte("KEPT SLOT")
	st.failed[0].entries[0].enc = []byte("KEPT ENTRY")
	b := encodeState([]byte("before "), st)
	for _, want := range []string{"before {", ",KEPT SLOT,", "[KEPT ENTRY,"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%q is not in %s", want, b)
		}
	}
}

// bigState is a queue of n pending messages as batches of 64 make them.
func bigState(n int) *state {
	st := &state{commit: namedToken("commit"), store: namedToken("store"), revision: 9, settings: Settings{Stop}}
	q := &queueState{name: "mail", next: 1e12 + uint64(n)}
	for i := range n {
		batch := fmt.Sprint(i / 64)
		q.slots = append(q.slots, &slot{id: fmt.Sprintf("%016d", i), pending: &ref{
			gen: generation{namedToken("commit" + batch), uint32(i % 64)}, object: namedToken("object" + batch),
			off: 1 + int64(i%64)*15000, size: 14999, sum: 0xdeadbeef, seq: 1e12 + uint64(i) - 1, enqueued: 1767323045678,
		}})
	}
	q.buildLine()
	st.queues = []*queueState{q}
	return st
}

// The design's budget: a pending slot with an ID of 16 bytes and its comma take at
// most 160.
func TestPendingSlotBudget(t *testing.T) {
	s := &slot{id: "0123456789abcdef", pending: &ref{
		gen: generation{namedToken("commit"), 999_999}, object: namedToken("object"),
		off: 1 << 20, size: 64 << 10, sum: 0xffffffff, seq: 1e12, enqueued: 1767323045678,
	}}
	if n := len(appendSlot(nil, s)) + len(","); n > 160 {
		t.Errorf("a pending slot takes %d bytes, the budget is 160", n)
	}
}

// refused checks that an error is the typed one with the reason.
func refused(t *testing.T, err error, file, reason string, sentinel error) {
	t.Helper()
	var corrupt *CorruptError
	switch {
	case err == nil:
		t.Errorf("taken, want %q", reason)
	case !errors.As(err, &corrupt):
		t.Errorf("got %T, want a *CorruptError: %v", err, err)
	case !strings.Contains(corrupt.Reason, reason) || corrupt.File != file:
		t.Errorf("got %q, want it to name %s and say %q", err, file, reason)
	case !errors.Is(err, sentinel):
		t.Errorf("got an error of kind %v, want %v: %v", corrupt.Err, sentinel, err)
	}
}

func TestFormatRefusals(t *testing.T) {
	store := namedToken("store")
	good := string(encodeFormat(store))
	for _, c := range []struct {
		name, old, new, reason string
		sentinel               error
	}{
		{"empty", good, "", "empty", ErrCorrupt},
		{"another version", `2,`, `3,`, "version 3", ErrVersion},
		{"another version with more in it", `2,`, `3,"more":true,`, "version 3", ErrVersion},
		{"another protocol", "json-queue", "yaml-queue", `protocol "fs-safe-yaml-queue"`, ErrCorrupt},
		{"version as text", `2,`, `"2",`, "want a number", ErrCorrupt},
		{"version with a fraction", `2,`, `2.0,`, "fraction", ErrCorrupt},
		{"unknown field", `,"store"`, `,"shop":1,"store"`, `unknown field "shop"`, ErrCorrupt},
		{"duplicate field", `,"store"`, `,"version":2,"store"`, `duplicate field "version"`, ErrCorrupt},
		{"case", `"store"`, `"Store"`, `field "Store"`, ErrCorrupt},
		{"missing field", `"version":2,`, ``, `field "store" out of order; want the field "version"`, ErrCorrupt},
		{"white space", `:2`, `: 2`, "white space", ErrCorrupt},
		{"token", store.String(), "../x", "not a token", ErrCorrupt},
		{"token in upper case", store.String(), strings.ToUpper(store.String()), "not a token", ErrCorrupt},
		{"trailing", "}\n", "}\n\n", "trailing bytes", ErrCorrupt},
		{"no newline", "}\n", "}", "half-written", ErrCorrupt},
		{"array", good, "[]\n", `want "{"`, ErrCorrupt},
		{"byte order mark", `{"p`, "\ufeff{\"p", `want "{"`, ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatal("the case changes nothing")
			}
			_, err := decodeFormat([]byte(bad), "format.json")
			refused(t, err, "format.json", c.reason, c.sentinel)
		})
	}
	for n := range len(good) {
		_, err := decodeFormat([]byte(good[:n]), "format.json")
		refused(t, err, "format.json", map[bool]string{true: "empty", false: "half-written"}[n == 0], ErrCorrupt)
	}
}

// Whatever piece of the file is missing at its end or was not replaced, the
// reason says that it is half-written.
func TestHalfWritten(t *testing.T) {
	st := sampleState()
	good := encodeState(nil, st)
	for n := 1; n < len(good); n++ {
		_, err := decodeState(good[:n], stateFile, st.store)
		refused(t, err, stateFile, "half-written", ErrCorrupt)
	}
	next := sampleState()
	next.commit = namedToken("commit 72")
	next.revision = 72
	next.queues[0].slots = next.queues[0].slots[1:]
	other := encodeState(nil, next)
	for _, n := range []int{len(`{"commit":"`) + tokenChars, 200, 1000, len(other) - 200, len(other) - 30} {
		_, err := decodeState(slices.Concat(other[:n], good[n:]), stateFile, st.store)
		refused(t, err, stateFile, "half-written: begins with commit "+next.commit.String()+" and ends with "+st.commit.String(), ErrCorrupt)
	}
	_, err := decodeState(make([]byte, len(good)), stateFile, st.store)
	refused(t, err, stateFile, "a zero byte", ErrCorrupt)
}

func BenchmarkDecodeState(b *testing.B) {
	st := bigState(90_000)
	text := encodeState(nil, st)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeState(text, stateFile, st.store); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeState(b *testing.B) {
	st := bigState(90_000)
	text := encodeState(nil, st)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		encodeState(text[:0], st)
	}
}
