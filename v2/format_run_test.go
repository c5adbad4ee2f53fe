//go:build unix

package holdfast

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// sampleRuns is the example of runs in docs/format-v2.md, and the texts of its two runs.
// One holds b, c and d, of which c was replaced since; the other e and f, which are
// scheduled, the later one enqueued first.
func sampleRuns() (st *state, due, scheduled []byte) {
	batch, commit := namedToken("object 6"), namedToken("commit 6")
	pending := func(id string, seq uint64, notBefore int64) *slot {
		payload := []byte(`"` + id + `"`)
		return &slot{id: id, pending: &ref{
			gen: generation{commit, uint32(seq)}, object: batch, off: 1 + 4*int64(seq), size: int64(len(payload)), sum: checksum(payload),
			seq: seq, enqueued: 1767323045678, notBefore: notBefore,
		}}
	}
	members := []*slot{pending("b", 1, 0), pending("c", 2, 0), pending("d", 3, 0)}
	one, due := encodeRun(members)
	one.name = namedToken("run 1")
	one = one.without(newBody(members), func(i int) bool { return i == 1 })
	two, scheduled := encodeRun([]*slot{pending("f", 5, 1767326645678), pending("e", 4, 1767330245678)})
	two.name = namedToken("run 2")

	newer := pending("c", 6, 0)
	newer.pending.gen, newer.pending.object, newer.pending.off = generation{namedToken("commit 7"), 0}, namedToken("object 7"), 0
	q := &queueState{
		name: "mail", next: 7, counters: queue.Counters{Enqueued: 7, Superseded: 1},
		runs: []*run{one, two}, slots: []*slot{pending("a", 0, 0), newer},
	}
	q.buildLine()
	return &state{
		commit: namedToken("commit 9"), store: namedToken("store"), revision: 9,
		settings: Settings{OnDeadOwner: Stop}, queues: []*queueState{q},
	}, due, scheduled
}

func TestRunFormat(t *testing.T) {
	st, due, scheduled := sampleRuns()
	for _, c := range []struct {
		file string
		want []byte
	}{{"state.json with runs", encodeState(nil, st)}, {"run.json", due}, {"run.json of scheduled messages", scheduled}} {
		if got := docExample(t, c.file); !bytes.Equal(got, c.want) {
			t.Errorf("%s in docs/format-v2.md\n got %s\nwant %s", c.file, got, c.want)
		}
	}
	got, err := decodeState(encodeState(nil, st), stateFile, st.store)
	mustDo(t, err)
	if !reflect.DeepEqual(got, st) {
		t.Error("the example decodes to something else than what was encoded")
	}
	for i, text := range [][]byte{due, scheduled} {
		r := got.queues[0].runs[i]
		m, err := decodeRun(text, r, runPath(r.name))
		mustDo(t, err)
		for _, s := range m.slots {
			s.enc = nil
		}
		again, b := encodeRun(m.slots)
		if !bytes.Equal(b, text) {
			t.Errorf("run %d, encoded again\n got %s\nwant %s", i, b, text)
		}
		if again.size != r.size || again.sum != r.sum || again.filterSum != r.filterSum || again.count != r.count {
			t.Errorf("run %d refers to %+v, want %+v", i, again, r)
		}
	}
	r := got.queues[0].runs[0]
	if r.live() != 2 || r.has(1) || r.first != 1 || r.last != 3 || r.gone[0] != 0b010 {
		t.Errorf("the run that c left: %+v", r)
	}
}

// Every refusal of a reference to a run, each made from the sample by one change.
func TestRunReferenceRefusals(t *testing.T) {
	st, _, _ := sampleRuns()
	good := string(encodeState(nil, st))
	one, two := st.queues[0].runs[0], st.queues[0].runs[1]
	text := func(r *run) string { return string(appendRun(nil, r)) }
	list := `"runs":[` + text(one) + "," + text(two) + `],`
	changed := func(r *run, old, new string) (string, string) {
		bad := strings.Replace(text(r), old, new, 1)
		if bad == text(r) {
			t.Fatalf("%q is not in %s", old, text(r))
		}
		return text(r), bad
	}
	type refusal struct {
		name, old, new, reason string
		sentinel               error
	}
	var cases []refusal
	add := func(name, old, new, reason string) {
		cases = append(cases, refusal{name, old, new, reason, ErrCorrupt})
	}
	in := func(name string, r *run, old, new, reason string) {
		from, to := changed(r, old, new)
		add(name, from, to, reason)
	}
	gone := hex.EncodeToString(one.gone)
	object := fmt.Sprintf(`"o":["%s",%d,"%08x","%08x"]`, one.name, one.size, one.sum, one.filterSum)

	cases = append(cases, refusal{"to a program without the feature", `"features":["runs"]`, `"features":["runs","wings"]`, `feature "wings"`, ErrVersion})
	add("no feature", `"features":["runs"]`, `"features":[]`, `runs, without the feature "runs"`)
	add("the feature and no run", list, ``, `the feature "runs", and no run`)
	add("an empty list", list, `"runs":[],`, "an empty list of runs: it must be left out")
	add("runs behind the slots", list+`"slots":[`, `"slots":[`+list, "")
	add("one run twice", text(two), text(one), "twice")
	add("not sorted", text(one)+","+text(two), text(two)+","+text(one), "not sorted by first sequence")
	in("beyond the queue's next", one, `"s":[1,3]`, `"s":[1,7]`, "sequence 7, but the queue's next is 7")
	in("within another", two, `"s":[4,5],"n":[1767326645678,1767330245678]`, `"s":[2,5]`, "within another")
	in("no token", one, one.name.String(), "../x", `run "../x" is not a token`)
	in("a token with spare bits", one, one.name.String(), one.name.String()[:25]+"b", "is not a token")
	in("no size", one, fmt.Sprintf(",%d,", one.size), ",", "want a number")
	in("too small for its members", one, fmt.Sprintf(",%d,", one.size), ",299,", "a run of 3 members in 299 bytes")
	in("larger than any run", one, fmt.Sprintf(",%d,", one.size), fmt.Sprintf(",%d,", maxRunBytes+1), "members in 4194305 bytes")
	in("a short checksum", one, fmt.Sprintf("%08x", one.sum), fmt.Sprintf("%08x", one.sum)[1:], "checksum")
	in("a checksum in upper case", one, fmt.Sprintf("%08x", one.sum), "0123ABCD", `checksum "0123ABCD"`)
	in("no checksum of the filter", one, fmt.Sprintf(`,"%08x"]`, one.filterSum), "]", `want ","`)
	in("a long checksum of the filter", one, fmt.Sprintf(`"%08x"]`, one.filterSum), `"012345678"]`, "checksum")
	in("no members", one, `"c":3`, `"c":0`, "a run of 0 members: from 1 to 4096")
	in("too many members", one, `"c":3`, `"c":4097`, "a run of 4097 members: from 1 to 4096")
	in("a count with a leading zero", one, `"c":3`, `"c":03`, "leading zero")
	in("the last before the first", one, `"s":[1,3]`, `"s":[3,1]`, "a run with 2 members from sequence 3 to 1")
	in("more members than sequences", two, `"s":[4,5]`, `"s":[5,5]`, "a run with 2 members from sequence 5 to 5")
	in("due from zero", two, `"n":[1767326645678,`, `"n":[0,`, "not-before of zero")
	in("due backwards", two, `"n":[1767326645678,1767330245678]`, `"n":[1767330245678,1767326645678]`, "a run that is due from 1767330245678 to 1767326645678")
	in("due without an end", two, `"n":[1767326645678,1767330245678]`, `"n":[1767326645678]`, `want ","`)
	in("none gone, in full", one, `,"x":"`+gone+`"`, `,"x":"00"`, "all or none")
	in("all gone", one, `,"x":"`+gone+`"`, `,"x":"07"`, "all or none")
	in("one gone that is not there", one, `,"x":"`+gone+`"`, `,"x":"08"`, "more than the 3 that there are")
	in("too many bytes gone", one, `,"x":"`+gone+`"`, `,"x":"0200"`, "not 1 bytes in lower-case hexadecimal digits")
	in("half a byte gone", one, `,"x":"`+gone+`"`, `,"x":"2"`, "not 1 bytes in lower-case hexadecimal digits")
	in("gone in upper case", one, `,"x":"`+gone+`"`, `,"x":"0A"`, "lower-case hexadecimal digits")
	in("gone before the times", two, `,"n":[`, `,"x":"01","n":[`, `field "n" out of order`)
	in("a field too many", one, `"c":3`, `"c":3,"z":0`, `unknown field "z"`)
	in("a field too few", one, `"c":3,`, ``, `want the field "c"`)
	in("a field twice", one, `"c":3`, `"c":3,"c":3`, `duplicate field "c"`)
	in("a field in another case", one, `"c":3`, `"C":3`, `field "C": its name is "c"`)
	in("fields swapped", one, object+`,"c":3`, `"c":3,`+object, `field "c" out of order`)
	in("white space", one, `"c":3`, `"c": 3`, "white space")

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatal("the case changes nothing")
			}
			_, err := decodeState([]byte(bad), stateFile, st.store)
			refused(t, err, stateFile, c.reason, c.sentinel)
		})
	}
}

// Every refusal of run.json, each made from the sample by one change; its reference is
// made to fit it as far as it can.
func TestRunRefusals(t *testing.T) {
	st, due, scheduled := sampleRuns()
	one, two := st.queues[0].runs[0], st.queues[0].runs[1]
	whole := *one
	whole.gone = nil
	member := func(text []byte, id string) string {
		_, rest, _ := strings.Cut(string(text), `["`+id+`",`)
		ref, _, _ := strings.Cut(rest, "]]")
		ref, _, _ = strings.Cut(ref, `],["`)
		return `["` + id + `",` + ref + "]"
	}
	filter := string(due[len(filterBegin) : len(filterBegin)+2*filterBytes(3)])
	twice := hex.EncodeToString(newFilter([]*slot{{id: "b"}, {id: "b"}, {id: "d"}}))
	b, c, d := member(due, "b"), member(due, "c"), member(due, "d")
	for _, x := range []struct {
		name     string
		r        *run
		text     []byte
		old, new string
		reason   string
	}{
		{"empty", one, due, string(due), "", "empty"},
		{"a case variant", one, due, `"slots"`, `"Slots"`, `field "Slots": its name is "slots"`},
		{"an unknown field", one, due, `"slots"`, `"z":0,"slots"`, `unknown field "z"`},
		{"no filter", one, due, `"filter":"` + filter + `",`, ``, `want the field "filter"`},
		{"white space", one, due, `"slots":[`, `"slots": [`, "white space"},
		{"no line feed", one, due, "]}\n", "]}", ""},
		{"bytes behind it", one, due, "]}\n", "]}\n\n", "trailing bytes"},
		{"a longer filter", one, due, `"filter":"`, `"filter":"00`, "filter"},
		{"a filter in upper case", one, due, filter, strings.ToUpper(filter), "the filter is not that of its members"},
		{"another filter", one, due, filter, "00" + filter[2:], "the filter is not that of its members"},
		{"no member", one, due, b + "," + c + "," + d, "", "0 members: state.json says 3"},
		{"a member too few", one, due, "," + d, "", "2 members: state.json says 3"},
		{"members swapped", one, due, b + "," + c, c + "," + b, `ID "b": not sorted`},
		{"one member twice", one, due, c, b, "generation"},
		{"one sequence twice", one, due, `"s":2`, `"s":1`, `ID "c": not sorted`},
		{"one ID twice", one, []byte(strings.Replace(string(due), filter, twice, 1)), `["c",`, `["b",`, "an ID twice"},
		{"overlapping payloads", one, due, `,9,3,`, `,6,3,`, "overlap"},
		{"a member that waits behind a claim", one, due, c[:len(c)-1], c[:len(c)-1] + `,{"g":"` + namedToken("commit 8").String() + `.0","p":["` + namedToken("object 8").String() + `",0,1,"00000000"],"s":9,"t":1,"a":1,"lease":{"f":1}}`, "not as a member of a run is"},
		{"a claimed member", one, due, `["c",{`, `["c",null,{`, ""},
		{"a member with a key", one, due, `"s":2,"t":1767323045678`, `"s":2,"t":1767323045678,"k":"chat"`, "not as a member of a run is"},
		{"a member with attempts", one, due, `"s":2,"t":1767323045678`, `"s":2,"t":1767323045678,"a":1`, "pending, with 1 attempts"},
		{"a member with a last error", one, due, `"s":2,"t":1767323045678`, `"s":2,"t":1767323045678,"r":"no"`, "not as a member of a run is"},
		{"a member of an import", one, due, `"s":2,"t":1767323045678`, `"s":2,"t":1767323045678,"i":"` + namedToken("import").String() + `"`, ""},
		{"a scheduled member", one, due, `"s":3,"t":1767323045678`, `"s":3,"t":1767323045678,"n":5`, "scheduled among others that are not"},
		{"a member that is not scheduled", two, scheduled, `"n":1767326645678`, `"a":0`, ""},
		{"times swapped", two, scheduled, `"n":1767326645678`, `"n":1767330245679`, "not sorted"},
		{"another first sequence", &whole, due, `"s":1`, `"s":0`, "sequences 0 to 3"},
		{"another last sequence", &whole, due, `"s":3`, `"s":4`, "sequences 1 to 4"},
		{"another first time", two, scheduled, `"n":1767326645678`, `"n":1767326645679`, "due from 1767326645679"},
		{"another last time", two, scheduled, `"n":1767330245678`, `"n":1767330245677`, "to 1767330245677"},
		{"a bad ID", one, due, `["b",`, `[".b",`, `ID ".b"`},
	} {
		t.Run(x.name, func(t *testing.T) {
			bad := strings.Replace(string(x.text), x.old, x.new, 1)
			if bad == string(x.text) {
				t.Fatal("the case changes nothing")
			}
			r := *x.r
			r.size, r.sum = int64(len(bad)), checksum([]byte(bad))
			if x.name == "one ID twice" { // its filter is right
				r.filterSum = checksum([]byte(bad[len(filterBegin):][:2*filterBytes(r.count)]))
			}
			_, err := decodeRun([]byte(bad), &r, runPath(r.name))
			refused(t, err, runPath(r.name), x.reason, ErrCorrupt)
		})
	}
}

// Whatever is changed in a run's file, by as little as a bit, its reference tells.
func TestRunChecksum(t *testing.T) {
	st, due, _ := sampleRuns()
	r := st.queues[0].runs[0]
	for i := range due {
		bad := bytes.Clone(due)
		bad[i] ^= 1
		_, err := decodeRun(bad, r, runPath(r.name))
		refused(t, err, runPath(r.name), "with checksum", ErrCorrupt)
	}
	for _, bad := range [][]byte{due[:len(due)-1], append(bytes.Clone(due), ' ')} {
		_, err := decodeRun(bad, r, runPath(r.name))
		refused(t, err, runPath(r.name), fmt.Sprintf("%d bytes", len(bad)), ErrCorrupt)
	}
}

// drawRun draws the members of a run.
func drawRun(t *rapid.T) []*slot {
	d := newDrawer(t)
	ids := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string { return drawName(t, queue.CheckID) }), 1, 12, rapid.ID).Draw(t, "ids")
	scheduled := rapid.Bool().Draw(t, "scheduled")
	var slots []*slot
	for i, id := range ids {
		r := d.ref(uint64(i)*3, 0)
		r.key, r.lastError, r.excused, r.lapses, r.notBefore = "", "", 0, 0, 0
		if scheduled {
			r.notBefore = rapid.Int64Range(1, 9).Draw(t, "not before")
		}
		slots = append(slots, &slot{id: id, pending: &r})
	}
	slices.SortFunc(slots, compareMembers)
	return slots
}

// Any run is read as it was written, has one spelling, and its filter says yes to each of
// its members; its reference too, whoever has left.
func TestRunRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := drawRun(t)
		r, text := encodeRun(slots)
		r.name = drawToken(t)
		m, err := decodeRun(text, r, runPath(r.name))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range m.slots {
			if s.id != slots[i].id || *s.pending != *slots[i].pending {
				t.Fatalf("member %d is %+v, want %+v", i, s.pending, slots[i].pending)
			}
			if at, ok := m.find(s.id); !ok || at != i {
				t.Fatalf("ID %q is at %d, %v; want %d", s.id, at, ok, i)
			}
			s.enc = nil
		}
		off, size := r.filterText()
		filter, err := parseFilter(text[off : off+size])
		if err != nil || checksum(text[off:off+size]) != r.filterSum {
			t.Fatalf("the filter's text is %q: %v", text[off:off+size], err)
		}
		for _, s := range slots {
			if !mayHold(filter, s.id) {
				t.Fatalf("the filter has no %q", s.id)
			}
		}
		if _, again := encodeRun(m.slots); !bytes.Equal(again, text) {
			t.Fatalf("two spellings of one run\n   %q\nand %q", text, again)
		}
		if left := rapid.Uint16().Draw(t, "who left"); true {
			r = r.without(m, func(i int) bool { return left>>i&1 == 1 })
		}
		if r == nil {
			return
		}
		if r.live() == r.count {
			r.gone = nil
		}
		if _, err := decodeRun(text, r, runPath(r.name)); err != nil {
			t.Fatalf("after some have left: %v", err)
		}
		b := appendRun(nil, r)
		d := decoder{scanner: newScanner(b)}
		got := d.run()
		if d.err != nil || d.i != len(b) {
			t.Fatalf("%s: read to byte %d, %v", b, d.i, d.err)
		}
		want := *r
		want.enc = b
		if !reflect.DeepEqual(got, &want) {
			t.Fatalf("got %+v, want %+v", got, &want)
		}
	})
}

func FuzzDecodeRun(f *testing.F) {
	st, due, scheduled := sampleRuns()
	for i, text := range [][]byte{due, scheduled} {
		r := st.queues[0].runs[i]
		f.Add(text, r.count, r.first, r.last, r.from, r.to, r.gone)
		f.Add(bytes.Replace(text, []byte(`"s":3`), []byte(`"s":1`), 1), r.count, r.first, r.last, r.from, r.to, r.gone)
		f.Add(text[:len(text)/2], r.count, r.first, r.last, r.from, r.to, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte, count int, first, last uint64, from, to int64, gone []byte) {
		if count < 1 || count > maxRun || len(gone) != (count+7)/8 {
			count, gone = 3, nil
		}
		r := &run{sealedObject: sealedObject{name: namedToken("run"), size: int64(len(b)), sum: checksum(b), count: count, gone: gone}, first: first, last: last, from: from, to: to}
		if off, size := r.filterText(); len(b) >= off+size {
			r.filterSum = checksum(b[off : off+size])
		}
		m, err := decodeRun(b, r, runPath(r.name))
		if err != nil {
			checkRefusal(t, b, err)
			return
		}
		for _, s := range m.slots {
			s.enc = nil
		}
		if _, again := encodeRun(m.slots); !bytes.Equal(again, b) {
			t.Fatalf("two spellings of one run\n   %q\nand %q", b, again)
		}
	})
}

func FuzzDecodeRunReference(f *testing.F) {
	st, _, _ := sampleRuns()
	for _, r := range st.queues[0].runs {
		good := appendRun(nil, r)
		f.Add(good)
		f.Add(bytes.Replace(good, []byte(`"c":`), []byte(`"c":4`), 1))
		f.Add(bytes.Replace(good, []byte(`"x":"02"`), []byte(`"x":"08"`), 1))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{scanner: newScanner(b)}
		r := d.run()
		if d.err != nil {
			checkRefusal(t, b, d.corrupt(stateFile))
			return
		}
		r.enc = nil
		if again := appendRun(nil, r); !bytes.Equal(again, b[:d.i]) {
			t.Fatalf("two spellings of one reference\n   %q\nand %q", b[:d.i], again)
		}
		if r.live() < 1 || r.live() > r.count || r.last < r.first {
			t.Fatalf("%s: %d live, %d to %d", b, r.live(), r.first, r.last)
		}
	})
}
