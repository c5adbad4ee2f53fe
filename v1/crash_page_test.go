//go:build unix

package holdfast

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The v1 section of docs/crash-points.md names tests and scenarios that there are, in
// the last column of its tables and in backquotes, and leaves no scenario out.
func TestCrashPointsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "crash-points.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## v1\n")
	if !found {
		t.Fatal("the page has no section v1")
	}
	known := map[string]bool{}
	unnamed := map[string]bool{}
	for _, c := range crashScenarios {
		known[c.name], unnamed[c.name] = true, true
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	rows := 0
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasSuffix(line, "| test |") {
			for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(line, -1) {
				if !known[m[1]] {
					t.Errorf("no test %s", m[1])
				}
			}
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		for name := range strings.SplitSeq(cells[len(cells)-1], ", ") {
			if !known[name] {
				t.Errorf("no test or scenario %q: %s", name, line)
			}
			delete(unnamed, name)
		}
	}
	if rows < 30 {
		t.Errorf("%d rows", rows)
	}
	for name := range unnamed {
		t.Errorf("scenario %s proves no row", name)
	}
}
