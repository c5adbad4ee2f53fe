package leak

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDescriptors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := open()
	f := mustOpen(t, path)
	if got := since(before, open()); len(got) != 1 || !strings.HasSuffix(got[0], path) {
		t.Errorf("with %s open: %q", path, got)
	}
	f.Close()
	if got := since(before, open()); len(got) != 0 {
		t.Errorf("with it closed: %q", got)
	}
}

func TestHoldersStay(t *testing.T) {
	const space = "/data/store/ns"
	for _, c := range []struct {
		name  string
		after map[string]string
		want  int
	}{
		{"a holder", map[string]string{"7": space + "/holders/x", "8": space}, 0},
		{"of a store that is gone", map[string]string{"7": space + "/holders/x (deleted)", "8": space + " (deleted)", "9": space + " (deleted)"}, 0},
		{"a namespace without one", map[string]string{"8": space}, 1},
		{"more than it needs", map[string]string{"6": space, "7": space + "/holders/x", "8": space, "9": space}, 1},
		{"another file", map[string]string{"7": space + "/holders/x", "8": space + "/state.json"}, 1},
		{"what the runtime waits with", map[string]string{"4": "anon_inode:[eventpoll]", "5": "anon_inode:[eventfd]"}, 0},
		{"a watch", map[string]string{"4": "anon_inode:inotify"}, 1},
		{"what was open", map[string]string{"1": "/dev/null"}, 0},
		{"a number used again", map[string]string{"1": "/data/x"}, 1},
	} {
		if got := since(map[string]string{"1": "/dev/null"}, c.after); len(got) != c.want {
			t.Errorf("%s: left %q, want %d", c.name, got, c.want)
		}
	}
}
