//go:build unix

package main

import (
	"strings"
	"unicode/utf8"
)

// A report is as wide as reportWidth, so that it can be read on a phone; only what cannot
// be broken well, such as a path, goes on to screenWidth.
const (
	reportWidth = 60
	screenWidth = 80
)

// paragraph prints a text beside its name, wrapped.
func (a *app) paragraph(name, text string) {
	const indent = 11
	if name == "" {
		for _, part := range wrap(text, reportWidth, screenWidth) {
			a.printf("%s\n", part)
		}
		return
	}
	for _, part := range wrap(text, reportWidth-indent, screenWidth-indent) {
		a.printf("%-*s%s\n", indent, name, part)
		name = ""
	}
}

// toRun prints a command beside its name, or below it where it is too long. It is never
// broken: half of a command is another one.
func (a *app) toRun(name, command string) {
	const indent = 11
	if utf8.RuneCountInString(command) <= reportWidth-indent {
		a.printf("%-*s%s\n", indent, name, printable(command))
		return
	}
	a.printf("%s\n%s\n", name, printable(command))
}

// wrap breaks a text into lines of at most width runes, between words. A word that is
// longer has a line of its own, and is broken after most runes.
func wrap(text string, width, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(printable(text)) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for rest := []rune(word); ; rest = rest[most:] {
			if len(rest) <= most {
				line = string(rest)
				break
			}
			lines = append(lines, string(rest[:most]))
		}
	}
	return append(lines, line)
}
