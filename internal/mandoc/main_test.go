package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tree = `{"name":"holdfast","use":"holdfast","short":"A queue","long":"A queue.","runs":false,
 "flags":[{"name":"json","usage":"write JSON","type":"bool","default":"false","persistent":true}],
 "commands":[{"name":"set","use":"set NAME=VALUE","short":"Change","long":"Change a_thing <here>:\n\non_dead_owner  what a\n               program does\n\nDone.","runs":true,
  "flags":[{"name":"queue","short":"q","usage":"of this queue","type":"string","default":""}],"commands":[]}]}`

func TestPages(t *testing.T) {
	dir := t.TempDir()
	if err := write(strings.NewReader(tree), dir, "v1.2.3", "2026-11-30"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"holdfast.1":     {"A queue", "holdfast-set(1)", `\fB--json\fP[=false]`},
		"holdfast-set.1": {`"Nov 2026" "holdfast v1.2.3"`, "a_thing <here>:", "on_dead_owner  what a\n", "               program does\n", `\fB-q\fP, \fB--queue\fP`, `\fB--json\fP`},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(page), text) {
				t.Errorf("%s has no %q:\n%s", name, text, page)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ tree, dir, date, want string }{
		"no directory":     {tree, "", "2026-11-30", "want a directory"},
		"no date":          {tree, t.TempDir(), "", "-date"},
		"cut off":          {tree[:99], t.TempDir(), "2026-11-30", "the tree"},
		"a field too many": {`{"name":"holdfast","aliases":[]}`, t.TempDir(), "2026-11-30", "aliases"},
	} {
		if err := write(strings.NewReader(c.tree), c.dir, "", c.date); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
