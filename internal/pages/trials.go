package pages

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Trials are the scenarios that docs/testing.md must have a row for.
var Trials = []string{
	"T01", "T04", "T05", "T06", "T07", "T09", "T13", "T15", "T16", "T18", "T21", "T22", "T24", "T26", "T28", "T30", "T32",
}

// CheckTrials reads the tables of a text that have a column "tests": tests, each as
// "package: TestName", separated by semicolons; a name alone is of the package before it. It
// tells each that is not in its package below root, each row without a test, and each of
// the trials that has no row, or two, in a column "trial".
func CheckTrials(text, root string, trials []string) []string {
	rows, err := Rows(text)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	told := map[string]int{}
	known := map[string]map[string]bool{}
	for _, r := range rows {
		if !slices.Contains(r.Head, "tests") {
			continue
		}
		if slices.Contains(r.Head, "trial") {
			told[r.Cell("trial")]++
		}
		dir := ""
		for entry := range strings.SplitSeq(r.Cell("tests"), ";") {
			name := strings.Trim(strings.TrimSpace(entry), "`")
			if in, of, ok := strings.Cut(name, ": "); ok {
				dir, name = in, of
			}
			test, _, _ := strings.Cut(name, "/")
			if dir == "" || !testForm.MatchString(test) {
				bad = append(bad, fmt.Sprintf("%q is no test of a package: %s", entry, r.Line))
				continue
			}
			if known[dir] == nil {
				if known[dir], err = Tests(filepath.Join(root, filepath.FromSlash(dir))); err != nil {
					return []string{err.Error()}
				}
			}
			if !known[dir][test] {
				bad = append(bad, fmt.Sprintf("no test %s in %s: %s", test, dir, r.Line))
			}
		}
	}
	for _, id := range trials {
		if told[id] != 1 {
			bad = append(bad, fmt.Sprintf("%d rows of trial %s", told[id], id))
		}
		delete(told, id)
	}
	for id := range told {
		bad = append(bad, fmt.Sprintf("there is no trial %s", id))
	}
	slices.Sort(bad)
	return bad
}

// CheckQuoted tells each name of a test that a text has in backquotes, as "package: TestName",
// "TestName" or with a subtest, and that is not in that package below root, or in none.
func CheckQuoted(text, root string) []string {
	known, err := testsBelow(root)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	for _, m := range quotedAnywhere.FindAllStringSubmatch(text, -1) {
		found := known[m[1]][m[2]]
		for _, tests := range known {
			found = found || m[1] == "" && tests[m[2]]
		}
		if !found {
			bad = append(bad, "no test "+m[0])
		}
	}
	return bad
}

var quotedAnywhere = regexp.MustCompile("`(?:([a-z0-9/]+): )?(Test\\w+)[^`]*`")

// testsBelow gives the tests of each directory below root, by its path from there.
func testsBelow(root string) (map[string]map[string]bool, error) {
	known := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err == nil && known[filepath.ToSlash(dir)] == nil {
			known[filepath.ToSlash(dir)], err = Tests(filepath.Dir(path))
		}
		return err
	})
	return known, err
}
