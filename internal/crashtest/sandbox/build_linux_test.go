package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is started is not told to leave nothing out, and has the test's own directory for
// temporary files.
func TestCommand(t *testing.T) {
	t.Setenv("HOLDFAST_REQUIRE_ALL", "1")
	mine := filepath.Dir(t.TempDir())
	cmd := (&Launcher{path: "confine"}).Command(t, AsApp, "tests", "-test.v")
	if want := []string{"confine", string(AsApp), "tests", "-test.v"}; !slices.Equal(cmd.Args, want) {
		t.Errorf("arguments %q, want %q", cmd.Args, want)
	}
	value := func(name string) (last string) {
		for _, kv := range cmd.Env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				last = v
			}
		}
		return last
	}
	if got := value("HOLDFAST_REQUIRE_ALL"); got != "" {
		t.Errorf("HOLDFAST_REQUIRE_ALL=%s", got)
	}
	temp := value("TMPDIR")
	if _, err := os.Stat(temp); err != nil || filepath.Dir(temp) != mine {
		t.Errorf("temporary files go to %q (%v), want a directory in %s", temp, err, mine)
	}
}
