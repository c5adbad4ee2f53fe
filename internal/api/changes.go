package api

import (
	"slices"
	"strings"
)

// Changes tells the lines that are in one of two listings only.
func Changes(was, is string) []string {
	old, now := strings.Split(was, "\n"), strings.Split(is, "\n")
	var all []string
	for _, line := range old {
		if !slices.Contains(now, line) {
			all = append(all, "removed: "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) {
			all = append(all, "added: "+line)
		}
	}
	return all
}
