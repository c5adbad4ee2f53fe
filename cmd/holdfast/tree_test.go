//go:build unix

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// allCommands gives the commands below cmd, whatever their depth.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range cmd.Commands() {
		all = append(all, c)
		all = append(all, allCommands(c)...)
	}
	return all
}

// The tree has every command that the help shows, with its flags, and no other.
func TestTree(t *testing.T) {
	s := &session{t: t}
	root := decode[treeLine](t, s.must("tree"))
	var have []string
	var walk func(l treeLine, above string)
	walk = func(l treeLine, above string) {
		path := strings.TrimSpace(above + " " + l.Name)
		have = append(have, path)
		if l.Short == "" || !strings.HasPrefix(l.Use, l.Name) {
			t.Errorf("%s: use %q, short %q", path, l.Use, l.Short)
		}
		for _, f := range l.Flags {
			have = append(have, path+" --"+f.Name)
			if f.Usage == "" || f.Type == "" {
				t.Errorf("%s --%s: %+v", path, f.Name, f)
			}
		}
		for _, below := range l.Commands {
			walk(below, path)
		}
	}
	walk(root, "")
	var out, errs bytes.Buffer
	want := []string{"holdfast", "holdfast --dir", "holdfast --json", "holdfast --allow-unsafe-root"}
	for _, c := range allCommands(newApp(strings.NewReader(""), &out, &errs).root()) {
		if !c.Hidden {
			want = append(want, c.CommandPath())
		}
	}
	for _, path := range want {
		if !slices.Contains(have, path) {
			t.Errorf("%s is not in the tree", path)
		}
	}
	for _, path := range []string{"holdfast claim --lease", "holdfast failed purge --namespace", "holdfast init --resume"} {
		if !slices.Contains(have, path) {
			t.Errorf("%s is not in the tree", path)
		}
	}
	for _, path := range []string{"holdfast tree", "holdfast demo-worker", "holdfast claim --dir", "holdfast claim --help"} {
		if slices.Contains(have, path) {
			t.Errorf("%s is in the tree", path)
		}
	}
}
