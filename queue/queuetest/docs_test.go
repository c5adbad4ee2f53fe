package queuetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The table of docs/states.md is the one that is tested.
func TestDocsHaveTheMatrix(t *testing.T) {
	page, err := os.ReadFile("../../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	fmt.Fprintf(&want, "| since the claim | %s |\n|%s\n", strings.Join(Calls(), " | "), strings.Repeat(" --- |", len(Calls())+1))
	for i, c := range Matrix() {
		if i%len(Calls()) == 0 {
			fmt.Fprintf(&want, "| %s |", c.Event)
		}
		fmt.Fprintf(&want, " %s |", c.Answer())
		if i%len(Calls()) == len(Calls())-1 {
			want.WriteString("\n")
		}
	}
	_, table, _ := strings.Cut(string(page), "\n| since the claim |")
	table, _, _ = strings.Cut("| since the claim |"+table, "\n\n")
	if table += "\n"; table != want.String() {
		t.Errorf("docs/states.md has\n%s\nwant\n%s", table, want.String())
	}
}
