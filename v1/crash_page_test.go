//go:build unix

package holdfast

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/pages"
)

var updatePage = flag.Bool("update", false, "write the operations in docs/crash-points.md")

const (
	crashPage    = "../docs/crash-points.md"
	crashListing = "### v1: what each transition does, operation by operation"
	crashPart    = "\n## v1\n" // where the part of this package begins
)

// The v1 part of docs/crash-points.md says what the code does: every operation of every
// scenario, in order, each with the rows that a crash after it leads to; no row that
// nothing leads to; no test or scenario that there is not, and none left out.
func TestCrashPointsPage(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(crashPage))
	unitOK(t, err)
	before, part, found := strings.Cut(string(text), crashPart)
	if !found {
		t.Fatal("the page has no section v1")
	}
	var runs []pages.Run
	for _, r := range recordedRuns(t) {
		runs = append(runs, r.listed())
	}
	if *updatePage {
		part, err = pages.Update(part, crashListing, runs)
		unitOK(t, err, os.WriteFile(crashPage, []byte(before+crashPart+part), 0o644))
	}
	var scenarios []string
	for _, c := range crashScenarios {
		scenarios = append(scenarios, c.name)
	}
	tests, err := pages.Tests(".")
	unitOK(t, err)
	check := func(part string) []string {
		return slices.Concat(pages.Check(part, crashListing, runs), pages.CheckNames(part, scenarios, tests))
	}
	for _, bad := range check(part) {
		t.Error(bad)
	}
	for _, p := range []struct{ name, from, to, want string }{
		{"two operations swapped", "remove marker                                                K4\nsync queue                                                   K4\n",
			"sync queue                                                   K4\nremove marker                                                K4\n", "differs"},
		{"another operation", "sync queue", "write queue", "differs"},
		{"a transition left out", "**two-names by hard-link**", "**two-names**", "differs"},
		{"a row removed", "| L7 |", "| L99 |", "leads to row L7, which there is not"},
		{"a scenario left out", "two-names |", "load |", "two-names proves no row"},
		{"a test that is not", "`TestCrashTwice`", "`TestCrashThrice`", "no test TestCrashThrice"},
	} {
		planted := strings.ReplaceAll(part, p.from, p.to)
		if found := strings.Join(check(planted), "\n"); planted == part || !strings.Contains(found, p.want) {
			t.Errorf("%s: found %q, want %q", p.name, found, p.want)
		}
	}
}
