package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Row is a line of a table. Its key is the first cell, in a table whose first column
// is called "row"; else it has none.
type Row struct {
	Key   string
	Head  []string // of the table
	Cells []string
	Line  string
}

// Cell gives the cell under a heading, or nothing.
func (r Row) Cell(head string) string {
	if i := slices.Index(r.Head, head); i >= 0 {
		return r.Cells[i]
	}
	return ""
}

// Rows gives the lines of all tables in a text. One whose key is malformed or another's,
// or that has not as many cells as the head of its table, is an error.
func Rows(text string) ([]Row, error) {
	var rows []Row
	var head []string // of the table that we are in
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			head = nil
			continue
		}
		cells := cut(line)
		row := Row{Head: head, Cells: cells, Line: line}
		switch {
		case head == nil:
			head = cells
			continue
		case strings.Trim(strings.Join(cells, ""), "-: ") == "":
			continue
		case len(cells) != len(head):
			return nil, fmt.Errorf("%d cells, and the head of the table has %d: %s", len(cells), len(head), line)
		case head[0] == "row":
			row.Key = cells[0]
			if !keyForm.MatchString(row.Key) || seen[row.Key] {
				return nil, fmt.Errorf("%q is no key, or another row has it: %s", row.Key, line)
			}
			seen[row.Key] = true
		}
		rows = append(rows, row)
	}
	return rows, nil
}

var keyForm = regexp.MustCompile(`^[A-Z][0-9]+$`)

// cut gives the cells of a line of a table.
func cut(line string) []string {
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(c)
	}
	return cells
}
