//go:build unix

package main

import "example.com/holdfast/internal/doctor"

// The table's columns: the widest name, "v2", the widest outcome, and the rest of 80.
const (
	nameWidth    = 17
	neededWidth  = 4
	outcomeWidth = 15
	textWidth    = 80 - nameWidth - neededWidth - outcomeWidth - 3
)

// printTable gives the whole of every check, and what a store would work by.
func (a *app) printTable(x examined) {
	a.checkRow("CHECK", "V2", "OUTCOME", []string{"TRIED; WHAT FOR; WHAT WAS SEEN"})
	for _, c := range x.Checks {
		a.printCheck(c)
	}
	a.printf("\n")
	for _, m := range []struct{ what, by string }{
		{"lock", x.Mechanisms.Lock}, {"publish", x.Mechanisms.Publish}, {"wake", x.Mechanisms.Wake},
		{"leases", x.Mechanisms.Leases}, {"v1 claims", x.Mechanisms.V1},
	} {
		a.paragraph(m.what, pick(m.by, "none"))
	}
	for _, w := range x.Weighing(doctor.Warning) {
		a.paragraph("warning", reasonOf(w))
	}
	for _, w := range x.Weighing(doctor.Unfit) {
		a.paragraph("reason", reasonOf(w))
	}
}

func (a *app) printCheck(c doctor.Check) {
	needed, outcome := "-", string(c.Outcome)
	if c.Needed {
		needed = "yes"
	}
	if c.Errno != "" {
		outcome = c.Errno // a refusal, and which
	}
	text := wrap(c.Tried, textWidth, textWidth)
	text = append(text, wrap("for: "+c.For, textWidth, textWidth)...)
	if c.Seen != "" {
		text = append(text, wrap("seen: "+c.Seen, textWidth, textWidth)...)
	}
	a.checkRow(title(c.Name), needed, outcome, text)
}

// checkRow prints one line of the table, and below it what does not fit in the last column.
func (a *app) checkRow(name, needed, outcome string, text []string) {
	for i, part := range text {
		if i > 0 {
			name, needed, outcome = "", "", ""
		}
		a.printf("%-*s %-*s %-*s %s\n", nameWidth, name, neededWidth, needed, outcomeWidth, outcome, part)
	}
}
