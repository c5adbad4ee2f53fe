package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
)

// A Launcher is the command confine, built, and a way to build what it runs.
type Launcher struct{ goTool, path string }

// NewLauncher builds the command. It leaves the test out of runs that are not thorough,
// and of those with the race detector, which change nothing about the binaries that run.
func NewLauncher(t *testing.T) *Launcher {
	t.Helper()
	if testrun.RaceDetector() || !testrun.Thorough() {
		t.Skip("builds this package anew: runs under HOLDFAST_REQUIRE_ALL=1, without the race detector")
	}
	Need(t)
	goTool, err := exec.LookPath("go")
	if err != nil {
		testrun.Skip(t, "no go command here to build without cgo with")
	}
	l := &Launcher{goTool: goTool}
	l.path = l.Build(t, "example.com/holdfast/internal/crashtest/sandbox/confine")
	return l
}

// Build builds a command as for a phone, without cgo, and gives its path.
func (l *Launcher) Build(t *testing.T, pkg string) string {
	t.Helper()
	return l.build(t, pkg, "build")
}

// build gives the path of a command, or of the tests, of a package.
func (l *Launcher) build(t *testing.T, pkg string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "binary")
	cmd := exec.CommandContext(t.Context(), l.goTool, append(args, "-o", path, "-ldflags=-s -w", pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %q of %s: %v\n%s", args, pkg, err, out)
	}
	return path
}

// BuildTests builds the tests of the package whose test is running, with other texts in
// the place of some of its files, or files besides, by their names.
func (l *Launcher) BuildTests(t *testing.T, texts map[string]string) string {
	t.Helper()
	args := []string{"test", "-c", "-vet=off"}
	if len(texts) > 0 {
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		temp, replace := t.TempDir(), map[string]string{}
		for name, text := range texts {
			replace[filepath.Join(here, name)] = filepath.Join(temp, name)
			if err := os.WriteFile(filepath.Join(temp, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			t.Fatal(err)
		}
		overlay := filepath.Join(temp, "overlay.json")
		if err := os.WriteFile(overlay, list, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", overlay)
	}
	return l.build(t, ".", args...)
}

// Command prepares a built binary under a filter. What a thorough run demands is not
// demanded of it: it is there to be confined. What it leaves of temporary files, if it is
// killed, goes with the test.
func (l *Launcher) Command(t *testing.T, how Confinement, path string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), l.path, append([]string{string(how), path}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "HOLDFAST_REQUIRE_ALL=") })
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	if how != WithoutLinks {
		cmd.Env = append(cmd.Env, "ANDROID_ROOT=/system") // as every process there has it
	}
	return cmd
}
