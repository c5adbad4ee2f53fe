//go:build unix

package crashtest

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

// A Total is all that one test of this process has explored of one scenario. Where it
// explored the scenario several times, crash points that they share are counted by each.
type Total struct {
	Test    string // the whole name
	Name    string // of the scenario
	Crashes Stats  // of Explore
	Errors  Stats  // of ExploreErrors and ExploreUncertain
}

var totals struct {
	sync.Mutex
	of map[[2]string]*Total // by test and scenario
}

// addTotal adds what one exploration did.
func addTotal(test, scenario string, failing bool, s Stats) {
	totals.Lock()
	defer totals.Unlock()
	if totals.of == nil {
		totals.of = map[[2]string]*Total{}
	}
	key := [2]string{test, scenario}
	t := totals.of[key]
	if t == nil {
		t = &Total{Test: test, Name: scenario}
		totals.of[key] = t
	}
	if failing {
		t.Errors = t.Errors.plus(s)
	} else {
		t.Crashes = t.Crashes.plus(s)
	}
}

// plus adds two explorations. All images were met if each met all of its own.
func (s Stats) plus(o Stats) Stats {
	return Stats{
		Ops:    max(s.Ops, o.Ops),
		Points: s.Points + o.Points, Images: s.Images + o.Images, Second: s.Second + o.Second,
		Checks: s.Checks + o.Checks, Alike: s.Alike + o.Alike, Missed: s.Missed + o.Missed,
		Exhaustive: (s.Points == 0 || s.Exhaustive) && (o.Points == 0 || o.Exhaustive),
	}
}

// Explored gives what this process has explored so far, by the names of tests and scenarios.
func Explored() (list []Total) {
	totals.Lock()
	defer totals.Unlock()
	for _, t := range totals.of {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Total) int { return cmp.Or(cmp.Compare(a.Test, b.Test), cmp.Compare(a.Name, b.Name)) })
	return list
}

// PrintExplored prints the table of what this process has explored, if it has and the run is
// verbose. It is for a TestMain, which hands it to leak.Main or reexec.Main.
func PrintExplored(w io.Writer) { printExplored(w, Explored(), testing.Verbose()) }

func printExplored(w io.Writer, list []Total, verbose bool) {
	if verbose && len(list) > 0 {
		fmt.Fprintf(w, "explored by this run:\n%s", Table(list))
	}
}

// Table prints totals, one line each and their sum.
func Table(list []Total) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "test\tscenario\toperations\tcrash points\timages\t\tsecond crashes\terror points\timages\tchecks\talike\tmissed\t")
	var sum Total
	names := map[string]bool{}
	for _, t := range list {
		kind := "sampled"
		if t.Crashes.Exhaustive {
			kind = "all"
		}
		if t.Crashes.Points == 0 {
			kind = "-"
		}
		row(w, t, fmt.Sprint(max(t.Crashes.Ops, t.Errors.Ops)), kind)
		sum.Crashes = sum.Crashes.plus(t.Crashes)
		sum.Errors = sum.Errors.plus(t.Errors)
		names[t.Name] = true
	}
	sum.Test, sum.Name = "together", fmt.Sprint(len(names), " scenarios")
	row(w, sum, "", "")
	_ = w.Flush() // to memory
	return b.String()
}

func row(w *tabwriter.Writer, t Total, ops, kind string) {
	both := t.Crashes.plus(t.Errors)
	fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", t.Test, t.Name, ops, t.Crashes.Points, t.Crashes.Images, kind,
		both.Second, t.Errors.Points, t.Errors.Images, both.Checks, both.Alike, both.Missed)
}
