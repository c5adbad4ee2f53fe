package pages

import (
	"fmt"
	"slices"
	"strings"
)

// A Run is what one call does to the disk: its operations in order.
type Run struct {
	Name  string
	Steps []Step
}

// A Step is one operation, or several that are submitted together, with the keys of the
// rows that tell what a crash there leaves.
type Step struct {
	Op   string
	Rows []string
}

// Listing prints runs, those with the same steps together.
func Listing(runs []Run) string {
	var b strings.Builder
	var done []string
	for i, r := range runs {
		text := r.steps()
		if slices.Contains(done, text) {
			continue
		}
		done = append(done, text)
		names := []string{r.Name}
		for _, other := range runs[i+1:] {
			if other.steps() == text {
				names = append(names, other.Name)
			}
		}
		fmt.Fprintf(&b, "**%s**\n\n```text\n%s```\n\n", strings.Join(names, "; "), text)
	}
	return b.String()
}

func (r Run) steps() string {
	var b strings.Builder
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "%-60s %s\n", s.Op, strings.Join(s.Rows, " "))
	}
	return b.String()
}

// keyless is what a row says that no operation leads to.
const keyless = "no operation"

// Check compares the rows and the listing of a text with what was recorded, and tells
// each way in which they differ. The section's heading is given with its marks.
func Check(text, heading string, runs []Run) []string {
	rows, err := Rows(text)
	if err != nil {
		return []string{err.Error()}
	}
	_, got, _, err := split(text, heading)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	if want := Listing(runs); got != want {
		bad = append(bad, difference(got, want))
	}
	named := map[string]string{}
	for _, r := range runs {
		for _, s := range r.Steps {
			if len(s.Rows) == 0 {
				bad = append(bad, fmt.Sprintf("%s: no row tells what a crash at %q leaves", r.Name, s.Op))
			}
			for _, key := range s.Rows {
				named[key] = r.Name
			}
		}
	}
	for _, row := range rows {
		if row.Key == "" {
			continue
		}
		_, is := named[row.Key]
		if says := strings.Contains(row.Line+strings.Join(row.Head, " "), keyless); is == says {
			bad = append(bad, fmt.Sprintf("row %s: an operation leads to it: %v; it says that none does: %v", row.Key, is, says))
		}
		delete(named, row.Key)
	}
	for key, run := range named {
		bad = append(bad, fmt.Sprintf("%s leads to row %s, which there is not", run, key))
	}
	slices.Sort(bad)
	return bad
}

// Update puts the listing of what was recorded in the place of the old one.
func Update(text, heading string, runs []Run) (string, error) {
	before, _, after, err := split(text, heading)
	if err != nil {
		return "", err
	}
	return before + Listing(runs) + after, nil
}

// split finds the listing of a section: from its first line in bold, or from its end if
// there is none, to the next heading.
func split(text, heading string) (before, listing, after string, err error) {
	at := strings.Index(text, "\n"+heading+"\n")
	if at < 0 {
		return "", "", "", fmt.Errorf("no section %q", heading)
	}
	at += len(heading) + 2
	end := len(text)
	if next := strings.Index(text[at:], "\n#"); next >= 0 {
		end = at + next + 1
	}
	from := end
	if bold := strings.Index(text[at:end], "\n**"); bold >= 0 {
		from = at + bold + 1
	}
	return text[:from], text[from:end], text[end:], nil
}

// difference tells the first line in which two texts differ, and what follows.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(g), len(w)) && g[i] == w[i] {
		i++
	}
	return fmt.Sprintf("the listing differs from what the code does in line %d\n got %s\nwant %s", i+1, some(g, i), some(w, i))
}

func some(lines []string, i int) string {
	return strings.Join(lines[min(i, len(lines)):min(i+5, len(lines))], "\n     ")
}
