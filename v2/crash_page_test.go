//go:build unix

package holdfast

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/pages"
)

const (
	crashPage    = "../docs/crash-points.md"
	crashListing = "## What each transition does, operation by operation"
	crashPart    = "\n## v1\n" // where the part of this package ends
)

// pageScenarios are the names that the page may use beside those of the tests.
func pageScenarios() []string {
	names := []string{"create", "resume"}
	for _, c := range crashScenarios {
		names = append(names, c.name)
	}
	return names
}

// docs/crash-points.md says what the code does: every operation of every transition, in
// order, each with the rows that a crash after it leads to; no row that nothing leads to;
// no test or scenario that there is not, and none left out.
func TestCrashPage(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(crashPage))
	mustDo(t, err)
	part, rest, found := strings.Cut(string(text), crashPart)
	if !found {
		t.Fatal("the page has no section v1")
	}
	var runs []pages.Run
	for _, r := range recordedRuns(t) {
		runs = append(runs, r.listed())
	}
	if *updateGolden {
		part, err = pages.Update(part, crashListing, runs)
		mustDo(t, err)
		mustDo(t, os.WriteFile(crashPage, []byte(part+crashPart+rest), 0o644))
	}
	tests, err := pages.Tests(".")
	mustDo(t, err)
	for _, bad := range slices.Concat(pages.Check(part, crashListing, runs), pages.CheckNames(part, pageScenarios(), tests)) {
		t.Error(bad)
	}
	t.Run("planted", func(t *testing.T) { plantedPages(t, part, runs, tests) })
}

// plantedPages are pages that are wrong in one place each.
func plantedPages(t *testing.T, page string, runs []pages.Run, tests map[string]bool) {
	line := func(key string) string {
		at := strings.Index(page, "\n| "+key+" |")
		if at < 0 {
			t.Fatalf("no row %s", key)
		}
		end := strings.Index(page[at+1:], "\n")
		return page[at : at+1+end]
	}
	scenarios := pageScenarios()
	for _, p := range []struct{ name, from, to, want string }{
		{"two operations swapped", "sync namespace                                               A9\nblank the owner record                                       A10\n",
			"blank the owner record                                       A10\nsync namespace                                               A9\n", "differs"},
		{"an operation left out", "\nwrite the owner record                                       A2 A3\n", "\n", "differs"},
		{"an operation too many", "\nunlock turnstile                                             A1\n",
			"\nunlock turnstile                                             A1\nsync root                                                    A1\n", "differs"},
		{"another row", "rename state temp to state.json                              A7\n", "rename state temp to state.json                              A9\n", "differs"},
		{"a transition left out", "; reap-named 1", "", "differs"},
		{"a row removed", line("A7"), "", "leads to row A7, which there is not"},
		{"a row that nothing leads to", line("A7"), line("A7") + strings.Replace(line("A7"), "| A7 |", "| A99 |", 1), "row A99"},
		{"a row that says nothing leads to it", line("A7"), strings.Replace(line("A7"), "parent not synced", "no operation", 1), "row A7"},
		{"a key twice", line("A7"), line("A7") + line("A7"), "another row has it"},
		{"a cell too few", line("A7"), strings.TrimSuffix(line("A7"), "every one |"), "cells"},
		{"a scenario that is not", "| enqueue-batch |", "| enqueue-heap |", "no test or scenario"},
		{"a scenario left out", "| reap-named |", "| reap |", "reap-named proves no row"},
		{"a test that is not", "`TestCrashTwice`", "`TestCrashThrice`", "no test TestCrashThrice"},
		{"no listing", crashListing, "## Something else", "no section"},
	} {
		planted := strings.Replace(page, p.from, p.to, 1)
		if planted == page {
			t.Errorf("%s: cannot be planted", p.name)
			continue
		}
		found := slices.Concat(pages.Check(planted, crashListing, runs), pages.CheckNames(planted, scenarios, tests))
		if !slices.ContainsFunc(found, func(bad string) bool { return strings.Contains(bad, p.want) }) {
			t.Errorf("%s: found %q, want %q", p.name, found, p.want)
		}
	}
}
