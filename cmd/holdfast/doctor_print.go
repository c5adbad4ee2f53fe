//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"example.com/holdfast/internal/doctor"
)

// examined is the machine form of the checks: one object.
type examined struct {
	doctor.Report
	Fit   doctor.Verdict `json:"fit"`
	Store *storeLine     `json:"store"` // that is in the directory already; null: none
	Next  string         `json:"next"`  // the next command; empty: nothing is to be done

	warning string // of what stands in the directory
}

// title is a check's name as people read it.
func title(name string) string { return strings.ReplaceAll(name, "_", " ") }

func (a *app) printExamined(x examined) {
	if a.json {
		a.printJSON(x)
		return
	}
	a.paragraph("", x.verdict())
	a.paragraph("", "checked "+x.Place+": "+x.Filesystem)
	if !x.Exists {
		a.paragraph("", x.Dir+" is not there; a store's directory would be made in "+x.Place)
	}
	if a.verbose {
		a.printTable(x)
	} else {
		a.printBrief(x.Checks)
	}
	a.paragraph("store", x.Store.text())
	for _, name := range x.Leftovers {
		a.paragraph("left over", name+", "+ofLeftover(name)+":")
		a.toRun("remove it", "rm -r "+shellWord(filepath.Join(x.Place, name)))
	}
	if x.warning != "" {
		a.paragraph("warning", x.warning)
	}
	if x.Next != "" {
		a.toRun("next", x.Next)
	}
	a.paragraph("", x.verdict())
}

// verdict is the first line of the report, and the last. What v2 needs and nobody tried
// stands in it: the verdict holds for the rest.
func (x examined) verdict() string {
	text := "fit for v2: " + string(x.Fit)
	var untried []string
	for _, c := range x.Weighing(doctor.Warning) {
		if c.Outcome == doctor.NotTried {
			untried = append(untried, title(c.Name))
		}
	}
	if len(untried) > 0 {
		text += "; not tried: " + strings.Join(untried, ", ")
	}
	return text
}

func ofLeftover(name string) string {
	switch {
	case name == doctor.PowerName:
		return "of a power test, for --power-test check; when it is done"
	case strings.HasPrefix(name, doctor.KillPrefix):
		return "of a kill test that failed, was killed, or runs just now"
	}
	return "of a doctor that was killed, or that runs just now"
}

func (l *storeLine) text() string {
	switch {
	case l == nil:
		return "none is there"
	case l.Error != "":
		return "it cannot be read"
	}
	text := plural(int64(l.Pending), "message") + " pending, " + plural(int64(l.Processing), "message") + " processing, " +
		plural(int64(l.Failed), "message") + " failed; on_dead_owner is " + string(l.OnDeadOwner)
	if !l.Settled {
		text += "; not settled: another process holds its lock, or held it"
	}
	return text
}

// printBrief gives each check that is fine one short line. What was not made for want of
// the scratch directory is told once.
func (a *app) printBrief(checks []doctor.Check) {
	without := 0
	for _, c := range checks {
		if c.Outcome == doctor.NotTried && c.Seen == doctor.WithoutScratch {
			without++
			continue
		}
		a.printShort(c)
	}
	if without > 0 {
		a.shortRow("the others", "-", fmt.Sprintf("%s not tried, %s", plural(int64(without), "check"), doctor.WithoutScratch))
	}
}

func (a *app) printShort(c doctor.Check) {
	name := title(c.Name)
	switch {
	case c.Weight == doctor.Warning:
		a.shortRow(name, "WARN", inFull(c)...)
	case c.Weight == doctor.Unfit:
		a.shortRow(name, "NO", inFull(c)...)
	case c.Outcome == doctor.NotTried:
		a.shortRow(name, "-", "not tried: "+c.Seen)
	case c.Outcome == doctor.Refused, c.Outcome == doctor.Broken: // v2 does without
		a.shortRow(name, "-", pick(c.Errno, c.Seen)+"; for: "+c.For)
	case c.Name == "filesystem":
		a.shortRow(name, "ok", c.Seen)
	case c.Name == "free_space":
		free, _, _ := strings.Cut(c.Seen, ",")
		a.shortRow(name, "ok", free)
	default:
		a.shortRow(name, "ok", "")
	}
}

// inFull is all that is known of a check that is not fine.
func inFull(c doctor.Check) (texts []string) {
	if c.Outcome != doctor.Told {
		texts = append(texts, pick(c.Errno, string(c.Outcome)))
	}
	texts = append(texts, "tried: "+c.Tried, "for: "+c.For)
	if c.Seen != "" {
		texts = append(texts, "seen: "+c.Seen)
	}
	return texts
}

// shortRow prints one line, and below it what does not fit.
func (a *app) shortRow(name, mark string, texts ...string) {
	const markWidth = 4
	const indent = nameWidth + markWidth + 2
	for _, text := range texts {
		for _, part := range wrap(text, reportWidth-indent, screenWidth-indent) {
			a.printf("%s\n", strings.TrimRight(fmt.Sprintf("%-*s %-*s %s", nameWidth, name, markWidth, mark, part), " "))
			name, mark = "", ""
		}
	}
}
