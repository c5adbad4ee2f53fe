package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// CheckLinks tells each link of a text in a directory that leads to no file there, or to no
// heading of the page that it names.
func CheckLinks(text, dir string) []string {
	var bad []string
	for _, m := range linked.FindAllStringSubmatch(text, -1) {
		file, part, _ := strings.Cut(m[1], "#")
		if strings.Contains(m[1], "://") {
			continue
		}
		if file == "" {
			if !headings(text)[part] {
				bad = append(bad, "no heading for #"+part)
			}
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(file))
		info, err := os.Stat(path)
		if err != nil {
			bad = append(bad, "no file "+file)
			continue
		}
		if part == "" || info.IsDir() {
			continue
		}
		other, err := os.ReadFile(path)
		if err != nil || !headings(string(other))[part] {
			bad = append(bad, "no heading #"+part+" in "+file)
		}
	}
	return bad
}

var linked = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// headings gives the names that the headings of a text have in links.
func headings(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			all[anchor(title)] = true
		}
	}
	return all
}

// anchor gives the name of one heading.
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
