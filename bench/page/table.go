//go:build unix

package page

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// none stands where there is nothing to tell.
const none = "–"

// A table has a head and rows of as many cells. The first column is words, the others are
// figures.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := []string{"---"}
	for range t.head[1:] {
		rule = append(rule, "---:")
	}
	line(rule)
	for _, r := range t.rows {
		line(r)
	}
	fmt.Fprintln(w)
}

// figure writes a number so that three digits of it count, thousands parted.
func figure(x float64) string {
	switch a := math.Abs(x); {
	case a >= 99.95:
		return thousands(strconv.FormatFloat(x, 'f', 0, 64))
	case a >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 0.0995 || a == 0:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// bytes writes a number of bytes.
func size(n float64) string {
	switch {
	case n >= 1<<20:
		return figure(n/(1<<20)) + " MiB"
	case n >= 1<<10:
		return figure(n/(1<<10)) + " KiB"
	}
	return figure(n) + " B"
}
