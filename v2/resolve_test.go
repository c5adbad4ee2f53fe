//go:build unix

package holdfast

import (
	"fmt"
	"slices"
	"testing"
)

// An uncertain commit "mine" would have made revision 10 over "base", which is
// revision 9. What a later state says of it:
func TestHappened(t *testing.T) {
	mine, base, fresh, later, other := namedToken("mine"), namedToken("base"), namedToken("fresh"), namedToken("later"), namedToken("other")
	for _, c := range []struct {
		name       string
		commit     token
		revision   uint64
		resolved   []outcome
		yes, known bool
	}{
		{"it is the state", mine, 10, nil, true, true},
		{"nothing came after the state that it was made from", base, 9, nil, false, true},
		{"an older state", other, 3, nil, false, true},
		{"another commit took its revision", other, 10, nil, false, true},
		{"a recovery took its revision", fresh, 10, []outcome{{base, 9}}, false, true},

		{"a recovery found it", fresh, 11, []outcome{{mine, 10}}, true, true},
		{"a recovery found it, long ago", later, 500, []outcome{{other, 4}, {mine, 10}, {other, 77}}, true, true},
		{"a recovery found the state before it", later, 11, []outcome{{base, 9}}, false, true},
		{"a recovery found the state before it, long ago", later, 500, []outcome{{other, 4}, {base, 9}, {other, 77}}, false, true},
		{"a recovery found another commit at its revision", later, 11, []outcome{{other, 10}}, false, true},
		{"a recovery found another commit at its revision, long ago", later, 500, []outcome{{other, 10}, {other, 77}}, false, true},

		// A recovery over revision 9 that was itself uncertain is "mine": the next one
		// found it.
		{"it was a recovery, and the next found it", later, 11, []outcome{{base, 9}, {mine, 10}}, true, true},

		{"nobody recovered since", later, 11, nil, false, false},
		{"recoveries of other revisions only", later, 500, []outcome{{other, 4}, {other, 8}, {other, 11}, {other, 77}}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := &state{commit: c.commit, revision: c.revision, resolved: c.resolved}
			if yes, known := st.happened(mine, 10); yes != c.yes || known != c.known {
				t.Errorf("happened %v, known %v; want %v, %v", yes, known, c.yes, c.known)
			}
		})
	}
}

func TestRemember(t *testing.T) {
	at := func(n int) outcome { return outcome{namedToken(fmt.Sprint(n)), uint64(n)} }
	var list []outcome
	for n := 1; n <= 3*maxResolved; n++ {
		before := slices.Clone(list)
		longer := remember(list, at(n))
		if !slices.Equal(list, before) {
			t.Fatalf("outcome %d changed the list that a published state has", n)
		}
		if want := min(n, maxResolved); len(longer) != want || longer[len(longer)-1] != at(n) || longer[0] != at(n-want+1) {
			t.Fatalf("after %d: %d outcomes, from %d to %d", n, len(longer), longer[0].revision, longer[len(longer)-1].revision)
		}
		if again := remember(longer, at(n)); !slices.Equal(again, longer) {
			t.Fatalf("outcome %d is remembered twice", n)
		}
		list = longer
	}
	// Two states made from one must not write into each other's list.
	a, b := remember(list, at(1000)), remember(list, at(2000))
	if a[maxResolved-1] != at(1000) || b[maxResolved-1] != at(2000) {
		t.Error("two lists share their end")
	}
	// One that is not the last is another outcome, whatever it says.
	if got := remember([]outcome{at(1), at(2)}, at(1)); len(got) != 3 {
		t.Errorf("got %d outcomes, want 3", len(got))
	}
}

// What recoveries remember, happened finds: as many as the format keeps, and no
// guess beyond.
func TestResolveAfterManyRecoveries(t *testing.T) {
	const n = 100
	st := &state{commit: namedToken("found 0"), revision: 1}
	for i := range n { // each recovery finds a commit at an even distance and goes on
		found := outcome{namedToken(fmt.Sprint("found ", i)), st.revision}
		st = &state{commit: namedToken(fmt.Sprint("found ", i+1)), revision: st.revision + 3, resolved: remember(st.resolved, found)}
		if len(st.resolved) > maxResolved {
			t.Fatalf("%d outcomes are kept", len(st.resolved))
		}
	}
	for i := range n {
		revision := uint64(1 + 3*i)
		known := i >= n-maxResolved
		for _, c := range []struct {
			commit   string
			revision uint64
			yes      bool
		}{{fmt.Sprint("found ", i), revision, true}, {"lost", revision, false}, {"lost", revision + 1, false}} {
			if yes, k := st.happened(namedToken(c.commit), c.revision); yes != (c.yes && known) || k != known {
				t.Errorf("%s at revision %d: happened %v, known %v; want %v, %v", c.commit, c.revision, yes, k, c.yes && known, known)
			}
		}
	}
}
