//go:build unix

package holdfast

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// sampleFailedRun is the sample with a run of four failed messages, of which ben has left,
// and its run.json.
func sampleFailedRun() (*state, []byte) {
	entry := func(i int, name, queueName string) *failedEntry {
		return &failedEntry{name: name, queue: queueName, id: name, at: 1767323090000 + int64(i), ref: ref{
			gen: generation{namedToken("commit 4"), uint32(i)}, object: namedToken("object 7"), off: int64(1 + 3*i), size: 2, sum: 7,
			seq: uint64(i), enqueued: 1767323045000, attempts: 1, lastError: "no",
		}}
	}
	all := []*failedEntry{entry(0, "amy", "mail"), entry(1, "ben", "mail"), entry(2, "cat", "mail"), entry(3, "kim", "mail/intake")}
	r, text := encodeFailedRun(all)
	r.name = namedToken("run 1")
	r = r.without(all, "ben")
	st := sampleState()
	st.failed[0].runs = []*failedRun{r}
	return st, text
}

// The page has it as its example.
func TestFailedRunExample(t *testing.T) {
	st, text := sampleFailedRun()
	page := string(mustRead(t, "../docs/format-v2.md"))
	for _, want := range []string{string(appendFailedRun(nil, st.failed[0].runs[0])), string(text)} {
		if !strings.Contains(page, "\n```\n"+strings.TrimSuffix(want, "\n")+"\n```\n") {
			t.Errorf("docs/format-v2.md does not have\n%s", want)
		}
	}
}

// What it writes it reads, and writes again in the same bytes.
func TestFailedRunRoundTrip(t *testing.T) {
	t.Run("sample", func(t *testing.T) {
		st, text := sampleFailedRun()
		b := encodeState(nil, st)
		got, err := decodeState(b, stateFile, st.store)
		mustDo(t, err)
		clearTexts(got)
		if again := encodeState(nil, got); !bytes.Equal(again, b) {
			t.Errorf("decoded and encoded again\n%swas\n%s", again, b)
		}
		r := got.failed[0].runs[0]
		all, err := decodeFailedRun(text, r, "run.json")
		if err != nil || len(all) != 4 || r.live() != 3 || r.from("mail") != 2 || r.from("mail/intake") != 1 || r.from("other") != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		want := `{"o":["` + namedToken("run 1").String() + fmt.Sprintf(`",%d,"%08x","%08x"],"c":4,"n":["amy","kim"],"q":[["mail",2],["mail/intake",1]],"x":"02"}`, len(text), checksum(text), r.filterSum)
		if got := string(appendFailedRun(nil, r)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		d := newDrawer(t)
		byName := map[string]*failedEntry{}
		for range rapid.IntRange(1, 20).Draw(t, "members") {
			name := drawName(t, queue.CheckFailedName)
			byName[name] = &failedEntry{name: name, queue: drawName(t, queue.CheckQueue), id: drawName(t, queue.CheckID), ref: d.ref(numbers.Draw(t, "seq"), 1), at: d.times()}
		}
		var all []*failedEntry
		for _, e := range byName {
			all = append(all, e)
		}
		slices.SortFunc(all, compareFailed)
		r, text := encodeFailedRun(all)
		if n := int64(runFrame + 2*filterBytes(len(all))); r.size < int64(len(all))*leastMember || r.size > maxRunBytes || n < int64(len(text)-entriesBytes(all)) {
			t.Fatalf("%d bytes, %d of them members", r.size, entriesBytes(all))
		}
		got, err := decodeFailedRun(text, r, "run.json")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, e := range got {
			e.enc = nil
		}
		if _, again := encodeFailedRun(got); !bytes.Equal(again, text) {
			t.Fatalf("decoded and encoded again\n%swas\n%s", again, text)
		}
	})
}

// entriesBytes is what members take in a run, commas included.
func entriesBytes(all []*failedEntry) (n int) {
	for _, e := range all {
		n += len(e.text()) + 1
	}
	return n
}

// The refusals of a reference in state.json.
func TestFailedRunReferenceRefusals(t *testing.T) {
	st, text := sampleFailedRun()
	good := string(encodeState(nil, st))
	size := fmt.Sprintf(`",%d,"`, len(text))
	reference := string(appendFailedRun(nil, st.failed[0].runs[0]))
	for _, c := range []struct{ name, old, new, reason string }{
		{"no feature", `"features":["runs"]`, `"features":[]`, `runs, without the feature "runs"`},
		{"the feature and no run", `"runs":[` + reference + `],`, ``, `the feature "runs", and no run`},
		{"an empty list", `"runs":[` + reference + `],`, `"runs":[],`, "an empty list of runs"},
		{"twice", reference, reference + "," + reference, "twice"},
		{"behind the entries", `"entries":[]`, `"entries":[],"runs":[` + reference + `]`, `field "runs" out of order`},
		{"no object", `"o":["` + namedToken("run 1").String(), `"o":["x`, "is not a token"},
		{"no members", `"c":4`, `"c":0`, "a run of 0 members"},
		{"too many members", `"c":4`, `"c":4097`, "a run of 4097 members"},
		{"too small", size, `",399,"`, "a run of 4 members in 399 bytes"},
		{"too large", size, `",4194305,"`, "in 4194305 bytes"},
		{"no names", `"n":["amy","kim"],`, ``, `want the field "n"`},
		{"one name for several", `"n":["amy","kim"]`, `"n":["amy","amy"]`, `4 members from failed name "amy" to "amy"`},
		{"names the other way round", `"n":["amy","kim"]`, `"n":["kim","amy"]`, `from failed name "kim" to "amy"`},
		{"a bad name", `"n":["amy"`, `"n":["a/b"`, "only A-Z"},
		{"no queues", `,"q":[["mail",2],["mail/intake",1]]`, ``, `want the field "q"`},
		{"queues not sorted", `["mail",2],["mail/intake",1]`, `["mail/intake",1],["mail",2]`, `queue "mail" after "mail/intake"`},
		{"a queue twice", `["mail",2],["mail/intake",1]`, `["mail",2],["mail",1]`, "twice"},
		{"a queue of none", `["mail/intake",1]]`, `["mail/intake",1],["n",0]]`, "members of a queue of zero"},
		{"more than there are", `["mail",2]`, `["mail",3]`, "4 members by their queues, 3 by those gone"},
		{"far more than there are", `["mail",2]`, `["mail",4097]`, `4097 members of queue "mail"`},
		{"all gone", `"x":"02"`, `"x":"0f"`, "all or none"},
		{"none gone", `"x":"02"`, `"x":"00"`, "all or none"},
		{"gone beyond the members", `"x":"02"`, `"x":"12"`, "more than the 4 that there are"},
		{"gone in upper case", `"x":"02"`, `"x":"0A"`, "not 1 bytes in lower-case"},
		{"gone too long", `"x":"02"`, `"x":"0200"`, "not 1 bytes"},
		{"an unknown field", `,"x":"02"}`, `,"x":"02","y":1}`, `unknown field "y"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(good, c.old) == 0 {
				t.Fatalf("%s is not in\n%s", c.old, good)
			}
			_, err := decodeState([]byte(strings.Replace(good, c.old, c.new, 1)), stateFile, st.store)
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.File != stateFile || !strings.Contains(corrupt.Reason, c.reason) {
				t.Errorf("%v, want %q", err, c.reason)
			}
		})
	}
	t.Run("not sorted", func(t *testing.T) {
		a, b := *st.failed[0].runs[0], *st.failed[0].runs[0]
		a.name, b.name = namedToken("run 2"), namedToken("run 3")
		a.enc, b.enc = nil, nil
		runs := []*failedRun{&a, &b}
		slices.SortFunc(runs, func(a, b *failedRun) int { return slices.Compare(b.name[:], a.name[:]) })
		wrong, _ := sampleFailedRun()
		wrong.failed[0].runs = runs
		if _, err := decodeState(encodeState(nil, wrong), stateFile, st.store); err == nil || !strings.Contains(err.Error(), "not sorted by object") {
			t.Errorf("%v", err)
		}
		slices.Reverse(runs)
		if _, err := decodeState(encodeState(nil, wrong), stateFile, st.store); err != nil {
			t.Error(err)
		}
	})
}

// The refusals of run.json. Each reference is made to fit the spoilt text, or the text
// would be refused by its checksum alone.
func TestFailedRunRefusals(t *testing.T) {
	st, text := sampleFailedRun()
	good := st.failed[0].runs[0]
	filter := string(text[len(filterBegin):][:2*filterBytes(4)])
	spoilt, _ := hex.DecodeString(filter)
	spoilt[2] ^= 1
	for _, c := range []struct {
		name, old, new string
		change         func(r *failedRun)
		reason         string
	}{
		{"another filter", filter, hex.EncodeToString(spoilt), nil, "the filter is not that of its members"},
		{"another filter's checksum", "", "", func(r *failedRun) { r.filterSum++ }, "the filter is not that of its members"},
		{"a filter in upper case", filter, strings.ToUpper(filter), nil, "the filter is not that"},
		{"fewer members", "", "", func(r *failedRun) { r.count = 3; r.gone = nil }, ""},
		{"another first name", "", "", func(r *failedRun) { r.first = "aaa" }, `failed names "amy" to "kim": state.json says "aaa" to "kim"`},
		{"another last name", "", "", func(r *failedRun) { r.last = "zoe" }, `state.json says "amy" to "zoe"`},
		{"other queues", "", "", func(r *failedRun) { r.queues = []queueShare{{"mail", 3}} }, `members of "mail" 2, "mail/intake" 1: state.json says "mail" 3`},
		{"another member gone", "", "", func(r *failedRun) { r.gone = []byte{8} }, "members of"},
		{"members not sorted", `["ben","mail","ben"`, `["zen","mail","zen"`, nil, `failed name "cat" after "zen": not sorted, or twice`},
		{"a name twice", `["ben","mail","ben"`, `["amy","mail","ben"`, nil, `failed name "amy" after "amy"`},
		{"a generation twice", namedToken("commit 4").String() + ".1", namedToken("commit 4").String() + ".0", nil, "is at byte"},
		{"bytes twice", `",4,2,`, `",2,2,`, nil, "overlap"},
		{"of an open import", `"a":1,"r":"no"}`, `"a":1,"r":"no","i":"` + importA.String() + `"}`, nil, "which is not open"},
		{"an unknown field", `"entries":`, `"more":1,"entries":`, nil, `unknown field "more"`},
		{"no newline", "]}\n", "]}", nil, "want"},
		{"trailing bytes", "]}\n", "]}\n\n", nil, "1 trailing bytes"},
		{"of pending ones", `"entries":`, `"slots":`, nil, `unknown field "slots"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := []byte(strings.Replace(string(text), c.old, c.new, 1))
			r := *good
			if c.old != "" {
				r.size, r.sum = int64(len(b)), checksum(b)
				if strings.Contains(c.old, filter) {
					r.filterSum = checksum([]byte(c.new))
				}
			}
			if c.change != nil {
				c.change(&r)
			}
			_, err := decodeFailedRun(b, &r, "objects/x/run.json")
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.File != "objects/x/run.json" || !strings.Contains(corrupt.Reason, c.reason) {
				t.Errorf("%v, want %q", err, c.reason)
			}
		})
	}
	for i := range text {
		b := bytes.Clone(text)
		b[i] ^= 1
		if _, err := decodeFailedRun(b, good, "run.json"); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d spoilt: %v", i, err)
		}
	}
	for _, b := range [][]byte{nil, text[:len(text)-1], append(bytes.Clone(text), '\n')} {
		if _, err := decodeFailedRun(b, good, "run.json"); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}

func FuzzDecodeFailedRun(f *testing.F) {
	st, text := sampleFailedRun()
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte{})
	f.Add(bytes.Replace(text, []byte(`"ben"`), []byte(`"amy"`), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := *st.failed[0].runs[0]
		r.size, r.sum = int64(len(b)), checksum(b)
		got, err := decodeFailedRun(b, &r, stateFile)
		if err != nil {
			checkRefusal(t, b, err)
			return
		}
		for _, e := range got {
			e.enc = nil
		}
		if _, again := encodeFailedRun(got); !bytes.Equal(again, b) {
			t.Fatalf("two spellings of one run\n   %q\nand %q", b, again)
		}
	})
}
