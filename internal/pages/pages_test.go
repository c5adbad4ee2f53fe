package pages

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// docs/testing.md names tests that there are, and has a row for every trial.
func TestTestingPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range slices.Concat(CheckTrials(string(text), "../..", Trials), CheckQuoted(string(text), "../..")) {
		t.Error(bad)
	}
}

// The check finds what it is for.
func TestCheckTrials(t *testing.T) {
	const page = "| trial | what | tests |\n| --- | --- | --- |\n" +
		"| T01 | one | `internal/pages: TestCheckTrials`; `TestRows/keys` |\n| T02 | two | `v2: TestCrash` |\n"
	trials := []string{"T01", "T02"}
	if bad := CheckTrials(page, "../..", trials); len(bad) > 0 {
		t.Fatalf("the right page: %q", bad)
	}
	for _, p := range []struct{ name, from, to, want string }{
		{"a test renamed", "TestCheckTrials", "TestCheckTrial", "no test TestCheckTrial in internal/pages"},
		{"another package", "`v2: TestCrash`", "`queue: TestCrash`", "no test TestCrash in queue"},
		{"no such package", "`v2: TestCrash`", "`v3: TestCrash`", "no test TestCrash in v3"},
		{"no package", "`v2: TestCrash`", "`TestCrash`", "no test of a package"},
		{"no test", "`v2: TestCrash`", "", "no test of a package"},
		{"not a test's name", "TestRows/keys", "Rows", "no test of a package"},
		{"a row removed", "| T02 | two | `v2: TestCrash` |\n", "", "0 rows of trial T02"},
		{"a row twice", "| T02 ", "| T01 ", "2 rows of trial T01"},
		{"a trial that is none", "| T02 ", "| T99 ", "there is no trial T99"},
		{"a cell too many", "| two |", "| two | three |", "4 cells"},
	} {
		planted := strings.Replace(page, p.from, p.to, 1)
		if found := strings.Join(CheckTrials(planted, "../..", trials), "\n"); planted == page || !strings.Contains(found, p.want) {
			t.Errorf("%s: found %q, want %q", p.name, found, p.want)
		}
	}
}

func TestCheckQuoted(t *testing.T) {
	const text = "See `internal/pages: TestRows/keys`, `TestCrash`, `v2: TestRows`, `TestNowhere`, TestInProse."
	want := []string{"no test `v2: TestRows`", "no test `TestNowhere`"}
	if got := CheckQuoted(text, "../.."); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRows(t *testing.T) {
	text := "| a | b |\n|---|---|\n| 1 | 2 |\n\n| row | test |\n| --- | --- |\n| K1 | x, y |\n| K2 | z |\n"
	rows, err := Rows(text)
	if err != nil || len(rows) != 3 {
		t.Fatalf("%+v %v", rows, err)
	}
	if rows[0].Key != "" || rows[0].Cell("b") != "2" || rows[0].Cell("test") != "" || rows[2].Key != "K2" || rows[2].Cell("test") != "z" {
		t.Errorf("%+v", rows)
	}
	for _, bad := range []string{"| K1 | z |", "| k2 | z |", "| | z |", "| K2 |", "| K2 | z | z |"} {
		if rows, err := Rows(strings.Replace(text, "| K2 | z |", bad, 1)); err == nil {
			t.Errorf("%s: %+v", bad, rows)
		}
	}
}

// Runs with the same steps are told together, and an update changes nothing else.
func TestListing(t *testing.T) {
	step := func(op string, rows ...string) Step { return Step{op, rows} }
	runs := []Run{
		{"one", []Step{step("lock", "A1"), step("write", "A1", "A2")}},
		{"two", []Step{step("lock", "A1")}},
		{"three", []Step{step("lock", "A1"), step("write", "A1", "A2")}},
	}
	if got := Listing(runs); strings.Count(got, "```text\n") != 2 || !strings.Contains(got, "**one; three**\n") || !strings.Contains(got, "**two**\n") {
		t.Errorf("got %s", got)
	}
	const before = "# Page\n\n| row | b |\n| --- | --- |\n| A1 | x |\n| A2 | y |\n| A3 | no operation |\n\n## Listing\n\nprose\n\n"
	const after = "## Next\n\n**bold**\n"
	for _, old := range []string{"", "**old**\n\n```text\nlock\n```\n\n"} {
		got, err := Update(before+old+after, "## Listing", runs)
		if err != nil || got != before+Listing(runs)+after {
			t.Errorf("updated: %q, %v", got, err)
		}
		if bad := Check(got, "## Listing", runs); len(bad) > 0 {
			t.Errorf("checked: %q", bad)
		}
		if bad := Check(before+old+after, "## Listing", runs); len(bad) != 1 || !strings.Contains(bad[0], "differs") {
			t.Errorf("before: %q", bad)
		}
	}
	if _, err := Update(before+after, "## No such", runs); err == nil {
		t.Error("a section that is not there was updated")
	}
	runs[1].Steps[0].Rows = nil
	text, err := Update(before+after, "## Listing", runs)
	if bad := Check(text, "## Listing", runs); err != nil || len(bad) != 1 || !strings.Contains(bad[0], "no row tells") {
		t.Errorf("a step without a row: %q %v", bad, err)
	}
}
