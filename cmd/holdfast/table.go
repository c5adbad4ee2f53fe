//go:build unix

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// A column is one of a table that must fit the width of a terminal.
type column struct {
	head  string
	right bool // numbers stand to the right
	least int  // a column with a least width gives way down to it; the others are shown whole
	rank  int  // where there is no room the highest goes first; 0 always stays
}

// columnGap stands between two columns.
const columnGap = "  "

// layOut gives the lines of a table, its heading first, none wider than width; 0 is no
// bound. What the cells hold is made safe for a terminal here and nowhere else. Columns
// without any value are left out.
func layOut(columns []column, rows [][]string, width int) []string {
	shown := make([]int, 0, len(columns))
	need := make([]int, len(columns))
	safe := make([][]string, len(rows))
	for r, row := range rows {
		safe[r] = make([]string, len(columns))
		for i := range columns {
			safe[r][i] = printable(row[i])
			if safe[r][i] != "" {
				need[i] = max(need[i], ansi.StringWidth(safe[r][i]))
			}
		}
	}
	for i, c := range columns {
		if need[i] > 0 || c.rank == 0 || len(rows) == 0 {
			need[i] = max(need[i], ansi.StringWidth(c.head))
			shown = append(shown, i)
		}
	}
	shown, widths := share(columns, shown, need, width)
	lines := make([]string, 0, len(rows)+1)
	line := func(cell func(i int) string) {
		parts := make([]string, len(shown))
		for n, i := range shown {
			parts[n] = pad(cell(i), widths[i], columns[i].right)
		}
		lines = append(lines, cutCells(strings.TrimRight(strings.Join(parts, columnGap), " "), width))
	}
	line(func(i int) string { return columns[i].head })
	for _, row := range safe {
		line(func(i int) string { return row[i] })
	}
	return lines
}

// share drops columns until the others fit at their least, and shares out what is left
// among those that would take more.
func share(columns []column, shown, need []int, width int) ([]int, []int) {
	widths := make([]int, len(columns))
	total := func() int {
		sum := len(columnGap) * (len(shown) - 1)
		for _, i := range shown {
			if widths[i] = need[i]; columns[i].least > 0 && width > 0 {
				widths[i] = min(need[i], columns[i].least)
			}
			sum += widths[i]
		}
		return sum
	}
	sum := total()
	for width > 0 && sum > width {
		last := -1
		for n, i := range shown {
			if columns[i].rank > 0 && (last < 0 || columns[i].rank > columns[shown[last]].rank) {
				last = n
			}
		}
		if last < 0 {
			break // the line is cut
		}
		shown = append(shown[:last:last], shown[last+1:]...)
		sum = total()
	}
	for ; sum < width; sum++ {
		least := -1
		for _, i := range shown {
			if widths[i] < need[i] && (least < 0 || widths[i] < widths[least]) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		widths[least]++
	}
	return shown, widths
}

// pad makes printable text exactly so wide: cut with an ellipsis, or filled.
func pad(s string, width int, right bool) string {
	s = cutCells(s, width)
	fill := strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
	if right {
		return fill + s
	}
	return s + fill
}

// cutCells cuts printable text to the cells of a terminal that it may take; 0 is no bound.
func cutCells(s string, width int) string {
	if width <= 0 || ansi.StringWidth(s) <= width {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// shortAge tells a span in one number and its unit, of at most four cells up to years.
func shortAge(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s" // clocks may differ: never a negative age
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
