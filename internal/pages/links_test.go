package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No link of a page leads nowhere.
func TestLinks(t *testing.T) {
	var pages []string
	for _, form := range []string{"../../*.md", "../../docs/*.md", "../../docs/decisions/*.md", "../../api/*.md"} {
		found, err := filepath.Glob(form)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", form, found, err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range CheckLinks(string(text), filepath.Dir(page)) {
			t.Errorf("%s: %s", page, bad)
		}
	}
}

func TestCheckLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/other.md", []byte("# Other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = "# A page\n\n### 1: nothing, or not `there`\n\n[a](#1-nothing-or-not-there) [b](#a-page) [c](other.md) [d](other.md#other) [e](https://x.org/#y)\n"
	if bad := CheckLinks(text, dir); len(bad) > 0 {
		t.Fatalf("the right page: %q", bad)
	}
	for _, p := range []struct{ from, to, want string }{
		{"# A page", "# Page", "no heading for #a-page"},
		{"(other.md)", "(none.md)", "no file none.md"},
		{"(other.md#other)", "(other.md#another)", "no heading #another in other.md"},
	} {
		if found := strings.Join(CheckLinks(strings.Replace(text, p.from, p.to, 1), dir), "\n"); !strings.Contains(found, p.want) {
			t.Errorf("found %q, want %q", found, p.want)
		}
	}
}
