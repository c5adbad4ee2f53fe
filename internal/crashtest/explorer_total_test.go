//go:build unix

package crashtest

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// rows gives the cells of a table, and of each line what they say.
func rows(table string) (lines []string) {
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

// Totals are told by test and scenario, and only what each of several explorations met
// whole was met whole.
func TestTotals(t *testing.T) {
	total := func(t *testing.T) (mine Total) {
		t.Helper()
		for _, total := range Explored() {
			if total.Name == "register" && total.Test == t.Name() {
				return total
			}
		}
		t.Fatal("no total of this test")
		return mine
	}
	for _, all := range []bool{true, false} {
		name := map[bool]string{true: "all", false: "a sample too"}[all]
		t.Run(name, func(t *testing.T) {
			first := Explore(t, registerScenario(""), Options{})
			again := Options{SecondCrash: 1}
			if !all {
				again.MaxImages = 1
			}
			second := Explore(t, registerScenario(""), again)
			if !first.Exhaustive || second.Exhaustive != all {
				t.Fatalf("%v, then %v", first, second)
			}
			if mine := total(t); mine.Crashes != first.plus(second) || mine.Crashes.Points != first.Points+second.Points ||
				mine.Crashes.Exhaustive != all || mine.Errors != (Stats{}) {
				t.Errorf("%+v after %v and %v", mine, first, second)
			}
		})
	}
}

func TestTable(t *testing.T) {
	got := rows(Table([]Total{
		{Test: "TestA", Name: "a", Crashes: Stats{Ops: 3, Points: 7, Images: 20, Exhaustive: true, Checks: 9, Alike: 4}},
		{Test: "TestB", Name: "a", Crashes: Stats{Ops: 4, Points: 9, Images: 30, Checks: 8, Second: 2},
			Errors: Stats{Ops: 6, Points: 11, Images: 40, Checks: 1, Alike: 5, Missed: 3}},
		{Test: "TestB", Name: "b", Errors: Stats{Ops: 2, Points: 1, Images: 1}},
	}))
	want := []string{
		"test scenario operations crash points images second crashes error points images checks alike missed",
		"TestA a 3 7 20 all 0 0 0 9 4 0",
		"TestB a 6 9 30 sampled 2 11 40 9 5 3",
		"TestB b 2 0 0 - 0 1 1 0 0 0",
		"together 2 scenarios 16 50 2 12 41 18 9 3",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The table is printed where somebody asked to be told and there is something to tell.
func TestPrintExplored(t *testing.T) {
	list := []Total{{Test: "TestA", Name: "a"}}
	for _, tt := range []struct {
		name    string
		list    []Total
		verbose bool
		want    string
	}{
		{"verbose", list, true, "explored by this run:\n" + Table(list)},
		{"not verbose", list, false, ""},
		{"nothing explored", nil, true, ""},
	} {
		var b strings.Builder
		if printExplored(&b, tt.list, tt.verbose); b.String() != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, b.String(), tt.want)
		}
	}
}

// A process that is done before it was to die has met no point.
func TestUncertainPoints(t *testing.T) {
	s, d := registerScenario(""), NewDisk()
	s.Setup(t, d)
	d.Settle()
	run := func(p Plan) *Wrapper {
		w := Wrap(d.Clone().Process(), p)
		s.Run(w, &Journal{})
		return w
	}
	commit := func(path string) bool { return path == "state" }
	o := Options{MaxImages: 8, Errnos: []syscall.Errno{syscall.EIO}}
	plans, met := uncertain(run(Plan{}).Events(), o, commit), 1
	for _, text := range plans {
		p, err := parsePlan(text)
		if err != nil {
			t.Fatal(err)
		}
		if w := run(p); w.Fired() && (p.Die == 0 || errors.Is(dead(w), ErrStopped)) {
			met++
		}
	}
	if stats := ExploreUncertain(t, s, o, commit); stats.Points != met || met < 5 || met > len(plans) {
		t.Errorf("%v; %d of %d plans and the undisturbed run came to their points", stats, met, len(plans))
	}
}

// dead is ErrStopped where the process has died.
func dead(w *Wrapper) error {
	_, err := w.Stat("/")
	return err
}
