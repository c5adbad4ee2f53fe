// Package planted proves of tests that they catch the bugs they are there for: it plants
// each in the source, in an overlay, and runs the test. Only tests import it.
package planted

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
)

// A Bug is a change of the source that a named test must catch.
type Bug struct {
	Name  string
	Test  string // as for go test -run, from the beginning of the name
	Edits []Edit
}

// An Edit changes one place of a file in the package's directory: Old stands there once.
type Edit struct{ File, Old, New string }

// Catch plants each bug in the package of the running test, and fails if the bug's test
// does not fail. What is tested is the real code but for that one change. The variables
// are set for those runs besides what is set already.
func Catch(t *testing.T, bugs []Bug, env ...string) {
	t.Helper()
	if testrun.RaceDetector() || !testrun.Thorough() {
		t.Skip("builds this package many times over: runs under HOLDFAST_REQUIRE_ALL=1, without the race detector")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		testrun.Skip(t, "no go command here to build the planted bugs with")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, bug := range bugs {
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			if err := bug.caught(goTool, here, t.TempDir(), env); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// caught plants the bug in the package at dir.
func (b Bug) caught(goTool, dir, temp string, env []string) error {
	list, err := overlay(dir, temp, b.Edits)
	if err != nil {
		return err
	}
	// Small and not optimised: a bug that is caught is caught soon.
	cmd := exec.Command(goTool, "test", "-short", "-vet=off", "-gcflags=-N -l", "-overlay", list, "-run", "^"+b.Test, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return fmt.Errorf("%s passes in spite of it", b.Test)
	}
	// The whole name: -run may have matched longer ones.
	name := b.Test
	if end := strings.IndexAny(name, "$/"); end >= 0 {
		name = name[:end]
	}
	if !strings.Contains(string(out), "--- FAIL: "+name+" (") {
		return fmt.Errorf("it did not fail in %s:\n%s", b.Test, out)
	}
	return nil
}

// overlay writes the changed files, and the list of them that the go command reads, into
// temp.
func overlay(dir, temp string, edits []Edit) (list string, err error) {
	texts := map[string]string{}
	for _, e := range edits {
		text, ok := texts[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(dir, e.File))
			if err != nil {
				return "", err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("%s: %q stands %d times in it, want once: the planted bug is out of date", e.File, e.Old, n)
		}
		texts[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		changed := filepath.Join(temp, file)
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(dir, file)] = changed
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(temp, "overlay.json")
	return list, os.WriteFile(list, b, 0o600)
}
