package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// CheckLinks tells each link of a text in a directory that leads to no file there, and to no
// heading of the text.
func CheckLinks(text, dir string) []string {
	headings := map[string]bool{}
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			headings[anchor(title)] = true
		}
	}
	var bad []string
	for _, m := range linked.FindAllStringSubmatch(text, -1) {
		file, part, _ := strings.Cut(m[1], "#")
		switch {
		case strings.Contains(m[1], "://"):
		case file == "" && !headings[part]:
			bad = append(bad, "no heading for #"+part)
		case file != "":
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(file))); err != nil {
				bad = append(bad, "no file "+file)
			}
		}
	}
	return bad
}

var linked = regexp.MustCompile(`\]\(([^)]+)\)`)

// anchor gives the name that a heading has in links.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(title)))
}
