//go:build unix

package holdfast

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/planted"
)

// The page counts the planted bugs of each list, and names every uncaught one with its reason.
func TestPlantedBugsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/testing.md")
	mustDo(t, err)
	_, section, ok := strings.Cut(string(text), "\n## What the evidence catches, and what it cannot\n")
	if !ok {
		t.Fatal("the section is gone")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var want []string
	all := 0
	for _, bugs := range [][]planted.Bug{commitBugs, lockBugs, filesBugs, stateBugs, plantedBugs, guardBugs, exchangeBugs, preparedBugs, runBugs, failedRunBugs, interleavePlants, collectBugs, backupBugs} {
		want = append(want, fmt.Sprintf("| %d of %[1]d |", len(bugs)))
		all += len(bugs)
	}
	want = append(want, fmt.Sprintf("%d bugs are planted", all), fmt.Sprintf("%d more are caught by no test", len(uncaughtBugs)))
	for _, b := range uncaughtBugs {
		want = append(want, "| "+b.Name+" | "+b.Why+" |")
	}
	for _, name := range want {
		if !strings.Contains(section, name) {
			t.Errorf("not there: %s", name)
		}
	}
}
