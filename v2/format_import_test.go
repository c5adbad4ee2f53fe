//go:build unix

package holdfast

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// importA sorts before importB, as text.
var importA, importB = func() (a, b token) {
	a, b = namedToken("import 1"), namedToken("import 2")
	if a.String() > b.String() {
		a, b = b, a
	}
	return a, b
}()

// sampleImports is the sample with an open import into mail, which has brought a pending
// message, a claimed one and a failed one, and a closed one into mail/intake.
func sampleImports() *state {
	st := sampleState()
	st.imports = []importRecord{{token: importA, queue: "mail", open: true}, {token: importB, queue: "mail/intake"}}
	brought := func(index uint32, seq uint64) ref {
		return ref{
			gen: generation{namedToken("commit 3"), index}, object: namedToken("object 6"), off: int64(1 + 3*index), size: 2,
			sum: 7, seq: seq, enqueued: 1767323045000, mark: importA,
		}
	}
	waits, came, no := brought(0, 7), brought(1, 8), brought(2, 9)
	came.attempts, came.excused = 1, 1
	no.attempts, no.lastError = 1, importedError
	mail := st.queues[0]
	mail.next = 10
	mail.slots = append(mail.slots, &slot{id: "zoe", pending: &waits, claimed: &claim{ref: came, returned: released}})
	entries := append(st.failed[0].entries, &failedEntry{name: "eve", queue: "mail", id: "eve", ref: no, at: 1767323045000})
	st.failed[0].entries = entries
	for _, q := range st.queues {
		q.buildLine()
	}
	return st
}

// drawImports adds imports to a sound state, and marks of the open ones.
func drawImports(t *rapid.T, st *state) {
	some := rapid.Custom(drawToken).Filter(func(x token) bool { return !x.zero() })
	tokens := rapid.SliceOfNDistinct(some, 0, 3, token.String).Draw(t, "imports")
	slices.SortFunc(tokens, func(a, b token) int { return strings.Compare(a.String(), b.String()) })
	open := map[string]bool{}
	for _, x := range tokens {
		m := importRecord{token: x, queue: drawName(t, queue.CheckQueue)}
		if len(st.queues) > 0 && rapid.Bool().Draw(t, "into a queue that is there") {
			q := rapid.SampledFrom(st.queues).Draw(t, "queue")
			if m.queue, m.open = q.name, !open[q.name]; m.open {
				open[q.name] = true
				drawMarks(t, st, q, x)
			}
		}
		st.imports = append(st.imports, m)
	}
}

func drawMarks(t *rapid.T, st *state, q *queueState, x token) {
	mark := func(r *ref) {
		if rapid.Bool().Draw(t, "marked") {
			r.mark = x
		}
	}
	for _, s := range q.slots {
		if s.pending != nil {
			mark(s.pending)
		}
		if s.claimed != nil && s.claimed.returned == released {
			mark(&s.claimed.ref)
		}
	}
	for _, f := range st.failed {
		for _, e := range f.entries {
			if e.ref.mark.zero() && rapid.Bool().Draw(t, "from here") {
				e.queue = q.name
				mark(&e.ref)
			}
		}
	}
}

func TestImportsRoundTrip(t *testing.T) {
	st := sampleImports()
	text := string(encodeState(nil, st))
	for _, want := range []string{
		`"features":["import"],`,
		fmt.Sprintf(`]],"imports":[["%s","mail","open"],["%s","mail/intake"]],"queues":[`, importA, importB),
		fmt.Sprintf(`"s":7,"t":1767323045000,"i":"%s"},{"g"`, importA),
		fmt.Sprintf(`"a":1,"e":1,"i":"%s","back":"released"}]`, importA),
		fmt.Sprintf(`"a":1,"r":%q,"i":"%s"},1767323045000]`, importedError, importA),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	got, err := decodeState([]byte(text), stateFile, st.store)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, st) {
		t.Errorf("decoded something else\n got %s\nwant %s", encodeState(nil, got), text)
	}
}

// To close an import is to make the state shorter, whatever its queue's name.
func TestClosingMakesTheStateShorter(t *testing.T) {
	st := sampleState()
	st.imports = []importRecord{{token: importA, queue: "mail", open: true}}
	open := len(encodeState(nil, st))
	st.imports = []importRecord{{token: importA, queue: "mail"}}
	if closed := len(encodeState(nil, st)); closed >= open {
		t.Errorf("%d bytes open, %d closed", open, closed)
	}
}

// Every refusal of imports in docs/format-v2.md.
func TestImportRefusals(t *testing.T) {
	st := sampleImports()
	good := string(encodeState(nil, st))
	a, b, other := importA.String(), importB.String(), namedToken("import 3").String()
	rowA, rowB := fmt.Sprintf(`["%s","mail","open"]`, a), fmt.Sprintf(`["%s","mail/intake"]`, b)
	many := make([]string, maxImports+1)
	for i := range many {
		many[i] = fmt.Sprintf(`["%s","x"]`, namedToken(fmt.Sprint(i)))
	}
	slices.Sort(many)
	zero := token{}.String()
	for _, c := range []struct {
		name, old, new, reason string
		sentinel               error
	}{
		{"an unknown feature beside it", `["import"]`, `["import","wings"]`, `feature "wings"`, ErrVersion},
		{"an unknown feature behind a double", `["import"]`, `["import","import","wings"]`, `feature "wings"`, ErrVersion},
		{"the feature twice", `["import"]`, `["import","import"]`, `feature "import" twice`, ErrCorrupt},
		{"the feature without imports", `"imports":[` + rowA + "," + rowB + `],`, ``, "both or neither", ErrCorrupt},
		{"imports without the feature", `["import"]`, `[]`, "both or neither", ErrCorrupt},
		{"no import", rowA + "," + rowB, ``, "an empty list of imports", ErrCorrupt},
		{"not sorted", rowA + "," + rowB, rowB + "," + rowA, "not sorted, or twice", ErrCorrupt},
		{"twice", rowA + "," + rowB, rowA + "," + rowA, "not sorted, or twice", ErrCorrupt},
		{"two open into one queue", rowB, fmt.Sprintf(`["%s","mail","open"]`, b), `another one into queue "mail" is open`, ErrCorrupt},
		{"open into a queue that is not there", rowB, fmt.Sprintf(`["%s","nowhere","open"]`, b), `there is no queue "nowhere"`, ErrCorrupt},
		{"too many", rowA + "," + rowB, strings.Join(many, ","), "more than 1024 imports", ErrCorrupt},
		{"a token that is none", rowB, `["` + strings.ToUpper(b) + `","mail/intake"]`, "is not a token", ErrCorrupt},
		{"a token that is zero", rowA + "," + rowB, fmt.Sprintf(`["%s","mail"]`, zero), "an import whose token is zero", ErrCorrupt},
		{"closed in full", `"mail/intake"]],"queues"`, `"mail/intake","closed"]],"queues"`, `want "open`, ErrCorrupt},
		{"a queue that is none", `"mail/intake"]],"queues"`, `"mail/size"]],"queues"`, "size", ErrCorrupt},
		{"the marks of a closed one", `"mail","open"]`, `"mail"]`, `which is not open into queue "mail"`, ErrCorrupt},
		{"a mark of an unknown one", `"i":"` + a, `"i":"` + other, "of import " + other + ", which is not open", ErrCorrupt},
		{"a mark of one into another queue", `["eve","mail"`, `["eve","mail/intake"`, `which is not open into queue "mail/intake"`, ErrCorrupt},
		{"a mark that is zero", `"i":"` + a, `"i":"` + zero, "an import that is zero: it must be left out", ErrCorrupt},
		{"a mark that is no token", `"i":"` + a, `"i":"1`, "is not a token", ErrCorrupt},
		{"a mark on what was retried", `"back":"released"`, `"back":"retried"`, `ID "zoe": of an open import, and not released`, ErrCorrupt},
		{"a mark on what is out", `"e":1,"i":"` + a + `","back":"released"`, `"i":"` + a + `","lease":{"f":1}`, "not released", ErrCorrupt},
		{"the mark before the last error", fmt.Sprintf(`"r":%q,"i":"%s"`, importedError, a), fmt.Sprintf(`"i":"%s","r":%q`, a, importedError), `field "r" out of order`, ErrCorrupt},
		{"imports before the resolved", `"resolved":`, `"imports":[` + rowA + `],"resolved":`, `field "imports" out of order`, ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatal("the case changes nothing")
			}
			_, err := decodeState([]byte(bad), stateFile, st.store)
			refused(t, err, stateFile, c.reason, c.sentinel)
		})
	}
	for n := 1; n < len(good); n++ {
		_, err := decodeState([]byte(good[:n]), stateFile, st.store)
		refused(t, err, stateFile, "half-written", ErrCorrupt)
	}
	// What may be there: as many as the bound, and closed ones into queues that are not.
	rest := strings.Join(many[:maxImports], ",")
	bare := sampleState()
	bare.imports = []importRecord{{token: importA, queue: "x"}}
	text := strings.Replace(string(encodeState(nil, bare)), fmt.Sprintf(`["%s","x"]`, a), rest, 1)
	got, err := decodeState([]byte(text), stateFile, bare.store)
	if err != nil || len(got.imports) != maxImports {
		t.Errorf("1,024 closed imports: %v", err)
	}
}
